"""A source that floods a bank does not crowd the others out of the candidates."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from assay.runtime.clock import StoppedClock
from assay.stores.bank import memory_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.records import Candidate, MemoryRecord, Namespace, Origin, RecordId, Writer
from assay.stores.spreading import is_spread, spread

USER: tuple[Writer, str] = ("user", "chat")
WEB: tuple[Writer, str] = ("external", "web")
MAIL: tuple[Writer, str] = ("tool", "tool:mail")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ranked(*origins: tuple[Writer, str]) -> list[Candidate]:
    return [
        Candidate(
            record=MemoryRecord(
                id=RecordId(f"r{place}"),
                namespace=Namespace("ann"),
                text="Gate B22.",
                origin=Origin(writer=writer, channel=channel),
                ingested_at=NOON,
            ),
            score=1 / (place + 1),
        )
        for place, (writer, channel) in enumerate(origins)
    ]


def ids(candidates: list[Candidate]) -> list[str]:
    return [str(candidate.record.id) for candidate in candidates]


def test_a_flood_takes_half_of_the_places() -> None:
    flood = ranked(*[WEB] * 6, ("user", "chat"), ("operator", "import:crm"))

    assert ids(spread(flood, 4)) == ["r0", "r1", "r6", "r7"]


def test_places_that_nobody_else_takes_go_back_to_it() -> None:
    flood = ranked(*[WEB] * 6, ("user", "chat"))

    assert ids(spread(flood, 4)) == ["r0", "r1", "r2", "r6"]


def test_the_user_s_own_words_are_never_put_back() -> None:
    own = ranked(*[USER] * 5, ("external", "web"))

    assert ids(spread(own, 4)) == ["r0", "r1", "r2", "r3"]


def test_two_outside_sources_are_two() -> None:
    two = ranked(*[WEB, MAIL] * 3, ("user", "chat"))

    assert ids(spread(two, 4)) == ["r0", "r1", "r2", "r3"]


def test_nothing_wanted_gives_nothing() -> None:
    assert spread(ranked(("user", "chat")), 0) == []


@given(
    st.lists(
        st.sampled_from([USER, WEB, MAIL]),
        max_size=20,
    ),
    st.integers(1, 8),
)
def test_places_are_filled_in_order_and_settled_rankings_stay(
    origins: list[tuple[Writer, str]], limit: int
) -> None:
    candidates = ranked(*origins)

    found = spread(candidates, limit)

    assert len(found) == min(limit, len(candidates))
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    more = ranked(*origins, ("user", "chat"))
    assert not is_spread(candidates, limit) or ids(spread(more, limit)) == ids(found)


async def test_a_flooded_bank_still_proposes_what_the_user_said() -> None:
    bank = memory_bank(embedder=HashingEmbedder(), clock=StoppedClock(NOON))
    flood = [c.record for c in ranked(*[WEB] * 30)]
    said = msgspec.structs.replace(ranked(USER)[0].record, id=RecordId("said"), text="It is B22.")
    await bank.store.write([*flood, said])

    found = await bank.retriever.retrieve(Namespace("ann"), "Which gate?", limit=4, at=NOON)

    assert "said" in ids(found)
    assert len(found) == 4
