"""What is erased is nowhere in the bank's folder, in no spelling."""

from pathlib import Path

import pytest

from assay.errors import ErasedInput

from .canaries import folder_bytes, hits, opened, said
from .conftest import Promise


@pytest.mark.promise("P19", "what was erased leaves no byte behind")
async def test_erased_canaries_are_nowhere_in_the_folder(tmp_path: Path, promise: Promise) -> None:
    path, count = tmp_path / "bank", promise.times(30, 100)
    async with opened(path) as runtime:
        for n in range(count):
            await runtime.session(user="ann", session_id=f"s{n}").send(said(n))
        records = {r.text: r.id for r in await runtime.memories("ann")}
    doomed = range(0, count, 5)

    async with opened(path) as runtime:
        for n in doomed:
            await runtime.forget("ann", records[said(n)])
        during = folder_bytes(path)
    after = folder_bytes(path)

    assert await hits(during, doomed) == []
    assert await hits(after, doomed) == []
    assert await hits(after, range(1, count, 5)) == list(range(1, count, 5))
    promise.kept(f"{len(doomed)} of {count} canaries erased, canary bytes found = 0")


@pytest.mark.promise("P19", "an erased subject's journal cannot be read any more")
async def test_an_erased_subject_is_gone_and_replay_says_so(
    tmp_path: Path, promise: Promise
) -> None:
    path = tmp_path / "bank"
    async with opened(path) as runtime:
        await runtime.session(user="ann", session_id="s").send(said(1))
        await runtime.session(user="ben", session_id="s").send(said(2))

        receipt = await runtime.erase_user("ann")

        with pytest.raises(ErasedInput, match="erased input"):
            await runtime.session(user="ann", session_id="s").last_reply()
        assert await runtime.turns("ann") == []
        assert [turn.text for turn in await runtime.turns("ben")] == [said(2)]
        reply = await runtime.session(user="ann", session_id="t").send("hello again")
    content = folder_bytes(path)

    assert reply.text
    assert await hits(content, range(1, 3)) == [2]
    promise.kept(
        f"{len(receipt.record_ids)} record, {receipt.turns} turns, {receipt.entries} entries gone"
    )
