from collections.abc import Callable, Sequence

import pytest

from assay.errors import ConfigError, ScenarioError
from assay.guards.coalitions import Coalition, coalition_of, members, size
from assay.guards.protocols import Ask
from assay.guards.reduction.search import Problem, drive
from assay.scenarios.jointcorebench import peer
from assay.scenarios.jointcorebench.conditions import (
    EXACT_SEED,
    Axes,
    Coordinates,
    condition,
    coordinates,
    make_task,
)
from assay.scenarios.jointcorebench.exact import ExactReport, run_exact
from assay.scenarios.jointcorebench.hard import Place, judge_all, points_of, run_tracks, runners
from assay.scenarios.jointcorebench.methods import EXACT, setting_for
from assay.scenarios.jointcorebench.parallel import in_processes
from assay.scenarios.jointcorebench.rules import FAMILIES, rule_for
from assay.scenarios.jointcorebench.tables import exact_markdown, tracks_markdown
from assay.scenarios.jointcorebench.tracks import NOISY, tracks, trial_of
from assay.scenarios.jointcorebench.worked import worked_example

PUBLISHED_SAVINGS = {
    "full_memory": 0.0,
    "random_b": 0.7660,
    "semantic_top_b": 0.7748,
    "leave_one_out": 0.9000,
    "singleton": 0.8776,
    "jointcore_legacy": 0.8758,
    "jointcore": 0.8776,
    "oracle": 0.8776,
}
PUBLISHED_SUFFICIENCY = {
    "full_memory": 1.0,
    "random_b": 0.1617,
    "semantic_top_b": 0.9444,
    "leave_one_out": 0.6667,
    "singleton": 1.0,
    "jointcore_legacy": 1.0,
    "jointcore": 1.0,
    "oracle": 1.0,
}
PUBLISHED_MIN_COST = {
    "full_memory": 0.0,
    "random_b": 0.0012,
    "semantic_top_b": 0.2222,
    "leave_one_out": 0.6667,
    "singleton": 1.0,
    "jointcore_legacy": 0.9329,
    "jointcore": 1.0,
    "oracle": 1.0,
}
PUBLISHED_EVALUATIONS = {
    "full_memory": 0.0,
    "random_b": 0.0,
    "semantic_top_b": 0.0,
    "leave_one_out": 30.0,
    "singleton": 30.0,
    "jointcore_legacy": 10.957,
    "jointcore": 11.127,
    "oracle": 0.0,
}
SMALL = list(
    coordinates(Axes(domains=("orders",), sizes=(8, 64), supports=(4,), horizons=(1,), blocks=(0,)))
)
pytestmark = pytest.mark.timeout(120)  # the plans of the lattice are made once, in a fixture


@pytest.fixture(scope="module")
def small() -> ExactReport:
    return run_exact(SMALL, base=EXACT_SEED, processes=1)


def test_the_exact_stage_has_6912_conditions() -> None:
    points = list(coordinates())

    assert len(points) == len(set(points)) == 6912


def test_the_worked_example_has_the_published_records() -> None:
    example = worked_example()

    assert example.channels == [0, 10]
    assert example.problem.costs == (3, 4, 5, 8, 3, 6, 11, 3, 2, 3, 3, 11, 8, 2, 5, 4)
    assert example.problem.cost(example.problem.everything) == 81


def test_the_worked_example_has_the_published_trace() -> None:
    example = worked_example()

    trace = [(size(step.group), step.same) for step in example.steps]

    assert trace == [
        (16, False), (8, True), (8, False), (4, True), (4, False),
        (2, True), (2, False), (1, True), (1, False),
    ]  # fmt: skip
    assert members(example.kept) == [10]
    assert members(example.legacy) == [0]
    assert example.singleton_questions == 16
    assert members(example.leave_one_out) == []


def test_a_condition_is_a_function_of_its_coordinates() -> None:
    at = Coordinates("calendar", "proxy_confounded", 16, 4, 8, 2)

    one, again = condition(at), condition(at)

    assert one == again
    assert one.record_order == again.record_order
    assert sorted(one.record_order) == list(range(16))


def test_both_orientations_occur() -> None:
    orientations = {condition(at).executes_when_sufficient for at in SMALL}

    assert orientations == {True, False}


def test_the_proxy_tempts_more_than_any_support_record() -> None:
    task = make_task("orders", "proxy_confounded", 16, 2, 3)

    assert task.proxy is not None
    assert task.proxy not in task.support
    assert task.scores[task.proxy] == max(task.scores) == 0.995


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cheapest_set_is_the_cheapest_by_enumeration(family: str) -> None:
    at = next(p for p in coordinates(Axes(sizes=(8,), supports=(4,))) if p.family == family)
    task = condition(at).task
    problem, rule = Problem(task.costs, task.scores), task.rule

    least = min(problem.cost(Coalition(s)) for s in range(2**8) if rule(Coalition(s)))

    assert rule(rule.cheapest(task.costs))
    assert problem.cost(rule.cheapest(task.costs)) == least


def test_a_rule_without_records_is_refused() -> None:
    with pytest.raises(ScenarioError, match="at least one support record"):
        rule_for("threshold", [])


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(ScenarioError, match="unknown family 'majority'"):
        rule_for("majority", [1])  # type: ignore[arg-type]  # the caller's mistake


@pytest.mark.parametrize("name", [name for name in EXACT if name not in {"random_b", "semantic_top_b", "leave_one_out"}])  # fmt: skip
def test_a_method_that_verifies_keeps_a_sufficient_set(small: ExactReport, name: str) -> None:
    assert small.methods[name].sufficiency == 1.0


@pytest.mark.parametrize("name", ["core", "core_certificate", "core_global", "verify"])
def test_ours_needs_fewer_questions_and_keeps_a_cheapest_set(small: ExactReport, name: str) -> None:
    ours, theirs = small.methods[name], small.methods["jointcore"]

    assert ours.min_cost == 1.0
    assert ours.evaluations < theirs.evaluations
    assert ours.by_n["64"] < ours.by_n["8"] + 0.5
    assert all(ours.rounds[c] < theirs.rounds[c] for c in ours.rounds)


def test_the_report_has_every_method_of_the_suite(small: ExactReport) -> None:
    assert list(small.methods) == list(EXACT)
    assert (small.suite, small.stage, small.conditions) == ("jointcorebench", "exact", len(SMALL))


def test_two_processes_find_what_one_does() -> None:
    items = list(range(130))
    seen: list[int] = []

    doubled = in_processes(abs, items, processes=2, advance=seen.append)

    assert doubled == items
    assert sum(seen) == len(items)


def test_no_process_is_refused() -> None:
    with pytest.raises(ValueError, match="processes must be at least 1"):
        in_processes(abs, [1], processes=0, advance=lambda _: None)


def test_the_page_names_the_command_that_made_it(small: ExactReport) -> None:
    page = exact_markdown(small, "assay replay jointcorebench --seed 1")

    assert "`assay replay jointcorebench --seed 1`" in page
    assert "| jointcore_legacy |" in page


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_published_figure_of_the_exact_stage() -> None:
    report = run_exact(list(coordinates()), base=EXACT_SEED, processes=2)

    found = report.methods
    assert {n: round(found[n].evaluations, 3) for n in PUBLISHED_EVALUATIONS} == PUBLISHED_EVALUATIONS  # fmt: skip
    assert {n: round(found[n].sufficiency, 4) for n in PUBLISHED_SUFFICIENCY} == PUBLISHED_SUFFICIENCY  # fmt: skip
    assert {n: round(found[n].min_cost, 4) for n in PUBLISHED_MIN_COST} == PUBLISHED_MIN_COST
    assert {n: round(found[n].savings, 4) for n in PUBLISHED_SAVINGS} == PUBLISHED_SAVINGS
    by_n = found["jointcore"].by_n
    assert [round(by_n[n], 3) for n in ("8", "16", "32", "64")] == [8.113, 10.118, 12.131, 14.145]
    legacy = found["jointcore_legacy"].by_n
    assert [round(legacy[n], 3) for n in ("8", "16", "32", "64")] == [7.968, 9.959, 11.955, 13.944]
    assert found["core"].evaluations <= 4.6
    assert found["core_certificate"].evaluations <= 5.18
    assert found["core_global"].evaluations <= 13.15
    assert found["verify"].evaluations <= 5.35
    ours = [found[n] for n in ("core", "core_certificate", "core_global", "verify")]
    assert [(m.sufficiency, m.min_cost) for m in ours] == [(1.0, 1.0)] * 4


# ---- harder tracks


def is_one_minimal(same: Callable[[Coalition], bool], kept: Coalition) -> bool:
    fewer = (Coalition(kept & ~(1 << i)) for i in members(kept))
    return same(kept) and not any(map(same, fewer))


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


@pytest.fixture(scope="module")
def without_peer() -> Callable[[str, int], dict[str, float]]:
    def evaluations(track: str, variant: int) -> dict[str, float]:
        points = tracks()[track][variant].points()[::12]
        trials = [trial_of(tracks()[track][variant], at, base=EXACT_SEED) for at in points]
        chosen = {name: runners(track)[name] for name in ("jointcore", "core")}
        return {
            name: mean([run(trial).evaluations for trial in trials]) for name, run in chosen.items()
        }

    return evaluations


@pytest.mark.parametrize(
    ("track", "variant"),
    [(track, at) for track, variants in tracks().items() if track not in NOISY
     for at in range(len(variants))],
)  # fmt: skip
def test_ours_needs_no_more_questions_than_group_deletion_on_a_deterministic_track(
    without_peer: Callable[[str, int], dict[str, float]], track: str, variant: int
) -> None:
    found = without_peer(track, variant)

    assert found["core"] <= found["jointcore"]


@pytest.mark.parametrize("track", sorted(NOISY))
def test_twelve_questions_suffice_under_five_percent_of_errors(track: str) -> None:
    points = tracks()[track][1].points()[::6]
    trials = [trial_of(tracks()[track][1], at, base=EXACT_SEED) for at in points]
    run = runners(track)["core_robust"]

    found = [(run(trial), trial) for trial in trials]

    assert mean([reduction.evaluations for reduction, _ in found]) <= 12
    assert mean([trial.same(reduction.kept) for reduction, trial in found]) >= 0.99


def test_a_fresh_error_may_be_gone_when_asked_again_and_a_persistent_one_is_not() -> None:
    fresh = trial_of(tracks()["fresh"][2], SMALL[0], base=EXACT_SEED)
    persistent = trial_of(tracks()["persistent"][2], SMALL[0], base=EXACT_SEED)

    of_fresh, of_persistent = fresh.evaluator(), persistent.evaluator()

    assert {of_fresh(Ask(coalition_of([0]))) for _ in range(60)} == {True, False}
    assert len({of_persistent(Ask(coalition_of([0]), draw=draw)) for draw in range(60)}) == 1


def test_verify_is_1_minimal_under_every_rule_that_is_not_monotone() -> None:
    trials = [
        trial_of(one, at, base=EXACT_SEED) for one in tracks()["rules"] for at in one.points()[::24]
    ]
    run = runners("rules")["verify"]

    found = [(trial, run(trial).kept) for trial in trials]

    assert all(is_one_minimal(trial.same, kept) for trial, kept in found)


@pytest.mark.parametrize("track", sorted(NOISY))
def test_every_protected_method_is_judged_under_noise(track: str) -> None:
    at = tracks()[track][1].points()[0]

    judged = judge_all(Place(track, 1, at), base=EXACT_SEED)

    assert set(judged) == set(runners(track))
    assert {"core, check", "core, 3 votes, check", "core_robust"} <= set(judged)


def test_one_track_is_one_table() -> None:
    pytest.importorskip("picire")
    done: list[int] = []

    rows = run_tracks(["costs"], base=EXACT_SEED, processes=1, advance=done.append)

    assert sum(done) == points_of(["costs"]) == rows[0].conditions
    assert {"jointcore", "ddmin", "picire", "core"} <= {row.method for row in rows}
    assert "| unequal channel costs | picire |" in tracks_markdown(rows, "x", seed=1)


def test_a_missing_peer_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        """Finds no package."""

    monkeypatch.setattr(peer, "find_spec", nothing)

    with pytest.raises(ConfigError, match=r"assay\[benchmark\]"):
        peer.require_picire()


def test_the_oracle_method_keeps_a_sufficient_set() -> None:
    one = condition(SMALL[0])
    setting = setting_for(one)

    kept = drive(EXACT["oracle"](setting, {}), lambda _: False, problem=setting.problem).kept

    assert one.task.rule(kept)
