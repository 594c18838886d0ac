"""The model stage run: scoring, searches on a model, resuming, figures and tests."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from assay.errors import ModelRefused, ModelUnavailable, ScenarioError
from assay.guards.coalitions import Coalition
from assay.guards.protocols import (
    Ask,
    Completion,
    Ledger,
    Outcome,
    Parameters,
    Request,
    TokenLogprob,
)
from assay.guards.reduction.search import drive
from assay.runtime.clock import SystemClock
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.jointcorebench.deciding import (
    Scoring,
    decide,
    first_token_scores,
    is_same,
    trajectory_of,
)
from assay.scenarios.jointcorebench.methods import EXACT, setting_for
from assay.scenarios.jointcorebench.model_folder import ROWS_FILE, StageFolder
from assay.scenarios.jointcorebench.model_report import report_on
from assay.scenarios.jointcorebench.model_rows import (
    FORMAT,
    MethodRow,
    StageConfig,
    StageRecord,
    TaskRow,
)
from assay.scenarios.jointcorebench.model_stage import Asked, measure_task, run_model_stage
from assay.scenarios.jointcorebench.model_tables import stage_markdown
from assay.scenarios.jointcorebench.model_tasks import subset
from assay.scenarios.jointcorebench.prompting import INTERFACES, Cell, Form, Interface
from assay.stores.bank import memory_bank
from assay.stores.embeddings import HashingEmbedder

from .support_jointcore_model import reads, tasks

PRIMARY = Cell("unknown", "boolean")
NINE = subset(tasks(), 9)
METHODS = ("full_memory", "singleton", "jointcore", "verify", "oracle")


def asking(model: ScriptedModel, *, likelihood: bool = True) -> Asked:
    bank = memory_bank(embedder=HashingEmbedder(), clock=SystemClock())
    return Asked(model, model if likelihood else None, bank.cache)


def config(**changes: object) -> StageConfig:
    base = StageConfig(
        identity="scripted",
        scoring="teacher forcing",
        seed=7,
        tasks=9,
        representations=("unknown",),
        interfaces=("boolean",),
        methods=METHODS,
    )
    return msgspec.structs.replace(base, **changes)


class Bench:
    """A laboratory that has one outcome per label, or one for all."""

    def __init__(self, outcomes: Mapping[str | None, Outcome]) -> None:
        self.outcome = outcomes

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        return [self.outcome[ask.answer] for ask in asks]

    def ledger(self) -> Ledger:
        return Ledger()


def no_prompt(_: Ask) -> Request:
    return Request(model="table", messages=(), parameters=Parameters())


FORM = Form(render=no_prompt, actions={"YES": "HOLD", "NO": "EXECUTE"}, right="HOLD")


def likely(yes: float | None, no: float | None) -> Bench:
    return Bench(
        {
            "YES": Outcome(status="answered", log_likelihood=yes),
            "NO": Outcome(status="answered", log_likelihood=no),
        }
    )


@pytest.mark.parametrize(
    ("yes", "no", "expected"),
    [
        (-0.1, -2.0, "HOLD,HALT"),
        (-2.0, -0.1, "EXECUTE,COMMIT"),
        (-1.0, -1.0, "INVALID"),
        (None, -1.0, "INVALID"),
    ],
)
async def test_the_likelier_label_decides_and_its_terminal_step_follows(
    yes: float | None, no: float | None, expected: str
) -> None:
    found = await decide(likely(yes, no), Coalition(0), FORM, "teacher forcing")

    assert found == expected


async def test_an_unreachable_model_is_no_decision() -> None:
    down = Outcome(status="unavailable", detail="no route")

    with pytest.raises(ModelUnavailable, match="no route"):
        await decide(Bench({"YES": down, "NO": down}), Coalition(0), FORM, "teacher forcing")


async def test_a_refused_question_is_invalid() -> None:
    refused = Outcome(status="refused")

    found = await decide(Bench({None: refused}), Coalition(0), FORM, "first token")

    assert found == "INVALID"


def test_invalid_equals_nothing_not_even_itself() -> None:
    assert not is_same("INVALID", "INVALID")
    assert not is_same("INVALID", trajectory_of("HOLD"))
    assert is_same(trajectory_of("HOLD"), trajectory_of("HOLD"))


@pytest.mark.parametrize(
    ("top", "labels", "expected"),
    [
        ((("YES", math.log(0.6)), (" no", math.log(0.2))), ("YES", "NO"), (0.6, 0.2)),
        ((("Y", math.log(0.3)), ("yes", math.log(0.3))), ("YES", "NO"), (0.6, 0.0)),
        ((("EX", math.log(0.5)), ("HO", math.log(0.4))), ("EXECUTE", "HOLD"), (0.5, 0.4)),
        (((" ", math.log(0.9)), ("Maybe", math.log(0.1))), ("YES", "NO"), (0.0, 0.0)),
    ],
)
def test_first_tokens_count_for_the_label_they_begin(
    top: tuple[tuple[str, float], ...], labels: tuple[str, str], expected: tuple[float, float]
) -> None:
    scores = first_token_scores([TokenLogprob(top[0][0], top[0][1], top)], labels)

    assert [math.exp(score) for score in scores] == pytest.approx(expected)


def test_an_endpoint_without_alternatives_is_scored_by_what_it_said() -> None:
    scores = first_token_scores([TokenLogprob("NO", -0.5)], ["YES", "NO"])

    assert scores == [-math.inf, pytest.approx(-0.5)]


def test_an_endpoint_without_log_probabilities_scores_nothing() -> None:
    assert all(map(math.isnan, first_token_scores([], ["YES", "NO"])))


@pytest.mark.parametrize("interface", INTERFACES)
async def test_on_a_faultless_reader_every_method_finds_what_it_finds_exactly(
    interface: Interface,
) -> None:
    condition = NINE[7]
    setting, rule = setting_for(condition), condition.task.rule

    row = await measure_task(
        condition, Cell("unknown", interface), METHODS, asking(ScriptedModel(reads))
    )

    exact = {
        name: drive(EXACT[name](setting, {}), lambda a: rule(a.coalition), problem=setting.problem)
        for name in METHODS
    }
    assert {n: m.queries for n, m in row.methods.items()} == {
        n: r.evaluations for n, r in exact.items()
    }
    assert row.methods["jointcore"].kept == row.methods["oracle"].kept
    assert all(m.behaviour and m.sufficient and m.literal for m in row.methods.values())
    assert (row.reference_right, row.as_retained, row.as_printed) == (True, row.asked, row.asked)


@pytest.mark.parametrize("scoring", ["teacher forcing", "first token"])
async def test_equal_questions_reach_the_model_once(scoring: Scoring) -> None:
    model = ScriptedModel(reads)
    by_likelihood = scoring == "teacher forcing"

    row = await measure_task(NINE[0], PRIMARY, METHODS, asking(model, likelihood=by_likelihood))

    assert row.live == len(model.asked) == row.asked * (2 if by_likelihood else 1)
    assert row.methods["singleton"].behaviour


async def test_the_text_contradicts_retention_where_a_flag_is_deleted() -> None:
    xor = next(t for t in tasks() if t.task.family == "synergy_xor" and t.support_size == 2)

    row = await measure_task(
        xor, Cell("deletion", "boolean"), ("jointcore", "oracle"), asking(ScriptedModel(reads))
    )

    assert row.oracles_differ > 0
    assert row.as_printed == row.asked
    assert row.as_retained == row.asked - row.oracles_differ
    assert row.methods["jointcore"].literal
    assert not row.methods["jointcore"].sufficient


async def test_an_invalid_reference_keeps_everything_and_stays_in_the_denominator() -> None:
    def undecided(_: Request) -> str:
        return "perhaps"

    row = await measure_task(NINE[0], PRIMARY, METHODS, asking(ScriptedModel(undecided)))
    report = report_on([row], config(tasks=1))

    assert row.reference == "INVALID"
    assert not any(m.behaviour for m in row.methods.values())
    assert row.methods["jointcore"].savings == 0
    assert report.cells[0].invalid == 1
    assert report.cells[0].methods["jointcore"].behaviour.mean == 0


async def test_a_refusing_model_is_invalid_not_an_error() -> None:
    def refuses(_: Request) -> Completion:
        raise ModelRefused("not this")

    row = await measure_task(NINE[0], PRIMARY, ("jointcore",), asking(ScriptedModel(refuses)))

    assert row.reference == "INVALID"


class Breaking:
    """Answers like the reader until so many answers are given."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    def __call__(self, request: Request) -> str:
        if not self.left:
            raise ModelUnavailable("the line is cut")
        self.left -= 1
        return reads(request)


async def stage(folder: StageFolder, script: Callable[[Request], str]) -> list[TaskRow]:
    return await run_model_stage(
        NINE[:4], [PRIMARY], METHODS, asking(ScriptedModel(script)), folder
    )


def without_time(rows: Sequence[TaskRow]) -> list[TaskRow]:
    return [msgspec.structs.replace(row, seconds=0.0) for row in rows]


async def test_a_run_cut_short_goes_on_to_the_same_result(tmp_path: Path) -> None:
    whole = await stage(StageFolder(None), reads)
    folder = StageFolder(tmp_path)
    await folder.begin(StageRecord(format=FORMAT, config=config(), command="assay"))

    with pytest.raises(ModelUnavailable):
        await stage(folder, Breaking(whole[0].live + 3))
    kept = await folder.rows()
    with (tmp_path / ROWS_FILE).open("ab") as file:
        file.write(b'{"task":"half a li')
    resumed = await stage(folder, reads)

    assert without_time(kept) == without_time(whole[:1])
    assert without_time(resumed) == without_time(whole)
    assert (tmp_path / ROWS_FILE).read_bytes().count(b"\n") == 4


async def test_progress_counts_what_was_there_and_what_is_new(tmp_path: Path) -> None:
    folder, told = StageFolder(tmp_path), list[int]()
    asked = asking(ScriptedModel(reads))
    await run_model_stage(NINE[:2], [PRIMARY], METHODS, asked, folder)

    await run_model_stage(NINE[:3], [PRIMARY], METHODS, asked, folder, advance=told.append)

    assert told == [2, 1]


async def test_another_run_may_not_take_the_folder(tmp_path: Path) -> None:
    record = StageRecord(format=FORMAT, config=config(), command="assay replay")
    await StageFolder(tmp_path).begin(record)
    await StageFolder(tmp_path).begin(record)

    other = msgspec.structs.replace(record, config=config(seed=8))

    with pytest.raises(ScenarioError, match="another configuration"):
        await StageFolder(tmp_path).begin(other)


async def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "model_stage.json").write_text("{", encoding="utf-8")

    with pytest.raises(ScenarioError, match=r"model_stage\.json: expected the configuration"):
        await StageFolder(tmp_path).begin(
            StageRecord(format=FORMAT, config=config(), command="assay")
        )


def method_row(*, queries: int, savings: float, behaviour: bool = True) -> MethodRow:
    return MethodRow(
        kept=(),
        certificate="none",
        queries=queries,
        behaviour=behaviour,
        sufficient=True,
        literal=True,
        min_cost=False,
        savings=savings,
    )


def task_row(number: int, cell: Cell, jointcore: MethodRow, singleton: MethodRow) -> TaskRow:
    return TaskRow(
        task=f"task {number}",
        family="synergy_and",
        cell=cell,
        reference="HOLD,HALT",
        reference_right=number % 2 == 0,
        asked=10,
        as_retained=9,
        as_printed=8,
        oracles_differ=1,
        methods={"singleton": singleton, "jointcore": jointcore},
        live=20,
        seconds=1.5,
    )


def rows_of(cell: Cell, *, savings: float) -> list[TaskRow]:
    return [
        task_row(
            number,
            cell,
            method_row(queries=10, savings=savings),
            method_row(queries=16, savings=0.5, behaviour=number > 0),
        )
        for number in range(6)
    ]


TWO = config(tasks=6, methods=("singleton", "jointcore"), interfaces=("direct", "ab"))


def test_pairs_are_tested_and_adjusted_together() -> None:
    rows = rows_of(PRIMARY, savings=0.75)

    report = report_on(rows, msgspec.structs.replace(TWO, interfaces=("boolean",)))

    tests = {test.measure: test for test in report.tests}
    assert tests["behaviour"].p == 1.0
    assert tests["queries"].p == pytest.approx(2 / 2**6)
    assert tests["queries"].difference == -6
    assert tests["savings"].holm == pytest.approx(3 * 2 / 2**6)
    assert report.cells[0].as_retained == pytest.approx(0.9)
    assert report.cells[0].methods["singleton"].behaviour.mean == pytest.approx(5 / 6)


@pytest.mark.parametrize(("by_ab", "savings"), [(0.25, 0.0), (0.5, 0.625)])
def test_the_archive_is_kept_where_direct_and_ab_order_the_methods_differently(
    by_ab: float, savings: float
) -> None:
    rows = rows_of(Cell("unknown", "direct"), savings=0.75)
    rows += rows_of(Cell("unknown", "ab"), savings=by_ab)

    [fallback] = report_on(rows, TWO).fallback

    assert fallback.acted is (savings == 0)
    assert fallback.savings == pytest.approx(savings)


def test_without_both_interfaces_there_is_no_fallback_to_judge() -> None:
    rows = rows_of(PRIMARY, savings=0.75)

    report = report_on(rows, msgspec.structs.replace(TWO, interfaces=("boolean",)))

    assert report.fallback == []


def test_without_the_singleton_nothing_is_tested() -> None:
    rows = rows_of(PRIMARY, savings=0.75)
    alone = msgspec.structs.replace(TWO, interfaces=("boolean",), methods=("jointcore",))

    assert report_on(rows, alone).tests == []


def test_the_page_names_its_command_and_shows_every_table() -> None:
    rows = rows_of(Cell("unknown", "direct"), savings=0.75)
    rows += rows_of(Cell("unknown", "ab"), savings=0.25)

    page = stage_markdown(report_on(rows, TWO), "assay replay jointcorebench --stage model")

    assert "Made by `assay replay jointcorebench --stage model`" in page
    assert "| jointcore | 10.00 (10.00..10.00) |" in page
    assert "| unknown | jointcore | +0.250 | -0.250 | full memory | 0.000 |" in page
    assert "| unknown, ab | jointcore | queries | -6.000 | 0.03125 |" in page
