"""``assay worker dead-letters``: jobs that failed at every try, to be looked at, tried again or dropped."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from assay.runtime.nats.connection import Connection
    from assay.runtime.nats.dead_letters import DeadLetter

_Given = TypeVar("_Given")

BusOption: TypeAlias = Annotated[
    str, typer.Option(help="nats://...: where jobs wait; default: serve.bus of the settings.")
]
NumberArgument: TypeAlias = Annotated[
    int, typer.Argument(min=1, help="As `list` shows it.", show_default=False)
]


def dead_letter_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Jobs that failed at every try.")
    app.command("list")(list_letters)
    app.command("show")(show)
    app.command("replay")(replay)
    app.command("drop")(drop)
    return app


def list_letters(
    *,
    bus: BusOption = "",
    limit: Annotated[int, typer.Option(min=1, help="Most to show, oldest first.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Which jobs were put aside, when and why; what users said is not shown."""

    async def listed(connection: "Connection") -> "list[DeadLetter]":
        from assay.runtime.nats.dead_letters import dead_letters  # noqa: PLC0415

        return await dead_letters(connection, limit=limit)

    letters = _over(bus, listed)
    if as_json:
        _say({"dead_letters": [_told(letter) for letter in letters]})
        return
    from rich.console import Console  # noqa: PLC0415  # --help stays fast

    from assay.cli.tables import FigureTable  # noqa: PLC0415

    rows = [
        (f"{n.number}", n.job.kind, n.job.tenant, f"{n.tries}", _when(n), n.failure.kind)
        for n in letters
    ]
    head = ("number", "kind", "tenant", "tries", "put aside", "failed with")
    Console().print(FigureTable(title="Dead letters", head=head, rows=rows))


def show(
    number: NumberArgument,
    *,
    bus: BusOption = "",
    payload: Annotated[
        bool, typer.Option("--payload", help="What was to be done, too: it quotes a user.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """One of them, with what its last try failed with."""

    async def found(connection: "Connection") -> "DeadLetter":
        from assay.runtime.nats.dead_letters import dead_letter  # noqa: PLC0415

        return await dead_letter(connection, number)

    letter = _over(bus, found)
    told = _told(letter) | {"message": letter.failure.message}
    if payload:
        told["payload"] = letter.job.payload.decode(errors="replace")
    if as_json:
        _say(told)
        return
    for name, value in told.items():
        typer.echo(f"{name:<10} {value}")


def replay(number: NumberArgument, *, bus: BusOption = "", as_json: JsonOption = False) -> None:
    """Try it again, as often as a new job."""

    async def again(connection: "Connection") -> str:
        from assay.runtime.nats.dead_letters import replay as put_back  # noqa: PLC0415

        return (await put_back(connection, number)).id

    job = _over(bus, again)
    if as_json:
        _say({"number": number, "job": job, "replayed": True})
    else:
        typer.echo(f"job {job} waits for a worker again")


def drop(number: NumberArgument, *, bus: BusOption = "", as_json: JsonOption = False) -> None:
    """Forget it; what it was about is not done."""

    async def forget(connection: "Connection") -> None:
        from assay.runtime.nats.dead_letters import drop as dropped  # noqa: PLC0415

        await dropped(connection, number)

    _over(bus, forget)
    if as_json:
        _say({"number": number, "dropped": True})
    else:
        typer.echo(f"dead letter {number} is dropped")


def _over(bus: str, work: "Callable[[Connection], Awaitable[_Given]]") -> _Given:
    """Do something over the bus that is meant."""
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.errors import ConfigError  # noqa: PLC0415
    from assay.runtime.distributed.hub import require_client  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415

    url = bus or Settings.load().serve.bus
    if not url:
        raise ConfigError("which bus? give --bus nats://...")

    async def run() -> _Given:
        await require_client()
        from assay.runtime.nats.streams import open_nats  # noqa: PLC0415

        async with open_nats(url) as connection:
            return await work(connection)

    return anyio.run(run)


def _told(letter: "DeadLetter") -> dict[str, object]:
    return {
        "number": letter.number,
        "job": letter.job.id,
        "kind": letter.job.kind,
        "tenant": letter.job.tenant,
        "namespace": letter.job.namespace,
        "tries": letter.tries,
        "at": _when(letter),
        "failure": letter.failure.kind,
    }


def _when(letter: "DeadLetter") -> str:
    return letter.at.isoformat(timespec="seconds") if letter.at else ""


def _say(told: object) -> None:
    import json  # noqa: PLC0415

    typer.echo(json.dumps(told))
