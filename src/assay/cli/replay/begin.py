"""Beginning a run and going on with one."""

import shlex
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import typer

from assay.cli.replay.running import execute, load, open_equipment, show
from assay.errors import ScenarioError
from assay.runtime.clock import SystemClock
from assay.scenarios.folder import RUN_FILE, RunFolder
from assay.scenarios.runs import FORMAT, RunConfig, RunRecord

_INTERRUPTED = 130


def begin(config: RunConfig, *, command: str, out: Path | None, as_json: bool) -> None:
    """Run from the beginning and print the result; without ``out`` nothing is kept but the cache."""
    if out is not None:
        _interruptible(lambda: _begin(config, command, out, as_json=as_json, kept=True), out)
        return
    with tempfile.TemporaryDirectory(prefix="assay-run-") as folder:
        path = Path(folder)
        _interruptible(lambda: _begin(config, command, path, as_json=as_json, kept=False), None)


def resume(path: Path) -> None:
    """Go on with the run in a folder and print its result as it was asked for.

    Raises:
        ScenarioError: If there is no run, or what it was begun with has changed.
    """
    _interruptible(lambda: _resume(path), path)


async def _begin(config: RunConfig, command: str, path: Path, *, as_json: bool, kept: bool) -> None:
    scenarios = load(config)
    async with open_equipment(config) as kit:
        record = RunRecord(
            format=FORMAT,
            config=config,
            identity=kit.model.identity,
            embedder=kit.embedder.name,
            command=command,
            started=SystemClock().now().isoformat(timespec="seconds"),
            as_json=as_json,
        )
        folder = RunFolder(path)
        await folder.begin(record)
        results = await execute(folder, record, scenarios, kit)
    show(record, scenarios, results, kept_in=path if kept else None)


async def _resume(path: Path) -> None:
    folder = RunFolder(path)
    record = await folder.record()
    scenarios = load(record.config)
    async with open_equipment(record.config) as kit:
        for what, now, then in (
            ("model", kit.model.identity, record.identity),
            ("embedder", kit.embedder.name, record.embedder),
        ):
            if now != then:
                raise ScenarioError(
                    f"the run began with {what} {then!r}, but {what} {now!r} is here now; "
                    "bring it back, or begin a new run"
                )
        results = await execute(folder, record, scenarios, kit)
    show(record, scenarios, results, kept_in=path)


def _interruptible(run: Callable[[], Coroutine[Any, Any, None]], path: Path | None) -> None:
    try:
        anyio.run(run)
    except KeyboardInterrupt:
        command = shlex.join(["assay", "replay", "--resume", str(path)])
        # Interrupted before the run was written down, there is nothing to go on with.
        kept = path is not None and (path / RUN_FILE).is_file()
        typer.echo(f"assay: interrupted{f'; go on with: {command}' if kept else ''}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
