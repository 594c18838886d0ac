"""Services and workers as processes, over real servers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

KEY = "sk-test-0001-0123456789"
PATH = "/v1/chat/completions"


class Process:
    """One ``assay`` process, that says what happens in lines of JSON."""

    def __init__(self, folder: Path, *words: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        start = "from assay.cli import main; main()"
        self._errors = (folder / f"errors of {words[0]} {id(self)}").open("w+")
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", start, *words],
            env={**kept, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def says(self) -> dict[str, Any]:
        """The next line, as it comes."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.complained()
        told: dict[str, Any] = json.loads(line)
        return told

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and wait for its end; gives the exit code."""
        self._process.send_signal(number)
        return self._process.wait(30)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def complained(self) -> str:
        """What is on its standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


@contextmanager
def process(folder: Path, *words: str) -> Generator[Process]:
    """A process for the length of the block."""
    started = Process(folder, *words)
    try:
        yield started
    finally:
        started.close()


def serve(*places: str) -> tuple[str, ...]:
    options = ("--port", "0", "--json", "--api-key", KEY)
    return ("serve", "--model", "scripted", "--embedder", "hashing", *options, *places)


def worker(*places: str) -> tuple[str, ...]:
    return ("worker", "--model", "scripted", "--embedder", "hashing", "--json", *places)


def client(address: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {KEY}", "X-Assay-Session": "one"}
    return httpx2.Client(base_url=address, headers=headers, timeout=40)


def asking(*said: str, stream: bool = False) -> dict[str, object]:
    """A request whose history is what was said before, by turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return {"model": "scripted", "user": "ann", "messages": messages, "stream": stream}
