"""Runs the scripted benchmark in a process of its own, killed by itself after so many answers.

    python killed_run.py DATA FOLDER ANSWERS

Prints the summary, without wall time, if it gets that far.
"""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

import anyio

from assay.guards.protocols import Request
from assay.runtime.models.reader import read
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.folder import RUN_FILE, RunFolder
from assay.scenarios.results import method_results, summary
from assay.scenarios.runner import run
from assay.stores.cache_file import open_cache

_spec = importlib.util.spec_from_file_location(
    "support_causal", Path(__file__).with_name("support_causal.py")
)
assert _spec is not None
assert _spec.loader is not None
support = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(support)


async def main(data: Path, folder: Path, answers: int) -> None:
    given = 0

    def script(request: Request) -> str:
        nonlocal given
        if given == answers:
            os.kill(os.getpid(), signal.SIGKILL)
        given += 1
        return read(request)

    config = support.config(data)
    there = RunFolder(folder)
    if not (folder / RUN_FILE).exists():
        await there.begin(support.run_record(config))
    scenarios = load_blind(data, seed=config.seed)
    async with open_cache(folder / "cache.db") as cache:
        kit = support.equipment(ScriptedModel(script), cache)
        rows = await run(there, [scenario.example for scenario in scenarios], config, kit)
    result = summary(scenarios, method_results(scenarios, rows, config), config)
    sys.stdout.write(json.dumps(result))


anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
