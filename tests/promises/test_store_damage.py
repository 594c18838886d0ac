"""A damaged bank or index is noticed: no wrong record, no silent loss."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs
from tests.stores.support import ANN, NOON, memory

from assay.errors import StoreCorrupt, StoreError
from assay.stores.bank import FILE_NAME, VECTORS_NAME
from assay.stores.inspection import inspect_bank
from assay.stores.salvage import salvage_bank

from .bank_content import ROUNDS, Content, add_round, content_of, filled, opened, read_all
from .conftest import Promise

NOTHING_WRONG = "a damaged bank never gives a wrong record or a silent empty bank"


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def outcome(bank: Path, truth: Content) -> str:
    """``noticed`` or ``same``; anything else is a lie."""
    try:
        got = anyio.run(content_of, bank)
    except StoreError:
        return "noticed"
    return "same" if got == truth else "wrong"


async def left_with_its_log(path: Path, kept: Path) -> Content:
    """Fill a bank and copy it while it is open, log included, as a kill would leave it."""
    async with opened(path) as bank:
        for k in range(ROUNDS):
            await add_round(bank, k)
        await anyio.to_thread.run_sync(
            lambda: shutil.copytree(path, kept, ignore=shutil.ignore_patterns("*-shm"))
        )
        return await read_all(bank)


def tried(source: Path, name: str, truth: Content, bits: list[int], work: Path) -> dict[str, int]:
    counts = {"noticed": 0, "same": 0, "wrong": 0}
    for bit in bits:
        shutil.copytree(source, work)
        flip(work / name, bit)
        counts[outcome(work, truth)] += 1
        shutil.rmtree(work)
    return counts


@pytest.mark.promise("P4", NOTHING_WRONG)
def test_flipped_bits_of_the_file_never_give_a_wrong_record(
    promise: Promise, tmp_path: Path
) -> None:
    truth = anyio.run(filled, tmp_path / "bank")
    size = 8 * (tmp_path / "bank" / FILE_NAME).stat().st_size
    rng = random.Random(11)  # noqa: S311 - where to flip, not a secret
    header = rng.sample(range(800), promise.times(10, 200))
    middle = rng.sample(range(800, size), promise.times(15, 300))

    counts = tried(tmp_path / "bank", FILE_NAME, truth, header + middle, tmp_path / "work")

    assert counts["wrong"] == 0
    assert counts["noticed"] > 0
    promise.kept(
        f"{len(header)} bits of the header and {len(middle)} behind it flipped: "
        f"{counts['noticed']} noticed, {counts['same']} without effect, {counts['wrong']} wrong"
    )


@pytest.mark.promise("P4", NOTHING_WRONG)
def test_flipped_bits_of_the_log_never_lose_a_commit_in_silence(
    promise: Promise, tmp_path: Path
) -> None:
    truth = anyio.run(left_with_its_log, tmp_path / "bank", tmp_path / "left")
    log = f"{FILE_NAME}-wal"
    size = 8 * (tmp_path / "left" / log).stat().st_size
    bits = random.Random(12).sample(range(size), promise.times(15, 300))  # noqa: S311 - where

    counts = tried(tmp_path / "left", log, truth, bits, tmp_path / "work")

    assert outcome(tmp_path / "left", truth) == "same"
    assert counts == {"noticed": len(bits), "same": 0, "wrong": 0}
    promise.kept(f"{counts['noticed']} of {len(bits)} flipped bits of the log noticed")


@pytest.mark.promise("P4", NOTHING_WRONG)
def test_an_older_file_put_in_place_is_noticed_and_what_is_there_can_be_salvaged(
    promise: Promise, tmp_path: Path
) -> None:
    bank = tmp_path / "bank"
    anyio.run(filled, bank)
    shutil.copy(bank / FILE_NAME, tmp_path / "older")
    anyio.run(_add_one_more, bank)
    shutil.copy(tmp_path / "older", bank / FILE_NAME)

    with pytest.raises(StoreCorrupt, match=r"has lost 1 of \d+ acknowledged commits"):
        anyio.run(content_of, bank)
    found = inspect_bank(bank)
    kept = salvage_bank(bank, tmp_path / "new")

    assert not found.ok
    assert kept.lost_commits == 1
    assert kept.records == 8 * ROUNDS
    assert inspect_bank(tmp_path / "new").ok
    promise.kept(f"an older file noticed; {kept.records} records salvaged, 1 lost commit reported")


async def _add_one_more(bank: Path) -> None:
    async with opened(bank) as one:
        await one.store.write([memory("last", "Rex sleeps")])


def salvaged(source: Path, out: Path, truth: Content) -> int:
    """How many records come through; all of them are true ones."""
    try:
        kept = salvage_bank(source, out)
    except StoreCorrupt:  # the page that says where everything is; then nothing is made
        assert not out.exists()
        return 0
    got = anyio.run(content_of, out)
    assert set(map(repr, got.everything)) <= set(map(repr, truth.everything))
    assert set(map(repr, got.turns)) <= set(map(repr, truth.turns))
    assert got.journal == truth.journal[: len(got.journal)]
    assert kept.lost or got.everything == truth.everything
    return kept.records


@pytest.mark.promise("P4", NOTHING_WRONG)
def test_salvage_brings_back_true_rows_only(promise: Promise, tmp_path: Path) -> None:
    truth = anyio.run(filled, tmp_path / "bank")
    pages = (tmp_path / "bank" / FILE_NAME).stat().st_size // 4096
    rng = random.Random(13)  # noqa: S311 - where to destroy, not a secret
    destroyed = rng.sample(range(2, pages), promise.times(4, pages - 3))
    kept: list[int] = []

    for page in destroyed:
        shutil.copytree(tmp_path / "bank", tmp_path / "work")
        _destroy(tmp_path / "work" / FILE_NAME, page)
        before = (tmp_path / "work" / FILE_NAME).read_bytes()
        kept.append(salvaged(tmp_path / "work", tmp_path / "new", truth))
        assert (tmp_path / "work" / FILE_NAME).read_bytes() == before
        shutil.rmtree(tmp_path / "work")
        shutil.rmtree(tmp_path / "new", ignore_errors=True)

    assert sum(kept) > len(destroyed) * len(truth.everything) / 2
    promise.kept(
        f"{len(destroyed)} pages destroyed one at a time: {sum(kept):,} of "
        f"{len(destroyed) * len(truth.everything):,} records salvaged, none wrong; nothing could "
        f"be read after {kept.count(0)} of them"
    )


def _destroy(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xa5" * 4096)


async def best(bank: Path) -> list[str]:
    async with opened(bank) as one:
        found = await one.retriever.retrieve(ANN, "Rex number 3 of 4", limit=5, at=NOON)
        return [candidate.record.id for candidate in found]


@pytest.mark.promise("P3", "SQLite is the truth: a damaged vector file is noticed and made anew")
def test_a_damaged_vector_file_changes_no_answer(promise: Promise, tmp_path: Path) -> None:
    bank = tmp_path / "bank"
    anyio.run(filled, bank)
    truth = anyio.run(best, bank)
    (path,) = (bank / VECTORS_NAME).iterdir()
    whole = path.read_bytes()
    rng = random.Random(14)  # noqa: S311 - where to flip, not a secret
    bits = rng.sample(range(8 * len(whole)), promise.times(10, 150))
    cuts = rng.sample(range(len(whole)), promise.times(5, 60))

    damaged: list[Callable[[], object]] = [
        *(lambda bit=bit: flip(path, bit) for bit in bits),
        *(lambda cut=cut: path.write_bytes(whole[:cut]) for cut in cuts),
    ]
    noticed = 0
    for damage in damaged:
        path.write_bytes(whole)
        damage()
        with capture_logs() as logs:
            assert anyio.run(best, bank) == truth
        noticed += any(entry["event"] == "index.rebuilt" for entry in logs)

    assert noticed == len(damaged)
    promise.kept(f"{len(bits)} flips and {len(cuts)} cuts: {noticed} noticed, same answers")
