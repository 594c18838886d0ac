"""A run as something to compare: for each method and measure, a value per unit and where it is from."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.scenarios.metrics import Score, score
from assay.scenarios.runs import Row, RunRecord
from assay.scenarios.schema import Key, Scenario
from assay.scenarios.simulation.figures import GOALS, MEASURES, goals
from assay.scenarios.simulation.records import Lived, SimulationRecord


class Value(NamedTuple):
    """A measure on one unit, and the conversation or user the unit is from."""

    value: float
    cluster: str


class Measured(NamedTuple):
    """One measure of one method.

    Attributes:
        label: In tables.
        meaning: What it is.
        values: By unit.
        is_binary: Whether every value is 0 or 1, so that McNemar's test applies.
    """

    label: str
    meaning: str
    values: Mapping[str, Value]
    is_binary: bool


class Comparable(NamedTuple):
    """A run in a form that does not tell its kind.

    Attributes:
        path: Its folder.
        suite: What must be the same in two runs that are compared, by what it is called.
        facts: Command, seed, model identity and the like.
        methods: By name of the method, then of the measure.
        cluster: What intervals resample: ``conversation`` or ``user``.
        seed: Of intervals and tests.
        unfinished: What is missing, in a sentence; empty where nothing is.
    """

    path: Path
    suite: Mapping[str, str]
    facts: Sequence[tuple[str, str]]
    methods: Mapping[str, Mapping[str, Measured]]
    cluster: str
    seed: int
    unfinished: str


def comparable_run(
    path: Path, record: RunRecord, scenarios: Sequence[Scenario], rows: Sequence[Row]
) -> Comparable:
    """A benchmark run, finished or not."""
    config = record.config
    keys = {scenario.example.id: scenario.key for scenario in scenarios}
    own = {name: [row for row in rows if row.method == name] for name in config.methods}
    return Comparable(
        path=path,
        suite={
            "suite": config.suite,
            "protocol": config.protocol,
            "data": f"sha256 {config.data_sha256[:12]}",
        },
        facts=[
            ("Command", record.command),
            ("Model", record.identity),
            ("Embedder", record.embedder),
            ("Seed", str(config.seed)),
            ("Data", f"sha256 {config.data_sha256}"),
        ],
        methods={name: _of_rows(rows, keys) for name, rows in own.items() if rows},
        cluster="conversation",
        seed=config.seed,
        unfinished=unfinished_run(record, scenarios, rows),
    )


def comparable_simulation(
    path: Path, record: SimulationRecord, lived: Sequence[Lived]
) -> Comparable:
    """A simulation, finished or not."""
    config = record.config
    agents = config.simulation.agent
    own = {a.name: [one for one in lived if one.agent == i] for i, a in enumerate(agents)}
    return Comparable(
        path=path,
        suite={
            "suite": f"simulation {config.name}",
            "file": f"sha256 {config.sha256[:12]}",
            "seed": str(config.seed),
        },
        facts=[
            ("Command", record.command),
            ("Model", record.identity),
            ("Users speak by", config.simulation.user_model),
            ("Embedder", record.embedder),
            ("Seed", str(config.seed)),
            ("File", f"sha256 {config.sha256}"),
        ],
        methods={name: _of_lives(lives) for name, lives in own.items() if lives},
        cluster="user",
        seed=config.seed,
        unfinished=unfinished_simulation(record, lived),
    )


def decided_by_all(
    record: RunRecord, scenarios: Sequence[Scenario], rows: Sequence[Row]
) -> list[Scenario]:
    """The scenarios every method has decided so far."""
    done = {row.unit for row in rows}
    return [
        scenario
        for scenario in scenarios
        if all((scenario.example.id, method) in done for method in record.config.methods)
    ]


def unfinished_run(record: RunRecord, scenarios: Sequence[Scenario], rows: Sequence[Row]) -> str:
    """What a benchmark run lacks, in a sentence; empty if nothing."""
    every = len(scenarios) * len(record.config.methods)
    if len(rows) >= every:
        return ""
    shown = len(decided_by_all(record, scenarios, rows))
    return (
        f"This run has not finished: {len(rows)} of {every} decisions are there. Figures are over "
        f"the {shown} of {len(scenarios)} examples that every method has decided."
    )


def unfinished_simulation(record: SimulationRecord, lived: Sequence[Lived]) -> str:
    """What a simulation lacks, in a sentence; empty if nothing."""
    config = record.config
    agents = len(config.simulation.agent)
    every = config.users * agents
    if len(lived) >= every:
        return ""
    whole = [n for n in Counter(one.user for one in lived).values() if n == agents]
    return (
        f"This simulation has not finished: {len(lived)} of {every} runs of a user with an agent "
        f"are there. Figures are over the {len(whole)} of {config.users} users that every agent "
        "has lived through."
    )


def _of_rows(rows: Sequence[Row], keys: Mapping[str, Key]) -> dict[str, Measured]:
    scored = [(row, keys[row.example], score(row.admitted, keys[row.example])) for row in rows]
    return {
        "useful_f1": Measured(
            "useful F1",
            "F1 of the selected memories of an example",
            _by_example(scored, lambda _, s: s.useful_f1),
            is_binary=False,
        ),
        "poison_adoption_poisoned": Measured(
            "poison adopted",
            "Whether a harmful memory was selected, over examples that have one",
            _by_example([one for one in scored if one[1].harmful], lambda _, s: s.poison),
            is_binary=True,
        ),
        "evaluations": Measured(
            "evaluations",
            "Distinct questions put to the laboratory per example",
            _by_example(scored, lambda row, _: float(row.spent.evaluations)),
            is_binary=False,
        ),
        "tokens": Measured(
            "tokens",
            "Tokens of live calls per example; what was cached costs none",
            _by_example(scored, lambda row, _: float(row.spent.tokens)),
            is_binary=False,
        ),
    }


def _by_example(
    scored: Sequence[tuple[Row, Key, Score]], of: Callable[[Row, Score], float]
) -> dict[str, Value]:
    return {row.example: Value(of(row, own), key.cluster) for row, key, own in scored}


def _of_lives(lives: Sequence[Lived]) -> dict[str, Measured]:
    found = {
        name: Measured(measure.label, measure.meaning, _by_question(lives, name), measure.is_share)
        for name, measure in MEASURES.items()
    }
    reached = {
        f"{one.user}/{number}": Value(value, str(one.user))
        for one in lives
        for number, value in enumerate(goals(one))
    }
    meaning = "Whether every answer an attempt at a goal needs was right"
    return found | {GOALS: Measured("goals reached", meaning, reached, is_binary=True)}


def _by_question(lives: Sequence[Lived], measure: str) -> dict[str, Value]:
    of = MEASURES[measure].of
    return {
        f"{one.user}/{number}": Value(value, str(one.user))
        for one in lives
        for number, asked in enumerate(one.asked)
        if (value := of(asked)) is not None
    }
