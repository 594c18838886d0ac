"""The model stage: the methods of the exact stage, with a model in the place of the rule."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import anyio

from assay.guards.budget import Budget, Limits
from assay.guards.coalitions import Coalition, members
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import ChatModel, LikelihoodModel
from assay.guards.reduction.search import Problem, Reduction, Search, Step, finished
from assay.scenarios.jointcorebench.conditions import Condition
from assay.scenarios.jointcorebench.deciding import (
    Scoring,
    Trajectory,
    decide,
    is_same,
    trajectory_of,
)
from assay.scenarios.jointcorebench.exact import is_least_cost
from assay.scenarios.jointcorebench.methods import EXACT, setting_for
from assay.scenarios.jointcorebench.model_folder import StageFolder
from assay.scenarios.jointcorebench.model_rows import MethodRow, TaskRow
from assay.scenarios.jointcorebench.prompting import Cell, Form, form_of, shown_values
from assay.scenarios.jointcorebench.statements import statement_of
from assay.stores.protocols import Cache
from assay.stores.records import Namespace

_NAMESPACE = Namespace("jointcorebench/model")
_AT_ONCE = 2
"""Calls in flight: the searches ask one subset at a time, with two labels."""


class Asked(NamedTuple):
    """What answers in a run.

    Attributes:
        model: The model.
        likelihood: The same one, where it tells how likely a given text is; without it, labels are
            scored by the first token.
        cache: Answers paid for.
    """

    model: ChatModel
    likelihood: LikelihoodModel | None
    cache: Cache

    @property
    def scoring(self) -> Scoring:
        """How labels are scored with it."""
        return "first token" if self.likelihood is None else "teacher forcing"


async def run_model_stage(  # noqa: PLR0913  # what to run, on what, and who watches
    tasks: Sequence[Condition],
    cells: Sequence[Cell],
    methods: Sequence[str],
    asked: Asked,
    folder: StageFolder,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> list[TaskRow]:
    """Measure every task in every cell that the folder does not hold yet; all rows, in order.

    Args:
        tasks: The tasks.
        cells: Ways to ask, one after the other.
        methods: Names of ``EXACT``.
        asked: What answers.
        folder: Where rows are kept, one at a time.
        advance: Told how many more rows there are.

    Raises:
        ModelUnavailable: If the model could not be reached; the rows so far are kept.
        ScenarioError: If a prompt is too long.
    """
    rows = {(row.cell, row.task): row for row in await folder.rows()}
    wanted = [(cell, task) for cell in cells for task in tasks]
    advance(sum((cell, task.id) in rows for cell, task in wanted))
    for cell, task in wanted:
        if (cell, task.id) not in rows:
            row = await measure_task(task, cell, methods, asked)
            await folder.append(row)
            rows[cell, task.id] = row
            advance(1)
    return [rows[cell, task.id] for cell, task in wanted]


async def measure_task(
    condition: Condition, cell: Cell, methods: Sequence[str], asked: Asked
) -> TaskRow:
    """All methods on one task in one cell; equal questions are put to the model once."""
    started = anyio.current_time()
    form = form_of(condition, cell, asked.model)
    laboratory = Laboratory(
        model=asked.model,
        render=form.render,
        cache=asked.cache,
        namespace=_NAMESPACE,
        budget=Budget(Limits()),
        concurrency=_AT_ONCE,
        likelihood=asked.likelihood,
    )
    bench = _Bench(laboratory, form, asked.scoring, condition.task.n)
    measured = {name: await _measure(name, condition, cell, bench) for name in methods}
    reference = await bench.reference()
    judged = bench.judged(condition, cell)
    return TaskRow(
        task=condition.id,
        family=condition.task.family,
        cell=cell,
        reference=reference,
        reference_right=reference == trajectory_of(form.right),
        asked=len(bench.known),
        as_retained=sum(one.as_retained for one in judged),
        as_printed=sum(one.as_printed for one in judged),
        oracles_differ=sum(one.oracles_differ for one in judged),
        methods=measured,
        live=laboratory.ledger().live,
        seconds=anyio.current_time() - started,
    )


class _Judged(NamedTuple):
    """One subset asked: is the decision the one of each oracle, and do the oracles differ."""

    as_retained: bool
    as_printed: bool
    oracles_differ: bool


class _Bench:
    """Trajectories of one task in one cell, each asked once."""

    def __init__(self, laboratory: Laboratory, form: Form, scoring: Scoring, n: int) -> None:
        self._laboratory = laboratory
        self._form = form
        self._scoring: Scoring = scoring
        self._everything = Coalition((1 << n) - 1)
        self.known: dict[Coalition, Trajectory] = {}

    async def trajectory(self, retained: Coalition) -> Trajectory:
        if retained not in self.known:
            self.known[retained] = await decide(
                self._laboratory, retained, self._form, self._scoring
            )
        return self.known[retained]

    async def reference(self) -> Trajectory:
        return await self.trajectory(self._everything)

    async def same(self, retained: Coalition) -> bool:
        return is_same(await self.trajectory(retained), await self.reference())

    def judged(self, condition: Condition, cell: Cell) -> list[_Judged]:
        statement, rule = statement_of(condition.task), condition.task.rule
        right, wrong = trajectory_of(self._form.right), trajectory_of(self._form.wrong)
        judged: list[_Judged] = []
        for retained, trajectory in self.known.items():
            by_rule = rule(retained)
            by_text = statement.holds(shown_values(condition, cell, retained))
            judged.append(
                _Judged(
                    trajectory == (right if by_rule else wrong),
                    trajectory == (right if by_text else wrong),
                    by_rule != by_text,
                )
            )
        return judged


async def _measure(name: str, condition: Condition, cell: Cell, bench: _Bench) -> MethodRow:
    setting, rule = setting_for(condition), condition.task.rule
    problem = setting.problem
    reduction = await _reduce(EXACT[name](setting, {}), bench, problem)
    kept = reduction.kept
    return MethodRow(
        kept=tuple(members(kept)),
        certificate=reduction.certificate,
        queries=reduction.evaluations,
        behaviour=await bench.same(kept),
        sufficient=rule(kept),
        literal=statement_of(condition.task).holds(shown_values(condition, cell, kept)),
        min_cost=is_least_cost(reduction, rule, setting),
        savings=1 - problem.cost(kept) / problem.cost(problem.everything),
    )


async def _reduce(search: Search, bench: _Bench, problem: Problem) -> Reduction:
    """Drive a search; a repeated question counts again, as published, but is not asked again."""
    steps: list[Step] = []
    try:
        question = next(search)
        while True:
            same = await bench.same(question.ask.coalition)
            steps.append(Step(question.ask, same))
            question = search.send(same)
    except StopIteration as stop:
        return finished(stop.value, steps, problem)
