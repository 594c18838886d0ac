"""Fault cases on a model: what counts as verified, what each method does, and what goes on."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from assay.errors import ModelRefused, ModelUnavailable, ScenarioError
from assay.guards.coalitions import EMPTY, Coalition, Utilities, grand, without
from assay.guards.protocols import Ask, Completion, Ledger, Outcome, Request
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.scenarios.faults_cohort import Posed, chosen, pose, read_cohort
from assay.scenarios.faults_folder import FaultsFolder
from assay.scenarios.faults_replay import FaultRow, replay
from assay.scenarios.faults_report import Replayed, replay_page, result, tables, verification
from assay.scenarios.faults_utility import AnswerUtility, LikelihoodUtility
from assay.scenarios.faults_verifying import VERIFIED, basic_checks, structure_checks, verified
from assay.scenarios.games_scoring import GameScore
from assay.scenarios.locomo_faults import STRUCTURES, FaultStructure
from assay.scenarios.report import render

from .support_faults import (
    all_cases,
    bench_of,
    config_of,
    fault_case,
    misled,
    turns_of,
    write_benchmark,
)


def posed_of(number: int, structure: FaultStructure) -> Posed:
    turns = {turn.id: turn for turn in turns_of(number).turns}
    return pose(fault_case(number, structure), turns, seed=7)


async def rows_of(tmp_path: Path, **changes: object) -> list[FaultRow]:
    cohort = read_cohort(write_benchmark(tmp_path / "data"))
    return await replay(
        FaultsFolder(None, FaultRow), cohort, cohort.cases, config_of(**changes), bench_of()
    )


@pytest.mark.parametrize("utility", ["contrast", "answer"])
async def test_a_reader_that_every_structure_misleads_verifies_every_case(
    tmp_path: Path, utility: str
) -> None:
    rows = await rows_of(tmp_path, utility=utility)

    assert {row.case: row.verdict for row in rows} == {c.id: VERIFIED for c in all_cases()}


async def test_ours_recovers_where_leave_one_out_does_not(tmp_path: Path) -> None:
    rows = await rows_of(tmp_path)

    redundant = [row.scores for row in rows if row.structure == "redundant"]
    assert len(redundant) == 3
    assert not any(scores["leave_one_out"].recovery for scores in redundant)
    assert all(scores["pivot"].recovery and scores["pivot"].exact for scores in redundant)
    assert all(scores["exact_deletion"].evaluations == 32 for scores in redundant)
    assert all(scores["pivot"].evaluations < 20 for scores in redundant)


async def test_blind_methods_agree_with_the_archive_and_are_judged_by_the_reference(
    tmp_path: Path,
) -> None:
    rows = await rows_of(tmp_path, protocol="blind")

    assert all(row.scores["pivot"].recovery for row in rows if row.structure == "redundant")
    assert all(row.verdict == VERIFIED for row in rows)


async def test_a_higher_bar_leaves_fewer_contexts_right_blind(tmp_path: Path) -> None:
    def wordy(request: Request) -> str:
        """Every answer repeats much that was truly said, so low bars are always reached."""
        return f"{misled(request)}, said beside the rain and the soup."

    cohort = read_cohort(write_benchmark(tmp_path, [fault_case(0, "redundant")]))
    scores: list[GameScore] = []
    for bar in (0.5, 1.0):
        [row] = await replay(
            FaultsFolder(None, FaultRow),
            cohort,
            cohort.cases,
            config_of(protocol="blind", methods=("pivot",), bar=bar),
            bench_of(ScriptedModel(wordy, identity="wordy")),
        )
        scores.append(row.scores["pivot"])

    assert [score.evaluations > 1 for score in scores] == [False, True]


async def test_a_case_costs_each_distinct_question_once_whatever_the_methods(
    tmp_path: Path,
) -> None:
    rows = await rows_of(tmp_path, methods=("exact_deletion", "shapley_exact", "meclear", "pivot"))

    assert all(row.live == row.evaluations == 64 for row in rows)


@pytest.mark.parametrize("budget", [0, 1, 5])
async def test_a_budget_below_the_screen_is_marked(tmp_path: Path, budget: int) -> None:
    rows = await rows_of(tmp_path, budget=budget, methods=("leave_one_out", "pivot"))

    scores = [score for row in rows for score in row.scores.values()]
    assert all(score.stopped for score in scores)
    assert all(score.evaluations <= budget for score in scores)
    assert not any(score.silent for score in scores)


def test_a_redundant_case_must_be_wrong_with_each_copy_and_after_each_deletion() -> None:
    posed = posed_of(0, "redundant")

    checks = structure_checks(posed)

    assert len(checks) == 2 + 5
    assert not any(check.right for check in checks)


def test_a_joint_case_must_be_right_with_each_part() -> None:
    checks = structure_checks(posed_of(0, "joint"))

    assert [check.right for check in checks] == [True, True]


def test_a_direct_case_needs_only_the_basic_checks() -> None:
    posed = posed_of(0, "direct")

    assert structure_checks(posed) == []
    assert [check.right for check in basic_checks(posed)] == [True, False, False]
    assert basic_checks(posed)[0].context == without(grand(5), posed.harmful)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("a harp", "right in spite of the faults"),
        ("a lute", "wrong without any fault"),
        ("nothing", "wrong without any fault"),
    ],
)
async def test_an_unverified_case_says_what_the_model_does_otherwise(
    tmp_path: Path, reply: str, expected: str
) -> None:
    cohort = read_cohort(write_benchmark(tmp_path, [fault_case(0, "direct")]))
    model = ScriptedModel([Rule(reply=reply)], identity="fixed")

    [row] = await replay(
        FaultsFolder(None, FaultRow),
        cohort,
        cohort.cases,
        config_of(utility="answer"),
        bench_of(model),
    )

    assert (row.verdict, row.scores) == (expected, {})


class Valued:
    """A utility by a rule."""

    def __init__(self, rule: Callable[[Coalition], float]) -> None:
        self._rule = rule

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        return np.array([self._rule(c) for c in coalitions])


async def test_a_model_that_needs_no_record_verifies_nothing() -> None:
    knowing = Valued(lambda c: 0.1 if c == grand(5) else 0.9)

    assert await verified(posed_of(0, "direct"), knowing) == "right without any record"


async def test_no_measurement_is_no_verification() -> None:
    silent = Valued(lambda _: math.nan)

    assert await verified(posed_of(0, "direct"), silent) == "no measurement"


async def test_a_filter_that_gets_no_answer_withholds_nothing(tmp_path: Path) -> None:
    def unwilling(request: Request) -> str | Completion:
        if "Reply with their numbers only" in str(request.messages):
            raise ModelRefused("no")
        return misled(request)

    cohort = read_cohort(write_benchmark(tmp_path, [fault_case(0, "direct")]))

    [row] = await replay(
        FaultsFolder(None, FaultRow),
        cohort,
        cohort.cases,
        config_of(methods=("llm_filter",)),
        bench_of(ScriptedModel(unwilling, identity="unwilling")),
    )

    assert row.verdict == VERIFIED
    assert not row.scores["llm_filter"].recovery
    assert row.scores["llm_filter"].extra_cleared == 0


async def test_a_model_that_is_down_stops_the_run_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    cohort = read_cohort(write_benchmark(tmp_path / "data"))
    folder = FaultsFolder(tmp_path / "out", FaultRow)
    config = config_of(methods=("pivot",))
    await folder.begin(config, "misled")
    broken = ScriptedModel([Rule(question="Bea", fails="unavailable")], identity="misled")

    with pytest.raises(ModelUnavailable):
        await replay(folder, cohort, cohort.cases, config, bench_of(broken))
    done = await folder.rows()
    await folder.begin(config, "misled")
    rows = await replay(folder, cohort, cohort.cases, config, bench_of())

    assert [row.case for row in done] == ["direct-0"]
    assert rows[0] == done[0]
    assert len(rows) == len(await folder.rows()) == 9


async def test_a_folder_of_another_configuration_is_refused(tmp_path: Path) -> None:
    folder = FaultsFolder(tmp_path, FaultRow)
    await folder.begin(config_of(), "misled")

    with pytest.raises(ScenarioError, match="holds a replay of another configuration"):
        await folder.begin(config_of(seed=8), "misled")


def test_the_choice_keeps_each_structure_in_its_share_and_is_a_function_of_the_seed() -> None:
    cases = all_cases()

    some = chosen(cases, limit=6, structures=STRUCTURES, seed=7)

    assert [sum(c.structure == s for c in some) for s in STRUCTURES] == [2, 2, 2]
    assert some == chosen(cases, limit=6, structures=STRUCTURES, seed=7)
    assert {c.id for c in chosen(cases, limit=3, structures=STRUCTURES, seed=7)} < {
        c.id for c in some
    }
    assert len(chosen(cases, limit=100, structures=["joint"], seed=7)) == 3
    assert len(chosen(cases, limit=4, structures=STRUCTURES, seed=7)) == 4


def test_ids_and_order_of_the_records_tell_nothing_of_the_faults() -> None:
    posed = posed_of(0, "redundant")

    assert [c.record.id for c in posed.candidates] == [f"r{i}" for i in range(5)]
    wrong = {posed.candidates[i].record.text for i in posed.faults}
    assert wrong == {fault.text for fault in posed.case.faults}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("turns.jsonl", None, "assay faults build --out DIR"),
        ("natural.jsonl", "{}\n", "expected what `assay faults build` writes"),
        ("turns.jsonl", "", "which is not in turns.jsonl"),
    ],
)
def test_a_folder_that_no_build_wrote_is_refused(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    folder = write_benchmark(tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)

    with pytest.raises(ScenarioError, match=message):
        read_cohort(folder)


class Told:
    """An experimenter that knows the outcome of every ask."""

    def __init__(self, tell: Callable[[Ask], Outcome]) -> None:
        self._tell = tell

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        return [self._tell(ask) for ask in asks]

    def ledger(self) -> Ledger:
        return Ledger()


def logs(by_answer: Mapping[str, Sequence[float]]) -> Told:
    """Log-likelihoods of each answer by coalition."""
    return Told(
        lambda ask: Outcome(
            status="answered", log_likelihood=by_answer[ask.answer or ""][ask.coalition]
        )
    )


@pytest.mark.parametrize(
    ("reply", "worth"),
    [
        ("It was on 7 May, 2023.", 1.0),
        ("2023-05-07", 1.0),
        ("On 7 May 2023, not on 9 May 2023.", 0.0),
        ("9 May 2023", 0.0),
        ("", 0.0),
    ],
)
async def test_the_answer_must_hold_the_right_words_and_not_the_wrong_ones(
    reply: str, worth: float
) -> None:
    told = Told(lambda _: Outcome(status="answered", text=reply))
    utility = AnswerUtility(told, answer="7 May 2023", foil="9 May 2023")

    assert list(await utility([EMPTY])) == [worth]


async def test_a_refusal_is_no_measurement() -> None:
    told = Told(lambda _: Outcome(status="refused"))

    [worth] = await AnswerUtility(told, answer="harp", foil="lute")([EMPTY])

    assert math.isnan(worth)


async def test_progress_stands_between_the_empty_and_the_clean_context() -> None:
    told = logs({"harp": [-3.0, -1.0, -2.5, -1.5]})
    utility = LikelihoodUtility(told, answer="harp", foil=None, clean=Coalition(1))

    worth = await utility([Coalition(0), Coalition(1), Coalition(2), Coalition(3)])

    assert list(worth) == pytest.approx([0.0, 1.0, 0.25, 0.75])


async def test_with_contrast_the_wrong_answer_counts_against_the_right_one() -> None:
    told = logs({"harp": [-3.0, -1.0, -1.0, -1.0], "lute": [-3.0, -4.0, -1.0, 0.0]})
    utility = LikelihoodUtility(told, answer="harp", foil="lute", clean=Coalition(1))

    worth = await utility([Coalition(0), Coalition(1), Coalition(2), Coalition(3)])

    assert list(worth) == pytest.approx([0.0, 1 / (1 + math.exp(-3)), 0.5, 1 / (1 + math.e)])


async def test_where_the_records_add_nothing_nothing_is_right() -> None:
    told = logs({"harp": [-1.0, -0.9, -0.8, -0.7]})
    utility = LikelihoodUtility(told, answer="harp", foil=None, clean=Coalition(1))

    assert list(await utility([Coalition(1), Coalition(3)])) == [0.0, 0.0]


async def test_a_likelihood_that_was_not_measured_is_no_number() -> None:
    told = Told(lambda _: Outcome(status="malformed"))
    utility = LikelihoodUtility(told, answer="harp", foil="lute", clean=Coalition(1))

    assert np.isnan(await utility([Coalition(1)])).all()


async def test_the_report_holds_every_figure_and_no_case_is_enough(tmp_path: Path) -> None:
    rows = await rows_of(tmp_path, methods=("leave_one_out", "meclear", "pivot"))
    config = config_of(methods=("leave_one_out", "meclear", "pivot"))
    replayed = Replayed(rows, config, "misled", "assay replay locomo-faults")

    found = result(replayed)

    assert found["verified"] == 9
    assert verification(rows)["joint"].rate == 1
    page = render(replay_page(replayed))
    assert "Risk frontier" in page
    assert "wrong without any fault" not in page
    markdown = tables(replayed)
    assert "## Redundant" in markdown
    assert "| direct | 3 | 3 | 1.000 | - |" in markdown
    empty = Replayed(
        [FaultRow(case="a", conversation="c", structure="joint", verdict="no measurement")],
        config,
        "misled",
        "assay",
    )
    assert result(empty)["methods"] == {}
    assert "no measurement: 1" in tables(empty)
    assert "no measurement: 1" in render(replay_page(empty))
