"""Retrieval: dense and keyword ranks together, only what holds, and enough of it."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.stores.embedded import EmbeddedRetriever
from assay.stores.embeddings import HashingEmbedder
from assay.stores.faiss import FaissIndex
from assay.stores.hybrid import EvidenceSearch, HybridRetriever, fused
from assay.stores.memory import InMemoryArchive
from assay.stores.protocols import Ranked
from assay.stores.records import Candidate, RecordId
from assay.stores.sqlite import Database
from assay.stores.sqlite_records import SqliteRecords

from .support import ANN, BEN, HOUR, NOON, OpenBank, ids, memory, turn


def found(candidates: list[Candidate]) -> list[str]:
    return ids([candidate.record for candidate in candidates])


def ranking(*names: str) -> list[Ranked]:
    return [Ranked(RecordId(name), 1.0) for name in names]


def test_fusion_adds_reciprocal_ranks() -> None:
    result = fused(ranking("a", "b"), ranking("b", "c"))

    # By hand: b = 1/62 + 1/61, a = 1/61, c = 1/62, all over 2/61.
    assert [r.record_id for r in result] == ["b", "a", "c"]
    assert [r.score for r in result] == pytest.approx(
        [(1 / 62 + 1 / 61) * 61 / 2, 0.5, 61 / 124], rel=1e-12
    )


def test_first_in_both_lists_scores_one() -> None:
    assert fused(ranking("a"), ranking("a")) == [Ranked(RecordId("a"), 1.0)]


def test_fusing_nothing_gives_nothing() -> None:
    assert fused([], []) == []


async def test_the_best_record_comes_first_with_a_score_of_at_most_one(
    open_any_bank: OpenBank,
) -> None:
    async with open_any_bank() as bank:
        await bank.store.write(
            [memory("r1", "I like tea"), memory("r2", "my dog is Rex"), memory("r3", "rain again")]
        )

        candidates = await bank.retriever.retrieve(ANN, "who is my dog?", limit=9, at=NOON)

    assert found(candidates)[0] == "r2"
    assert sorted(found(candidates)) == ["r1", "r2", "r3"]
    assert all(0 < candidate.score <= 1 for candidate in candidates)
    assert candidates == sorted(candidates, key=lambda c: -c.score)


async def test_no_other_namespace_is_retrieved_from(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("a1"), memory("b1", namespace=BEN)])

        assert found(await bank.retriever.retrieve(BEN, "carrots", limit=9, at=NOON)) == ["b1"]


async def test_superseded_and_expired_records_are_not_candidates(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write(
            [
                memory("old", "Rex likes carrots"),
                memory("new", "Rex likes carrots no more", supersedes="old"),
                memory("expired", "Rex likes carrots today", valid_to=NOON),
                memory("later", "Rex likes carrots then", valid_from=NOON + HOUR),
            ]
        )

        assert found(await bank.retriever.retrieve(ANN, "carrots", limit=9, at=NOON)) == ["new"]


async def test_there_are_as_many_candidates_as_asked_for_while_the_bank_has_them(
    open_any_bank: OpenBank,
) -> None:
    # 300 better matches that no longer hold stand before the three that do.
    expired = [memory(f"e{n}", f"rex rex rex {n}", valid_to=NOON) for n in range(300)]
    current = [memory(f"c{n}", f"something about rain and rex {n}") for n in range(3)]
    async with open_any_bank() as bank:
        await bank.store.write([*expired, *current])

        assert len(await bank.retriever.retrieve(ANN, "rex", limit=3, at=NOON)) == 3
        assert len(await bank.retriever.retrieve(ANN, "rex", limit=4, at=NOON)) == 3
        assert len(await bank.retriever.retrieve(ANN, "rex", limit=1, at=NOON)) == 1
        assert await bank.retriever.retrieve(ANN, "rex", limit=0, at=NOON) == []


async def test_a_limit_above_the_bank_gives_the_bank(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory(f"r{n}") for n in range(3)])

        assert len(await bank.retriever.retrieve(ANN, "rex", limit=10_000, at=NOON)) == 3


async def test_a_question_without_a_shared_word_still_finds_the_nearest(
    open_any_bank: OpenBank,
) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("r1", "carrots"), memory("r2", "umbrella")])

        assert found(await bank.retriever.retrieve(ANN, "carrot", limit=1, at=NOON)) == ["r1"]


@pytest.mark.parametrize(
    ("text", "limit", "message"), [("a\0b", 3, "NUL"), ("rex", -1, "limit must be at least 0")]
)
async def test_a_question_that_cannot_be_asked_is_refused(
    open_any_bank: OpenBank, text: str, limit: int, message: str
) -> None:
    async with open_any_bank() as bank:
        with pytest.raises(ValueError, match=message):
            await bank.retriever.retrieve(ANN, text, limit=limit, at=NOON)


async def test_both_banks_rank_alike(open_any_bank: OpenBank) -> None:
    texts = [
        "Rex barked at the train",
        "carrots for Rex on Monday",
        "piano lessons on Monday",
        "the train was late",
        "Caroline moved to Paris",
    ]
    async with open_any_bank() as bank:
        await bank.store.write([memory(f"r{n}", text) for n, text in enumerate(texts)])

        candidates = await bank.retriever.retrieve(ANN, "Rex on the train", limit=3, at=NOON)

    assert found(candidates) == ["r0", "r3", "r1"]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
async def test_one_hop_retrieval_agrees_with_the_parts(seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    words = ["rex", "carrots", "tea", "paris", "rain", "piano", "cousin", "march", "train"]
    records = [
        memory(
            f"r{n}",
            " ".join([*rng.choice(words, rng.integers(1, 6)), f"n{n}"]),
            valid_to=NOON if rng.random() < 0.6 else None,
            supersedes=f"r{n + 3}" if rng.random() < 0.1 else None,
        )
        for n in range(120)
    ]
    question = " ".join(rng.choice(words, 3))
    embedder = HashingEmbedder(32)
    with tempfile.TemporaryDirectory() as folder:
        async with Database(Path(folder) / "bank.sqlite3") as database:
            store = SqliteRecords(database)
            await store.write(records)
            index = FaissIndex(store=store, embedder=embedder, folder=Path(folder), bank="b")
            in_one = EmbeddedRetriever(database=database, index=index, embedder=embedder)
            in_parts = HybridRetriever(
                records=store, keywords=store, vectors=index, embedder=embedder
            )

            got = await in_one.retrieve(ANN, question, limit=limit, at=NOON)

            assert got == await in_parts.retrieve(ANN, question, limit=limit, at=NOON)
            assert len(got) == min(limit, len(await store.current(ANN, at=NOON)))


async def test_evidence_is_reranked_by_meaning() -> None:
    archive = InMemoryArchive()
    await archive.append(
        [
            turn(0, "the dog the dog the dog barked and then the neighbours called about it"),
            turn(1, "dog", speaker="assistant"),
            turn(2, "unrelated"),
            turn(3, "my dog", namespace=BEN),
        ]
    )
    search = EvidenceSearch(archive, HashingEmbedder(), ANN)

    [turns, none, unrelated] = await search(["assistant: dog", "zebra", "unrelated"], limit=2)

    assert [t.position for t in turns] == [1, 0]
    assert none == []
    assert [t.position for t in unrelated] == [2]
    assert await search(["dog"], limit=0) == [[]]
    assert await search([], limit=3) == []
    assert await search(["zebra"], limit=3) == [[]]
