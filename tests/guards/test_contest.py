"""Contests and groundings on archives small enough to compute by hand."""

from datetime import UTC, datetime

import pytest

from assay.guards.evidence.contest import contest
from assay.guards.evidence.grounding import grounding

from .support_panel import brief, turn

CAR = "What car does Evan drive?"
PRIUS, TESLA = "Evan drives a Prius.", "Evan drives a Tesla."


async def test_the_value_that_was_said_has_all_the_support() -> None:
    heard = contest(await brief(CAR, [PRIUS, TESLA], "I drive my Prius: what a car, Evan."), 0, 1)

    assert (heard.left, heard.right, heard.times) == (1.0, 0.0, 0.0)
    assert heard.turns == ("t0",)


async def test_a_turn_that_shares_one_word_alone_hardly_supports_it() -> None:
    heard = contest(await brief(CAR, [PRIUS, TESLA], "A Prius overtook us."), 0, 1)

    assert heard.left == pytest.approx(0.3)


async def test_a_contest_reads_the_same_from_both_sides() -> None:
    asked = await brief(CAR, [PRIUS, TESLA], "I love my Prius.", "Nice!")

    one, other = contest(asked, 0, 1), contest(asked, 1, 0)

    assert (one.left, one.right, one.times) == (other.right, other.left, -other.times)


async def test_a_turn_that_denies_a_value_does_not_support_it() -> None:
    heard = contest(await brief(CAR, [PRIUS, TESLA], "I never drove a Tesla."), 0, 1)

    assert heard.right == 0.0


async def test_denying_what_was_said_counts_against_a_record() -> None:
    texts = ["James went bowling.", "James went running, he did not visit a bowling alley."]

    heard = contest(await brief("What did James do?", texts, "I went bowling, what a day"), 0, 1)

    assert heard.right < 0 <= heard.left


async def test_a_denial_that_was_said_is_borne_out() -> None:
    texts = ["Andrew has no pets.", "Andrew has three cats."]

    heard = contest(await brief("Does Andrew keep animals?", texts, "I don't have any pets."), 0, 1)

    assert heard.left == pytest.approx(0.3)
    assert heard.right == 0.0


async def test_the_name_of_a_speaker_supports_nothing() -> None:
    texts = ["Maria had dinner with John.", "Maria had dinner with her mother."]
    said = (
        turn("Wow, John! My mom and I made dinner.", speaker="Maria"),
        turn("Thanks!", speaker="John", position=1),
    )

    heard = contest(await brief("Who did Maria have dinner with?", texts, *said), 0, 1)

    assert heard.left == 0.0
    assert heard.right == pytest.approx(0.65)
    assert heard.is_contested


async def test_yesterday_is_the_day_before_the_session() -> None:
    texts = ["Jon lost his job on 24 May 2023.", "Jon lost his job on 25 May 2023."]

    heard = contest(
        await brief("When did Jon lose his job?", texts, "I lost my job yesterday."), 0, 1
    )

    assert heard.times == pytest.approx(1 / 1.1)


async def test_the_day_of_a_session_is_implied_only_weakly() -> None:
    texts = ["Jon opened on 25 May 2023.", "Jon opened on 3 June 2023."]

    heard = contest(await brief("When did Jon open?", texts, "I opened my studio!"), 0, 1)

    assert 0 < heard.times < 0.1


async def test_a_record_may_quote_the_session_beside_the_resolved_day() -> None:
    told = "On 22 December 2022 Maria said she gave it away yesterday, so on 21 December 2022."
    texts = [told, "Maria gave her car away on 22 December 2022."]
    said = turn("I gave my car away yesterday.", at=datetime(2022, 12, 22, 18, tzinfo=UTC))

    heard = contest(await brief("When did Maria give her car away?", texts, said), 0, 1)

    assert heard.times == pytest.approx(1 / 1.1)


async def test_one_that_only_says_less_is_not_contested() -> None:
    texts = ["Evan drives a red Prius.", "Evan drives a Prius."]

    assert not contest(await brief(CAR, texts, "My Prius is red."), 0, 1).is_contested


async def test_an_empty_archive_supports_nobody() -> None:
    heard = contest(await brief(CAR, [PRIUS, TESLA]), 0, 1)

    assert (heard.left, heard.right, heard.times, heard.turns) == (0.0, 0.0, 0.0, ())


async def test_a_record_is_grounded_as_far_as_its_claims_were_said() -> None:
    asked = await brief(CAR, ["Evan drives a Prius with leather seats."], "I love my Prius.")

    ground = grounding(asked, 0)

    assert ground.score == pytest.approx(1 / 3)
    assert ground.claims == 3


async def test_repeating_the_question_claims_nothing() -> None:
    ground = grounding(await brief(CAR, ["Evan drives a car."], "I love my Prius."), 0)

    assert (ground.score, ground.claims) == (1.0, 0)
