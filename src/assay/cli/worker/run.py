"""The options of ``assay worker``."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import BaseUrlOption, GuardOption, ServedEmbedderOption

if TYPE_CHECKING:
    from assay.runtime.jobs import JobKind

_INTERRUPTED = 130
_KINDS: "tuple[JobKind, ...]" = ("turn", "evaluation", "replay")


def run(  # noqa: PLR0913  # a command's options
    context: typer.Context,
    *,
    bank: Annotated[
        str | None, typer.Option(help="postgresql://...: the bank the services have, too.")
    ] = None,
    bus: Annotated[str | None, typer.Option(help="nats://...: where jobs wait.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="local, local:PATH.gguf, openai:NAME, scripted[:FILE]; the services' model."
        ),
    ] = None,
    base_url: BaseUrlOption = None,
    guard: GuardOption = None,
    embedder: ServedEmbedderOption = None,
    evaluations: Annotated[
        str | None,
        typer.Option(help="Where this worker's experiments are asked: here, or queue."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs of each kind at once; default: serve.jobs.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            help="What it does: turn, evaluation or replay; repeat for several. Default: all."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="The TOML file of the services; what is under serve holds here, too."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line for each thing that happens.")
    ] = False,
) -> None:
    """Take turns and answer questions of services over one bank, as many workers as you like.

    Give it what the services have: bank, bus, model, guard and settings. Stopped by Ctrl-C or
    SIGTERM it ends the jobs it has begun (serve.stop_seconds), or hands them to another worker; the
    second signal hands them over at once.
    """
    if context.invoked_subcommand is not None:
        return
    import anyio  # noqa: PLC0415  # `assay --help` does without

    from assay.cli.embedders import mismatch_names_the_option  # noqa: PLC0415
    from assay.cli.served import told  # noqa: PLC0415
    from assay.cli.worker.stage import work  # noqa: PLC0415
    from assay.errors import ConfigError  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415

    given: dict[str, object] = {
        "model": model,
        "bank": bank,
        "bus": bus,
        "embedder": embedder,
        "base_url": base_url,
        "evaluations": evaluations,
        "jobs": concurrency,
    }
    settings = told(Settings.load(config), given)
    if not settings.serve.bus:
        raise ConfigError("a worker needs the bus its services have: give --bus nats://...")
    wanted: tuple[JobKind, ...] = tuple(kind for kind in _KINDS if not kinds or kind in kinds)
    if unknown := set(kinds or ()) - set(_KINDS):
        raise ConfigError(
            f"--kinds: expected turn, evaluation or replay, got {sorted(unknown)[0]!r}"
        )
    with mismatch_names_the_option():
        stopped_by = anyio.run(work, settings, guard, wanted, as_json)
    if stopped_by is signal.SIGINT:
        raise typer.Exit(_INTERRUPTED)
