"""Situations others got wrong around a run: lost updates, interrupted runs, hanging commands, keys."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from assay.errors import ConflictingWrite, ModelUnavailable, RecordNotFound
from assay.guards.protocols import Completion, DeltaSink, Message, Request
from assay.runtime.facade import Runtime
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.memory import InMemoryCache
from assay.stores.records import Origin

from ..runtime.models.fault_server import answer, http, serving  # noqa: TID252
from ..runtime.rooms import SESSION, USER, fresh_bank, over  # noqa: TID252
from ..scenarios.support_causal import config, equipment, examples, write_rows  # noqa: TID252
from ..scenarios.test_runner import by_text, decided  # noqa: TID252

CHAT = Origin(writer="user", channel="chat")
ASSAY = (sys.executable, "-c", "from assay.cli import main; main()")


class Gated(ScriptedModel):
    """Waits at a gate before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.waits = anyio.Event()

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        self.waits.set()
        await self.gate.wait()
        return await super().complete(request, sink=sink)


async def test_o11_what_is_added_while_a_model_thinks_survives() -> None:
    model = Gated()
    rt = over(fresh_bank(), model=model)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rt.session(user=USER, session_id=SESSION).send, "My cat is called Miso.")
        await model.waits.wait()
        await rt.remember(USER, "The passport expires in May.", origin=CHAT)
        model.gate.set()

    texts = {record.text for record in await rt.memories(USER)}
    assert texts == {"The passport expires in May.", "My cat is called Miso."}


@pytest.mark.parametrize("seed", range(20))
async def test_o11_changes_at_the_same_time_are_as_if_one_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        rt = over(fresh_bank())
        first = await rt.remember(USER, "The code is 1.", origin=CHAT)
        await _all_at_once(rt, first, [int(turns) for turns in rng.integers(0, 6, size=4)])

        texts = {record.text for record in await rt.memories(USER)}
        assert "The passport expires in May." in texts
        codes = texts - {"The passport expires in May."}
        assert codes in ({"The code is 2."}, {"The code is 3."}, set())


async def _all_at_once(rt: Runtime, first: str, delays: Sequence[int]) -> None:
    async def later(turns: int, text: str) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        try:
            if text:
                await rt.correct(USER, first, text)
            else:
                await rt.forget(USER, first)
        except (ValueError, RecordNotFound, ConflictingWrite):
            return  # refused: somebody else was first

    async with anyio.create_task_group() as tasks:
        for turns, text in zip(delays, ["The code is 2.", "The code is 3.", ""], strict=False):
            tasks.start_soon(later, turns, text)
        await rt.remember(USER, "The passport expires in May.", origin=CHAT)


class Limited(ScriptedModel):
    """Refuses every 7th call, and from one call on every one."""

    def __init__(self, ends_at: int) -> None:
        super().__init__()
        self._ends_at = ends_at
        self._calls = 0

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        self._calls += 1
        if self._calls % 7 == 0 or self._calls >= self._ends_at:
            raise ModelUnavailable("status 429")
        return await super().complete(request, sink=sink)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return super().count_tokens(messages)


async def test_o13_a_run_that_was_limited_goes_on_to_the_same_result(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", examples())
    cache, stops = InMemoryCache(), 0
    whole = await decided(config(data), tmp_path / "whole", equipment())

    for ends_at in (5, 12, 20, 30, 1000, 1000, 1000, 1000, 1000, 1000):
        try:
            rows = await decided(config(data), tmp_path / "out", equipment(Limited(ends_at), cache))
        except ModelUnavailable:
            stops += 1
        else:
            break
    else:
        raise AssertionError("the run never ended")

    assert stops > 0
    assert by_text(rows, data) == by_text(whole, data)


async def assay(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """A command as a user runs it."""
    with anyio.fail_after(15):
        done = await anyio.run_process(
            [*ASSAY, *arguments], check=False, input=b"Hello.\n", env={**os.environ, **environment}
        )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        "chat --model nosuch --embedder hashing",
        "chat --model scripted --embedder nosuch",
        "chat --model scripted --embedder hashing --guard nosuch",
        "chat --model openai:m --base-url ftp://x --embedder hashing",
        "explain decision --embedder hashing --bank {bank} nosuch",
        "replay causal-locomo --data {bank}/nosuch.jsonl",
        "replay games --workers 0",
        "replay --resume {bank}/nosuch",
        "replay attacks --data {bank}/nosuch.jsonl",
        "demo --model nosuch",
    ],
)
async def test_o20_a_bad_option_ends_the_command_at_once(words: str, tmp_path: Path) -> None:
    bank = tmp_path / "bank"
    made, _, _ = await assay(
        "chat", "--bank", str(bank), "--model", "scripted", "--embedder", "hashing"
    )
    rest = words.format(bank=bank).split()
    given = [*rest, "--bank", str(bank)] if rest[0] == "chat" else rest

    code, out, err = await assay(*given, XDG_DATA_HOME=str(tmp_path / "data"))

    assert (made, code, out) == (0, 2, "")
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err


CANARIES = [f"CANARY-000{i}" for i in range(1, 5)]


@pytest.mark.parametrize(
    "url",
    [
        "https://u:CANARY-0002@host.example/v1",
        "https://host.example/v1?key=CANARY-0003",
        "https://host.example:CANARY-0003/v1",
        "CANARY-0003://host.example/v1",
        "https://[CANARY-0003/v1",
    ],
)
async def test_o28_a_key_in_a_url_is_not_repeated(url: str, tmp_path: Path) -> None:
    said = await _chat(tmp_path, "--base-url", url)

    assert said[0] == 2
    assert canaries_in(tmp_path, said) == []


async def test_o28_a_key_that_an_endpoint_echoes_is_shown_nowhere(tmp_path: Path) -> None:
    echo = http({"error": {"message": "bad key sk-test-CANARY-0001"}}, status=401)
    async with serving(echo) as server:
        said = await _chat(tmp_path, "--base-url", server.url)

    assert "status 401" in said[2]
    assert canaries_in(tmp_path, said) == []


async def test_o28_a_key_that_works_is_kept_nowhere(tmp_path: Path) -> None:
    async with serving(http(answer("Hello to you."))) as server:
        said = await _chat(tmp_path, "--base-url", server.url)

        assert "sk-test-CANARY-0001" in server.heads[0]

    assert said[:2] == (0, "Hello to you.\n"), said[2]
    assert canaries_in(tmp_path, said) == []


async def _chat(folder: Path, *arguments: str) -> tuple[int, str, str]:
    chat = ("chat", "--bank", str(folder / "bank"), "--embedder", "hashing", "--model", "openai:m")
    return await assay(
        *chat,
        *arguments,
        OPENAI_API_KEY="sk-test-CANARY-0001",
        XDG_DATA_HOME=str(folder / "data"),
        XDG_CONFIG_HOME=str(folder / "config"),
    )


def canaries_in(folder: Path, said: tuple[int, str, str]) -> list[str]:
    """Where a canary is found: in what was printed, or in any file that was written."""
    texts = {"stdout": said[1].encode(), "stderr": said[2].encode()}
    texts |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [where for where, text in texts.items() for c in CANARIES if c.encode() in text]
