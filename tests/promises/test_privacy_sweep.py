"""What is erased is nowhere in the bank's folder, in no spelling."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay
from assay.errors import ErasedInput
from assay.stores.embeddings import HashingEmbedder

from .conftest import Promise

_EMBEDDER = HashingEmbedder(48)


def _said(n: int) -> str:
    return f"My locker in hall {n} opens with kanárie{n * 7919}x{n}."


def _word(n: int) -> str:
    return f"kanárie{n * 7919}x{n}"


def _spellings(n: int) -> Iterator[bytes]:
    word = _word(n)
    yield word.encode()
    yield word.encode("utf-16-le")
    yield word.encode("utf-16-be")
    yield json.dumps(word)[1:-1].encode()
    for shift in range(3):
        # The part of a longer text's base64 that depends on the word alone.
        coded = base64.b64encode(b"\0" * shift + word.encode())
        yield coded[4 if shift else 0 : -4]


async def _vector(n: int) -> bytes:
    return (await _EMBEDDER.embed([_said(n)], kind="passage")).astype("<f4").tobytes()


def _folder(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


def _open(path: Path):  # type: ignore[no-untyped-def]  # noqa: ANN202  # the context manager of the facade
    return assay.open_runtime(model="scripted", bank=path, embedder=_EMBEDDER, guard="vector")


async def _hits(content: bytes, numbers: Iterator[int] | range) -> list[int]:
    return [
        n
        for n in numbers
        if any(s in content for s in _spellings(n)) or await _vector(n) in content
    ]


@pytest.mark.promise("P19", "what was erased leaves no byte behind")
async def test_erased_canaries_are_nowhere_in_the_folder(tmp_path: Path, promise: Promise) -> None:
    path, count = tmp_path / "bank", promise.times(30, 100)
    async with _open(path) as runtime:
        for n in range(count):
            await runtime.session(user="ann", session_id=f"s{n}").send(_said(n))
        records = {r.text: r.id for r in await runtime.memories("ann")}
    doomed = range(0, count, 5)

    async with _open(path) as runtime:
        for n in doomed:
            await runtime.forget("ann", records[_said(n).rstrip()])
        during = _folder(path)
    after = _folder(path)

    assert await _hits(during, doomed) == []
    assert await _hits(after, doomed) == []
    assert await _hits(after, range(1, count, 5)) == list(range(1, count, 5))
    promise.kept(f"{len(doomed)} of {count} canaries erased, canary bytes found = 0")


@pytest.mark.promise("P19", "an erased subject's journal cannot be read any more")
async def test_an_erased_subject_is_gone_and_replay_says_so(
    tmp_path: Path, promise: Promise
) -> None:
    path = tmp_path / "bank"
    async with _open(path) as runtime:
        await runtime.session(user="ann", session_id="s").send(_said(1))
        await runtime.session(user="ben", session_id="s").send(_said(2))

        receipt = await runtime.erase_user("ann")

        with pytest.raises(ErasedInput, match="erased input"):
            await runtime.session(user="ann", session_id="s").last_reply()
        assert await runtime.turns("ann") == []
        assert [turn.text for turn in await runtime.turns("ben")] == [_said(2)]
        reply = await runtime.session(user="ann", session_id="t").send("hello again")
    content = _folder(path)

    assert reply.text
    assert await _hits(content, range(1, 3)) == [2]
    promise.kept(
        f"{len(receipt.record_ids)} record, {receipt.turns} turns, {receipt.entries} entries gone"
    )
