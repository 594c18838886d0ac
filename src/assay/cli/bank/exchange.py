"""``assay bank import`` and ``assay bank export``: memories from other systems, and back."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.consent import say_forbidden
from assay.cli.embedders import embedder_for
from assay.cli.options import BankEmbedderOption, JsonOption
from assay.cli.places import GivenBank, bank_at, existing_bank
from assay.errors import ConfigError

_KNOWN = "jsonl, mem0, langgraph or chat"


def import_memories(  # noqa: PLR0913, PLR0917  # one parameter per option
    source: Annotated[
        Path, typer.Argument(help="A mem0 or LangGraph store export, JSON lines, or a chat log.")
    ],
    bank: GivenBank,
    user: Annotated[str, typer.Option(help="Whose memory; without it, as the file says.")] = "",
    kind: Annotated[
        str, typer.Option("--format", help=f"{_KNOWN}; without it, by what the file looks like.")
    ] = "",
    writer: Annotated[
        str,
        typer.Option(
            help="Who vouches for the statements: user, assistant, tool, external or operator."
        ),
    ] = "user",
    embedder: BankEmbedderOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Take memories of another system into a bank; the same file again writes nothing twice.

    A line of the plain format is {"text": "...", "claimed_at": "2026-03-01T12:00:00Z", "user": "..."};
    a chat log is a list of {"role", "content"} messages.
    """
    import anyio  # noqa: PLC0415  # --help stays fast
    import msgspec  # noqa: PLC0415

    import assay  # noqa: PLC0415
    from assay.runtime.exchange.formats import FORMATS, read  # noqa: PLC0415
    from assay.runtime.exchange.importing import WRITERS, take_in  # noqa: PLC0415
    from assay.stores.banks import shown  # noqa: PLC0415

    if kind and kind not in FORMATS:
        raise ConfigError(f"--format: expected {_KNOWN}, got {kind!r}")
    if writer not in WRITERS:
        raise ConfigError(f"--writer: expected one of {', '.join(WRITERS)}, got {writer!r}")
    contents = read(source.read_bytes(), source.name, kind or None)

    place = bank_at(bank)
    chosen = embedder_for(place, embedder)

    async def run() -> tuple[int, int]:
        async with assay.open_runtime(
            model=assay.ScriptedModel(), bank=place, embedder=chosen
        ) as runtime:
            return await take_in(runtime, contents, user=user, writer=writer)

    records, turns = anyio.run(run)
    if as_json:
        told = {"format": contents.format, "records": records, "turns": turns}
        typer.echo(msgspec.json.encode(told))
    else:
        typer.echo(f"{contents.format}: {records} records and {turns} turns are in {shown(place)}")


def export_memories(
    bank: GivenBank,
    user: Annotated[str, typer.Option(help="Whose memories.")],
    kind: Annotated[str, typer.Option("--format", help="jsonl, mem0 or langgraph.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    embedder: BankEmbedderOption = None,
) -> None:
    """Give a user's current memories to another system, but for those whose consent forbids it."""
    import anyio  # noqa: PLC0415  # --help stays fast

    import assay  # noqa: PLC0415
    from assay.runtime.exchange.formats import FORMATS, written  # noqa: PLC0415

    if kind not in FORMATS:
        raise ConfigError(f"--format: expected jsonl, mem0 or langgraph, got {kind!r}")
    place = existing_bank(bank)
    chosen = embedder_for(place, embedder)

    async def run() -> "list[assay.MemoryRecord]":
        async with assay.open_runtime(
            model=assay.ScriptedModel(), bank=place, embedder=chosen
        ) as runtime:
            return await runtime.memories(user)

    records = anyio.run(run)
    leaving = [record for record in records if record.consent.export]
    say_forbidden(len(records) - len(leaving))
    found = written(leaving, kind, user=user)
    if out is None:
        typer.echo(found, nl=False)
    else:
        out.write_bytes(found)
        typer.echo(f"written: {out}", err=True)
