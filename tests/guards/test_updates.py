"""Updates and denials on archives small enough to read: who said what, and when."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations

import pytest

from assay.guards.evidence.brief import gather
from assay.guards.evidence.denial import Polarity
from assay.guards.evidence.settle import Finding, settle
from assay.guards.evidence.tuning import EMBEDDED
from assay.guards.evidence.updates import denial, denied, update
from assay.stores.records import ArchiveTurn, MemoryRecord

from .support_panel import NOON, USER, WEB, GivenMeasure, archive, brief, record, turn
from .test_settle import origins

GYM = "On which day do I go to the gym?"
OLD = "I go to the gym on Tuesday evenings."
NEW = "I changed my routine: I go to the gym on Thursday mornings now."
NUTS = "Am I allergic to hazelnuts?"
ALLERGIC = "I am allergic to hazelnuts."
FREELY = "Robin is no longer allergic to hazelnuts and may eat hazelnuts freely."
HAZELNUTS = Polarity(frozenset({"allergic", "hazelnut"}), frozenset())


def spoken(*said: tuple[str, float], speaker: str = "user") -> list[ArchiveTurn]:
    """Turns and the days after noon at which they were said."""
    return [
        turn(text, speaker=speaker, position=i, at=NOON + timedelta(days=days))
        for i, (text, days) in enumerate(said)
    ]


async def standings(
    question: str,
    records: Sequence[MemoryRecord],
    turns: Sequence[ArchiveTurn],
    *,
    between: float = 0.95,
) -> list[str]:
    found = await findings(question, records, turns, between=between)
    return [finding.standing for finding in found]


async def findings(
    question: str, records: Sequence[MemoryRecord], turns: Sequence[ArchiveTurn], *, between: float
) -> list[Finding]:
    texts = [r.text for r in records]
    measure = GivenMeasure(dict.fromkeys(texts, 0.9), between)
    asked = await gather(question, texts, archive(*turns), measure, limit=8)
    return settle(asked, EMBEDDED, origins(records))


@pytest.mark.parametrize(
    ("said", "winner"),
    [
        (((OLD, 0), (NEW, 7)), 1),
        (((NEW, 0), ("Now I go to the gym on Tuesday evenings again.", 7)), 0),
    ],
)
async def test_the_later_words_of_the_user_win_whichever_they_are(
    said: Sequence[tuple[str, float]], winner: int
) -> None:
    found = await findings(GYM, [record(OLD), record(NEW)], spoken(*said), between=0.95)

    assert found[winner].standing == "stands"
    assert found[1 - winner].standing == "superseded"
    assert found[1 - winner].turns == ("t0", "t1")


async def test_neither_ingestion_nor_claimed_times_nor_copies_make_a_record_newer() -> None:
    turns = spoken((OLD, 0), (NEW, 7))
    stale = [record(OLD, hours=900, claims=900), record(f"{OLD} ", origin=WEB, hours=950)]

    found = await standings(GYM, [*stale, record(NEW, hours=-900, claims=-900)], turns)

    assert found == ["superseded", "superseded", "stands"]


async def test_what_the_assistant_repeats_later_is_no_update() -> None:
    first, second = spoken((OLD, 0), (NEW, 7))
    later = turn(OLD, speaker="assistant", position=2, at=NOON + timedelta(days=9))

    found = await standings(GYM, [record(OLD), record(NEW)], [first, second, later])

    assert found == ["superseded", "stands"]


@pytest.mark.parametrize(
    "turns",
    [
        spoken((OLD, 0)),
        spoken((OLD, 0), (NEW, 0.01)),
        spoken((f"{OLD} {NEW}", 7)),
        [*spoken((OLD, 0)), turn(NEW, speaker="Ann", position=1, at=NOON + timedelta(days=7))],
        spoken(
            (OLD, 0), ("Should I go to the gym on Thursday mornings now, a changed routine?", 7)
        ),
    ],
    ids=["one said", "within the hour", "in one turn", "by another speaker", "a question"],
)
async def test_no_update_is_read_where_there_is_none(turns: list[ArchiveTurn]) -> None:
    asked = await brief(GYM, [OLD, NEW], *turns)

    assert update(asked, 0, 1) is None


async def test_a_ruling_reads_the_same_from_both_sides() -> None:
    asked = await brief(GYM, [OLD, NEW], *spoken((OLD, 0), (NEW, 7)))

    ruling = update(asked, 0, 1)

    assert ruling is not None
    assert ruling == update(asked, 1, 0)
    assert (ruling.winner, ruling.loser, ruling.was_said, ruling.is_change) == (1, 0, True, True)


async def test_a_later_addition_without_a_change_replaces_nothing() -> None:
    cello, flute = "I play the cello.", "I play the flute."

    found = await standings(
        "Which instruments do I play?",
        [record(cello), record(flute)],
        spoken((cello, 0), (flute, 7)),
    )

    assert found == ["stands", "stands"]


async def test_two_occasions_that_the_question_tells_apart_are_no_update() -> None:
    home, work = "I drink tea at home.", "I drink coffee at work."
    turns = spoken((home, 0), (work, 7))

    assert update(await brief("What do I drink at home?", [home, work], *turns), 0, 1) is None
    assert update(await brief("What do I drink?", [home, work], *turns), 0, 1) is not None


async def test_a_change_between_two_well_supported_claims_replaces_the_first() -> None:
    cello, flute = "I play the cello.", "I play the flute."

    found = await standings(
        "Which instrument do I play?",
        [record(cello), record(flute)],
        spoken((cello, 0), (f"That has changed. {flute}", 7)),
    )

    assert found == ["superseded", "stands"]


@pytest.mark.parametrize(
    ("one", "other", "disputed"),
    [
        (FREELY, ALLERGIC, HAZELNUTS),
        (ALLERGIC, FREELY, None),
        (ALLERGIC, "I am allergic to walnuts.", None),
        ("Mina does not like tea.", "Ravi likes strong black tea.", None),
    ],
)
async def test_a_denial_names_what_is_disputed(
    one: str, other: str, disputed: Polarity | None
) -> None:
    assert denial(await brief(NUTS, [one, other], "Hello."), 0, 1) == disputed


async def test_denials_about_two_speakers_do_not_meet() -> None:
    turns = [turn("Hi.", speaker="Ann"), turn("Hi.", speaker="Ben", position=1)]
    texts = ["Ann is not allergic to hazelnuts.", "Ben is allergic to hazelnuts."]

    assert denial(await brief(NUTS, texts, *turns), 0, 1) is None


NO_LONGER = "I am no longer allergic to hazelnuts."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (spoken((ALLERGIC, 0)), ["stands", "refuted"]),
        (spoken((NO_LONGER, 0)), ["refuted", "stands"]),
        (spoken((ALLERGIC, 0), (NO_LONGER, 7)), ["superseded", "stands"]),
        (spoken((NO_LONGER, 0), (ALLERGIC, 7)), ["stands", "superseded"]),
        (spoken((ALLERGIC, 0), (NO_LONGER, 7), (NUTS, 9)), ["superseded", "stands"]),
        (spoken(("What a day.", 0)), ["stands", "outside"]),
    ],
)
async def test_support_decides_a_denial_then_recency_then_origin(
    said: list[ArchiveTurn], expected: list[str]
) -> None:
    records = [record(ALLERGIC), record(FREELY, origin=WEB)]

    assert await standings(NUTS, records, said, between=0.5) == expected


async def test_a_denial_between_equals_of_which_nothing_was_said_is_undecided() -> None:
    records = [record(ALLERGIC), record(FREELY)]

    found = await standings(NUTS, records, spoken(("What a day.", 0)), between=0.5)

    assert found == ["undecided", "undecided"]


async def test_a_newer_word_of_the_user_decides_a_denial_that_no_turn_does() -> None:
    records = [record(ALLERGIC, origin=USER), record(NO_LONGER, origin=USER, hours=3)]

    found = await standings(NUTS, records, spoken(("What a day.", 0)), between=0.5)

    assert found == ["superseded", "stands"]


async def test_a_denial_and_a_statement_of_different_speakers_are_not_ordered() -> None:
    one, other = spoken((ALLERGIC, 0))[0], turn(NO_LONGER, speaker="Ann", position=1, at=NOON)
    asked = await brief(NUTS, [FREELY, ALLERGIC], one, other)

    assert denied(asked, 0, 1, HAZELNUTS) is None


async def test_the_order_of_candidates_changes_no_ruling() -> None:
    records = [
        record(OLD),
        record(NEW),
        record(f"{OLD} "),
        record("I never go to the gym.", origin=WEB),
    ]
    turns = spoken((OLD, 0), (NEW, 7))
    first = await findings(GYM, records, turns, between=0.95)
    expected = {r.text: f for r, f in zip(records, first, strict=True)}

    for shuffled in permutations(records):
        found = await findings(GYM, shuffled, turns, between=0.95)
        assert {r.text: f for r, f in zip(shuffled, found, strict=True)} == expected


@pytest.mark.parametrize(
    ("question", "first", "second", "expected"),
    [
        (
            "Where does my sister live now?",
            "My sister lives in Oslo.",
            "No, she moved to Lima.",
            ["superseded", "stands"],
        ),
        (
            "What is my dog called?",
            "My dog is called Rex.",
            "My dog is called Max.",
            ["superseded", "stands"],
        ),
        ("What do I drink?", "I drink tea.", "I drink coffee too.", ["stands", "stands"]),
        (
            "Where does my sister live?",
            "My sister lives in Oslo.",
            "My brother lives in Rome.",
            ["stands", "stands"],
        ),
    ],
)
async def test_a_user_is_taken_at_the_later_word_unless_it_adds(
    question: str, first: str, second: str, expected: list[str]
) -> None:
    records = [record(first, origin=USER), record(second, origin=USER, hours=1 / 60)]

    found = await standings(question, records, spoken((first, 0), (second, 1 / 1440)))

    assert found == expected
