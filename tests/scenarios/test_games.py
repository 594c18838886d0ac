"""Clearing games: the cohort is what the specification says, scores and intervals add up."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScenarioError
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.probes import Clearing, Probe, Spending, drive
from assay.guards.coalitions import Coalition, grand, size, union, without
from assay.scenarios.games import INDEPENDENT, Answerer, Game, cohort
from assay.scenarios.games_methods import own_methods, too_large
from assay.scenarios.games_peers import budget_for, peer_methods
from assay.scenarios.games_report import figures, frontier, markdown, page
from assay.scenarios.games_runner import Plan, all_methods, planned_games, play
from assay.scenarios.games_scoring import GameScore, paired_recovery, score, summarise
from assay.scenarios.report import render


def first(mix: str = "paper", n: int = 6) -> Game:
    return cohort(1, n, 3, mix)[0]  # type: ignore[arg-type]  # one of the mixes


def test_the_cohort_has_exactly_the_published_mix_and_evidence_shares() -> None:
    games = cohort(745, 6, 7)

    assert Counter(game.structure for game in games) == {
        "direct": 375,
        "redundant": 285,
        "joint": 85,
    }
    assert {size(game.harmful) for game in games if game.structure == "redundant"} == {2}
    assert sum(size(game.gold) == 1 for game in games) / 745 == pytest.approx(0.5, abs=0.05)
    assert sum(size(game.gold) == 2 and game.any_gold for game in games) / 745 == pytest.approx(
        0.25, abs=0.05
    )


@given(seed=st.integers(min_value=0, max_value=2**31))
def test_a_veto_game_is_right_with_its_evidence_alone_and_wrong_with_its_harm(seed: int) -> None:
    game = cohort(1, 8, seed)[0]

    with_gold, with_all, nothing = game.value([game.gold, grand(8), Coalition(0)])

    assert with_gold >= 0.7
    assert with_all <= 0.3
    assert nothing <= 0.3


def test_a_joint_pair_harms_only_together() -> None:
    game = next(game for game in cohort(745, 5, 7) if game.structure == "joint")
    one = Coalition(game.together & -game.together)

    assert game.is_right(union(game.gold, one))
    assert not game.is_right(union(game.gold, game.together))


@pytest.mark.parametrize(
    ("mix", "low", "high"), [("ungated", 0.45, 0.85), ("vote", 0.7, 0.9), ("veto", 0.0, 0.25)]
)
def test_what_a_context_without_evidence_is_worth_depends_on_the_kind_of_game(
    mix: str, low: float, high: float
) -> None:
    game = first("paper" if mix == "veto" else mix)

    assert low <= game.value([Coalition(0)])[0] <= high


def test_weak_games_straddle_one_half() -> None:
    levels = [game.levels for game in cohort(50, 5, 1, "weak")]

    assert all(0.58 <= level.high <= 0.75 and 0.25 <= level.harmed <= 0.42 for level in levels)


def test_an_answer_is_the_same_until_it_is_redrawn() -> None:
    answers = Answerer(first(), "gaussian", 0.2)

    again = answers([Probe(Coalition(3)), Probe(Coalition(3)), Probe(Coalition(3), 1)])

    assert again[0] == again[1] != again[2]


@given(seed=st.integers(min_value=0, max_value=10_000))
def test_bernoulli_answers_are_right_as_often_as_the_value_says(seed: int) -> None:
    game = cohort(1, 5, seed)[0]
    answers = Answerer(game, "bernoulli")([Probe(game.gold, draw) for draw in range(400)])

    assert set(np.unique(answers)) <= {0.0, 1.0}
    assert answers.mean() == pytest.approx(game.value([game.gold])[0], abs=0.11)


def test_no_search_draws_the_answer_that_judges_it() -> None:
    game = first()
    asked: list[Probe] = []

    def ask(probes: object) -> np.ndarray:
        asked.extend(probes)  # type: ignore[arg-type]  # a batch
        return Answerer(game, "bernoulli")(probes)  # type: ignore[arg-type]

    drive(own_methods()["pivot"](6, Answers(kind="bernoulli"), np.random.default_rng(1)), ask)

    assert asked
    assert INDEPENDENT not in {probe.draw for probe in asked}


def test_a_false_claim_of_recovery_is_a_silent_failure() -> None:
    game = first()
    background = without(without(grand(6), game.harmful), game.gold)
    wrong = Coalition(background & -background)

    judged = score(
        Clearing(flagged=wrong, cleared=wrong, order=tuple(range(6)), certificate="recovered"),
        Spending([6, 1]),
        Answerer(game, "deterministic"),
    )

    assert (judged.silent, judged.recovery, judged.exact, judged.extra) == (True, False, False, 1)
    assert judged.rounds == (7, 3, 2, 2)


def test_faults_that_do_not_fit_are_refused_with_advice() -> None:
    with pytest.raises(ScenarioError, match=r"do not fit 4 candidates; raise --k"):
        cohort(3, 4, 7, "r4")


def scores(count: int, *, recovery: bool) -> list[GameScore]:
    return [
        GameScore(
            conversation=place % 10,
            structure="direct",
            evaluations=place,
            rounds=(1, 1, 1, 1),
            found=1,
            harmful=1,
            complete=True,
            exact=True,
            recovery=recovery,
            recovery_draw=True,
            extra=0,
            extra_cleared=0,
            silent=False,
            stopped=False,
        )
        for place in range(count)
    ]


def test_intervals_hold_the_mean_and_are_a_point_where_nothing_varies() -> None:
    summary = summarise(scores(40, recovery=True), seed=1, concurrency=8)

    assert summary["evaluations"].low < summary["evaluations"].mean < summary["evaluations"].high
    assert summary["recall"] == (1.0, 1.0, 1.0)


def test_paired_recovery_sees_a_difference_and_no_difference() -> None:
    good, bad = scores(10, recovery=True), scores(10, recovery=False)

    assert paired_recovery(good, bad) == pytest.approx(2 / 1024)
    assert paired_recovery(good, good) == 1.0


def test_ours_recovers_all_with_fewer_questions_than_the_published_method() -> None:
    plan = Plan(size=60, k=5, seed=7)

    played = play(plan, ["meclear", "pivot", "adaptive"], workers=1)

    rows = figures(played, concurrency=8)["methods"]
    assert rows["pivot"]["evaluations"] <= 11  # type: ignore[index]  # rows of a JSON object
    for name in ("pivot", "adaptive"):
        assert [rows[name][m] for m in ("recall", "exact", "recovery")] == [1, 1, 1]  # type: ignore[index]
    assert rows["meclear"]["evaluations"] > 25  # type: ignore[index]


def test_one_seed_gives_the_same_figures_on_one_core_and_on_two() -> None:
    plan = Plan(size=70, k=5, seed=3, answers="bernoulli")

    alone = play(plan, ["pivot"], workers=1)
    together = play(plan, ["pivot"], workers=2)

    assert alone == together


def test_every_line_of_the_table_has_as_many_columns_as_its_head() -> None:
    played = play(Plan(size=2, k=5, seed=3), ["leave_one_out"], workers=1)

    head, rule, row = markdown(played, concurrency=8).splitlines()

    assert len(re.findall(r"(?<!\\)\|", head)) == rule.count("|") == row.count("|")


def test_methods_that_ask_too_much_are_named_not_run() -> None:
    plan = Plan(size=2, k=20, seed=3)

    played = play(plan, ["shapley_exact", "leave_one_out"], workers=1)

    assert played.not_run == {"shapley_exact": "asks all 2 ** 20 contexts"}
    assert "| shapley_exact | not run" in markdown(played, concurrency=8)
    assert planned_games(plan, ["shapley_exact", "leave_one_out"]) == 2
    assert too_large("levelwise", 20)


def test_the_page_shows_the_risk_frontier_and_fetches_nothing() -> None:
    played = play(Plan(size=6, k=5, seed=3), ["meclear", "pivot"], workers=1)

    html = render(page([played], command="assay replay games", concurrency=8))

    assert "<svg" in html
    assert "pivot (100%)" in html
    assert "src=" not in html
    assert [name for name, *_ in frontier(played)] == ["meclear", "pivot"]


def test_a_limit_stops_every_method_marked() -> None:
    names = ["meclear", "pivot", "core_grow", "adaptive"]

    played = play(Plan(size=5, k=5, seed=3, limit=3), names, workers=1)

    assert all(s.evaluations <= 3 and s.stopped for name in names for s in played.scores[name])


def test_the_peers_get_the_evaluations_that_sixteen_permutations_touch() -> None:
    assert [budget_for(n) for n in (5, 16)] == [28, 228]


def test_every_method_has_one_name() -> None:
    assert {"leave_one_out", "meclear", "meclear_l4", "pivot", "core_grow", "adaptive"} <= set(
        all_methods()
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(120)  # the first import of the package compiles for a while
def test_a_peer_plays_through_prefetched_coalitions() -> None:
    pytest.importorskip("shapiq", reason="needs the shapiq package: pip install 'assay[benchmark]'")
    answerer = Answerer(first(n=5), "deterministic")

    found, spending = drive(
        peer_methods()["shapiq_svarm"](5, Answers(), np.random.default_rng(1)), answerer
    )

    assert len(spending.stages) <= 3
    assert found.effects is not None
