"""``assay`` as a process that logs all it can; what it left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.streams.text import TextReceiveStream

from .log_canaries import KEY, SERVICE_KEY

ROOT = Path(__file__).parents[2]


def variables(folder: Path) -> dict[str, str]:
    """What its environment says."""
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_LOG": "debug",
        "PYTHONASYNCIODEBUG": "1",
        "ASSAY_MODEL_RETRIES": "1",
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


class Ran(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str
    log: list[str]


async def run(folder: Path, *arguments: str, said: str = "") -> Ran:
    """Run a command to its end."""
    log = folder / "log"
    done = await anyio.run_process(
        [sys.executable, "-m", "tests.promises.log_child", str(log), *arguments],
        input=said.encode(),
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables(folder)},
    )
    lines = log.read_text().splitlines() if log.exists() else []
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), lines)


@asynccontextmanager
async def served(folder: Path, url: str) -> AsyncGenerator[tuple[str, Callable[[], Ran]]]:
    """``assay serve``: its address, and what it left once the block ended."""
    log, err = folder / "log", folder / "err"
    command = [sys.executable, "-m", "tests.promises.log_child", str(log), "serve", "--port", "0"]
    command += ["--model", "openai:m", "--base-url", url, "--guard", "vector", "--json"]
    command += ["--embedder", "hashing", "--bank", str(folder / "bank"), "--api-key", SERVICE_KEY]
    environment = {**os.environ, **variables(folder)}
    with err.open("wb") as stderr:
        async with await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stderr=stderr, env=environment, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            told = await TextReceiveStream(process.stdout).receive()

            def ran() -> Ran:
                lines = log.read_text().splitlines()
                return Ran(process.returncode or 0, told, err.read_text(), lines)

            try:
                yield json.loads(told)["address"], ran
            finally:
                process.send_signal(signal.SIGTERM)
                await process.wait()
