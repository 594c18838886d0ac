"""A question about somebody is not answered by what is true of somebody else."""

import pytest

from assay.guards.evidence.subject import about_others
from assay.guards.panel import Panel

from .support_panel import EchoLaboratory, archive, brief, case, record, texts_of, turn

SAID = (
    turn("I play the cello.", speaker="Bruno", position=0),
    turn("I keep a beagle.", speaker="Clara", position=1),
)


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("What does Ann play?", ["Bruno plays the cello."], frozenset({0})),
        (
            "What does Bruno play?",
            ["Bruno plays the cello.", "Clara keeps a beagle."],
            frozenset({1}),
        ),
        ("What does Ann play?", ["The cello stands in the hall."], frozenset[int]()),
        ("What does Brunno play?", ["Bruno plays the cello."], frozenset[int]()),
        ("Who plays the cello?", ["Bruno plays the cello."], frozenset[int]()),
        (
            "What does Ann's son play?",
            ["Bruno is Ann's son.", "Bruno plays the cello."],
            frozenset[int](),
        ),
    ],
)
async def test_whoever_else_a_record_names_it_is_about_them(
    question: str, texts: list[str], expected: frozenset[int]
) -> None:
    assert about_others(await brief(question, texts, *SAID)) == expected


async def test_the_roles_of_a_chat_are_nobody_s_names() -> None:
    said = turn("I like tea.", speaker="user")

    found = about_others(await brief("What does Ann like?", ["The user likes tea."], said))

    assert found == frozenset()


async def test_where_nothing_answers_nothing_is_admitted() -> None:
    asked = case(
        "What does Ann play?",
        [record("Bruno plays the cello."), record("Clara plays the oboe.")],
        archive(*SAID),
    )

    decision = await Panel().review(asked, EchoLaboratory(texts_of(asked)))

    assert decision.admitted == ()
