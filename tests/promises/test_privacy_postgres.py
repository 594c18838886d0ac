"""What is erased is in no row of a bank in PostgreSQL, in no spelling."""

import zipfile
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import assay
from assay.errors import ErasedInput
from assay.stores.postgres.backup import back_up
from assay.stores.words import words

from .canaries import EMBEDDER, hits, said
from .conftest import Promise


def opened(url: str) -> AbstractAsyncContextManager[assay.Runtime]:
    """A runtime over the bank in a database with a small embedder."""
    return assay.open_runtime(model="scripted", bank=url, embedder=EMBEDDER, guard="vector")


async def rows_of(url: str, file: Path) -> bytes:
    """Every row of every table, as PostgreSQL copies them; ``file`` is made for that."""
    await back_up(url, file)
    with zipfile.ZipFile(file) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


async def traces(content: bytes, numbers: Iterable[int]) -> list[int]:
    """Which canaries are there: as text, as a word that is searched for, or as a vector."""
    found = set(await hits(content, numbers))
    for n in numbers:
        vector = (await EMBEDDER.embed([said(n)], kind="passage")).astype(">f4").tobytes()
        if words(said(n))[-1].encode() in content or vector in content:
            found.add(n)
    return sorted(found)


@pytest.mark.promise("P19", "what was erased is in no row of a database")
async def test_erased_canaries_are_in_no_row(
    clean_database: str, tmp_path: Path, promise: Promise
) -> None:
    count = promise.times(15, 60)
    async with opened(clean_database) as runtime:
        for n in range(count):
            await runtime.session(user="ann", session_id=f"s{n}").send(said(n))
        records = {record.text: record.id for record in await runtime.memories("ann")}
        before = await rows_of(clean_database, tmp_path / "before")
        doomed = range(0, count, 5)
        for n in doomed:
            await runtime.forget("ann", records[said(n)])
    after = await rows_of(clean_database, tmp_path / "after")

    assert await traces(before, range(count)) == list(range(count))
    assert await traces(after, doomed) == []
    assert await traces(after, range(1, count, 5)) == list(range(1, count, 5))
    promise.kept(f"{len(doomed)} of {count} canaries erased, canary bytes found = 0")


@pytest.mark.promise("P19", "an erased subject is in no row of a database but by name")
async def test_an_erased_subject_is_in_no_row(
    clean_database: str, tmp_path: Path, promise: Promise
) -> None:
    async with opened(clean_database) as runtime:
        await runtime.session(user="ann", session_id="s").send(said(1))
        await runtime.session(user="ben", session_id="s").send(said(2))

        receipt = await runtime.erase_user("ann")

        with pytest.raises(ErasedInput, match="erased input"):
            await runtime.session(user="ann", session_id="s").last_reply()
        reply = await runtime.session(user="ann", session_id="t").send("hello again")
    content = await rows_of(clean_database, tmp_path / "copy")

    assert reply.text
    assert await traces(content, range(1, 3)) == [2]
    promise.kept(
        f"{len(receipt.record_ids)} record, {receipt.turns} turns, {receipt.entries} entries gone"
    )
