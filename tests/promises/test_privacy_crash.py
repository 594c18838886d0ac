"""An erasure that a crash cut short is finished by opening the bank, or had not begun."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
import pytest
from tests.stores.support import NoonClock

from assay.errors import ErasedInput
from assay.runtime.limits import namespace_of
from assay.stores.bank import open_bank
from assay.stores.protocols import Bank, CacheRow, Changes, JournalEntry
from assay.stores.records import ArchiveTurn, Namespace, SessionId

from .canaries import EMBEDDER, folder_bytes, hits, opened, said
from .conftest import Promise

ROOT = Path(__file__).parents[2]
FINISHES = "an erasure cut short finishes by itself"
USERS = (
    Namespace("ann"),
    Namespace("ben"),
    namespace_of("acme", "cat"),
    namespace_of("acme", "dan"),
)
"""Who says which canaries: Ann 0 and 1, Ben 2 and 3, and so on; the odd ones last."""
GONE = {"forget": [0], "subject": [0, 1], "tenant": [4, 5, 6, 7]}
ALL = range(2 * len(USERS))


class Content(NamedTuple):
    """All that can be read of everybody."""

    records: list[Changes]
    turns: list[list[ArchiveTurn]]
    cache: list[list[CacheRow]]
    journal: dict[SessionId, list[JournalEntry] | None]


async def read_all(bank: Bank) -> Content:
    return Content(
        records=[await bank.store.changes(user, after=0) for user in USERS],
        turns=[await bank.archive.all(user) for user in USERS],
        cache=[[row async for row in bank.cache.rows(user)] for user in USERS],
        journal={s: await read_stream(bank, s) for s in await bank.journal.sessions()},
    )


async def read_stream(bank: Bank, session: SessionId) -> list[JournalEntry] | None:
    try:
        return await bank.journal.read(session)
    except ErasedInput:
        return None


async def fill(folder: Path) -> None:
    """Make ``before``: half of the canaries in the bank's file and vectors, half in its log."""
    for odd in range(2):
        async with opened(folder / "made") as runtime:
            for n in range(odd, len(ALL), 2):
                await runtime.session(user=USERS[n // 2], session_id=f"s{n}").send(said(n))
                await runtime.recall(USERS[n // 2], said(n))
            if odd:
                shutil.copytree(folder / "made", folder / "before")


def erasures(kind: str, folder: Path, steps: range) -> list[tuple[int, str]]:
    """Let a process die at each step until one comes through; gives how each ended."""
    ran = subprocess.run(  # noqa: S603 - our own script
        [
            *(sys.executable, "-m", "tests.promises.privacy_child", kind, str(folder)),
            *map(str, (0, *steps)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split(" ", 1) for line in ran.stdout.splitlines()]
    return [(int(step), how) for step, how in lines]


async def reopened(path: Path) -> tuple[Content, list[int]]:
    """What opening alone leaves to be read, and the canaries found in the folder meanwhile."""
    async with open_bank(path, embedder=EMBEDDER, clock=NoonClock()) as bank:
        return await read_all(bank), await hits(folder_bytes(path), ALL)


@pytest.mark.parametrize("kind", list(GONE))
@pytest.mark.promise("P19", FINISHES)
async def test_a_killed_erasure_is_finished_or_had_not_begun(
    kind: str, tmp_path: Path, promise: Promise
) -> None:
    await fill(tmp_path)
    shutil.copytree(tmp_path / "before", tmp_path / "untouched")
    steps = range(1, 10_000) if promise.long else range(1, 10_000, 31)

    ended = await anyio.to_thread.run_sync(erasures, kind, tmp_path, steps)

    before, everybody = await reopened(tmp_path / "untouched")
    after, others = await reopened(tmp_path / "0")
    assert everybody == list(ALL)
    assert others == [n for n in ALL if n not in GONE[kind]]
    kept = {"before": 0, "after": 0}
    for step, how in ended[1:-1]:
        assert how == "killed", step
        content, found = await reopened(tmp_path / str(step))
        assert (content, found) in ((before, everybody), (after, others)), step
        kept["before" if content == before else "after"] += 1
    assert ended[-1][1] == "done"
    assert min(kept.values()) > 0
    promise.kept(
        f"{kind}: {len(ended) - 2} kills, {kept['before']} before it began, {kept['after']} finished "
        "at the next opening, canary bytes found = 0"
    )
