"""Benchmark suites as tests: which examples are sampled, and how one fails."""

from pathlib import Path

import pytest

from assay.errors import ScenarioError
from assay.scenarios.cases.attack_suite import attack_cases, is_harmed, played, told_attack
from assay.scenarios.cases.exact_suites import check_game, check_reduction, spread
from assay.scenarios.cases.suites import Sample, samples, suite_path
from assay.scenarios.games import cohort

from .support_faults import write_benchmark


def suite(name: str, size: int, data: Path | None = None) -> list[Sample]:
    return samples(Path(suite_path(name)), size=size, data=data)


def test_a_sample_of_families_has_one_of_each() -> None:
    names = [sample.name for sample in suite("families", 8)]

    assert len(names) == len(set(names)) == 8
    assert names[0] == "preference_update-7-00000"


def test_a_larger_sample_begins_with_the_smaller_one() -> None:
    small, large = suite("families", 3), suite("families", 5)

    assert [s.name for s in small] == [s.name for s in large][:3]


def test_a_missed_useful_record_is_told_apart_from_a_harmful_one() -> None:
    [_, contested] = suite("families", 2)

    failed = contested.check(None)

    assert failed is not None
    assert failed.missed
    assert "one of useful-1 admitted" in failed.text


def test_a_budget_too_small_is_no_miss() -> None:
    [_, contested] = suite("families", 2)

    failed = contested.check(3)

    assert failed is not None
    assert not failed.missed
    assert "the budget of 3 evaluations is too small" in failed.text


def test_a_game_stopped_by_its_budget_says_so() -> None:
    [game] = cohort(1, 8, 7)

    assert check_game(game, 0, None) == ""
    assert "stopped by the budget of 2" in check_game(game, 0, 2)


def test_a_reduction_says_what_it_needs() -> None:
    [at] = spread(1)

    assert check_reduction(at, None) == ""
    assert "the budget of 1 evaluations is too small" in check_reduction(at, 1)


def test_conditions_are_spread_over_the_whole_product() -> None:
    assert len({at.domain for at in spread(8)}) > 3
    assert spread(0) == []


def test_faults_are_kept_out(tmp_path: Path) -> None:
    write_benchmark(tmp_path)

    found = suite("locomo-faults", 3, tmp_path)

    assert len(found) == 3
    assert all(sample.name.split("-")[0] in {"direct", "redundant", "joint"} for sample in found)
    failures = [sample.check(None) for sample in found]
    assert not any(failed is not None and not failed.missed for failed in failures)


def test_faults_that_were_not_built_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"natural\.jsonl"):
        suite("locomo-faults", 3, tmp_path)


def test_attacks_are_sampled_over_their_families(shared_data: Path) -> None:
    cases = attack_cases(shared_data / "attacks.jsonl", 6)

    assert len({case.family for case in cases}) == 6
    row = played(cases[0])
    assert not is_harmed(row)
    assert f"cost: {row.evaluations} evaluations" in told_attack(cases[0], row)
    assert next(iter(suite("attacks", 1, shared_data))).check(0) is not None
