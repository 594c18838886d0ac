"""The recorded Causal-LoCoMo run, replayed: its decisions, its variants, its tables.

Everything here reads labels: it is the *published* protocol, with the answer key in hand, and it is
never mixed with the blind one. Source: the study's recorded diagnostics (one row per candidate with
its three scores) and scores (one row per agent and example).
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from assay.errors import ScenarioError
from assay.scenarios.loader import malformed, read_jsonl
from assay.scenarios.metrics import METRICS, observations, score
from assay.scenarios.schema import Key
from assay.scenarios.statistics import Interval, bootstrap_interval
from assay.stores.records import RecordId

Label: TypeAlias = Literal["useful", "irrelevant", "harmful"]


class BankEntry(msgspec.Struct, frozen=True):
    """One memory of an example and what it was made for."""

    memory_id: RecordId
    label: Label


class KeyedExample(msgspec.Struct, frozen=True):
    """The part of an example's row that is its key."""

    example_id: str
    task_family: str
    split_group_id: str
    memory_bank: tuple[BankEntry, ...]

    def key(self) -> Key:
        """The key as the metrics take it, under the study's own ids."""
        return Key(
            family=self.task_family,
            cluster=self.split_group_id,
            useful=self._labelled("useful"),
            irrelevant=self._labelled("irrelevant"),
            harmful=self._labelled("harmful"),
        )

    def _labelled(self, label: Label) -> frozenset[RecordId]:
        return frozenset(entry.memory_id for entry in self.memory_bank if entry.label == label)


class Diagnosis(NamedTuple):
    """One recorded candidate; utilities are differences of scores, so in [-1, 1]."""

    memory_id: RecordId
    utility: float
    stability: float
    selected: bool
    harmful: bool
    label: str


Diagnoses: TypeAlias = Mapping[str, Sequence[Diagnosis]]
"""The candidates of each example in recorded order."""

Rule: TypeAlias = Callable[[Sequence[Diagnosis]], list[RecordId]]


def recorded_rule(rows: Sequence[Diagnosis]) -> list[RecordId]:
    """As run: positive utility, stable, and not labelled harmful."""
    return [r.memory_id for r in rows if r.utility > 0 and r.stability >= 0 and not r.harmful]


def no_labels(rows: Sequence[Diagnosis]) -> list[RecordId]:
    """As run, with the label filter taken out."""
    return [r.memory_id for r in rows if r.utility > 0 and r.stability >= 0]


def no_stability(rows: Sequence[Diagnosis]) -> list[RecordId]:
    """As run, with the stability test taken out."""
    return [r.memory_id for r in rows if r.utility > 0 and not r.harmful]


def no_labels_argmax(rows: Sequence[Diagnosis]) -> list[RecordId]:
    """No label: the one candidate of largest utility, if that is positive."""
    best = max(rows, key=lambda row: row.utility)
    return [best.memory_id] if best.utility > 0 else []


def label_first(rows: Sequence[Diagnosis]) -> list[RecordId]:
    """No model at all: the first candidate that is not labelled harmful."""
    return [row.memory_id for row in rows if not row.harmful][:1]


RULES: Mapping[str, Rule] = {
    "cmi": recorded_rule,
    "cmi_no_labels": no_labels,
    "cmi_no_stability": no_stability,
    "cmi_no_labels_argmax": no_labels_argmax,
    "label_first": label_first,
}


class RuleResult(NamedTuple):
    """Metrics of one rule; ``poisoned`` counts the examples where it took a harmful memory."""

    metrics: dict[str, Interval]
    poisoned: int
    poisonable: int


class Replayed(NamedTuple):
    """The whole replay: recorded decisions found again, and every rule's metrics."""

    decisions: int
    reproduced: int
    examples: int
    methods: dict[str, RuleResult]


def read_keys(path: Path) -> dict[str, Key]:
    """Keys by example id."""
    return {row.example_id: row.key() for _, row in read_jsonl(path, KeyedExample)}


def read_diagnostics(path: Path) -> dict[str, list[Diagnosis]]:
    """The recorded candidates by example.

    Raises:
        ScenarioError: If the file is missing or a row is not what was expected.
    """
    found: dict[str, list[Diagnosis]] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                _take(path, number, row, found)
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if not found:
        raise ScenarioError(f"{path}: expected recorded diagnostics, got no row")
    return found


def replay_published(keys: Mapping[str, Key], diagnoses: Diagnoses, *, seed: int) -> Replayed:
    """Decide every recorded candidate again, by every rule.

    Args:
        keys: By example id.
        diagnoses: By example id; an example without candidates selects nothing.
        seed: Of the bootstrap intervals.
    """
    require_keys(keys, diagnoses)
    rows = [row for candidates in diagnoses.values() for row in candidates]
    decided = {
        (example, memory)
        for example, candidates in diagnoses.items()
        for memory in recorded_rule(candidates)
    }
    reproduced = sum(
        ((example, row.memory_id) in decided) == row.selected
        for example, candidates in diagnoses.items()
        for row in candidates
    )
    methods = {name: _metrics(rule, keys, diagnoses, seed) for name, rule in RULES.items()}
    return Replayed(len(rows), reproduced, len(keys), methods)


def require_keys(keys: Mapping[str, Key], examples: Iterable[str]) -> None:
    """Refuse recorded examples that the data file does not hold.

    Raises:
        ScenarioError: Naming the first one.
    """
    for example in examples:
        if example not in keys:
            raise ScenarioError(
                f"the record speaks of example {example!r}, which the data file does not hold; "
                "pass the Causal-LoCoMo file that was recorded with --data"
            )


def _metrics(rule: Rule, keys: Mapping[str, Key], diagnoses: Diagnoses, seed: int) -> RuleResult:
    ordered = list(keys)
    chosen = [rule(diagnoses[example]) if example in diagnoses else [] for example in ordered]
    scores = [
        score(selected, keys[example]) for selected, example in zip(chosen, ordered, strict=True)
    ]
    seen = observations(scores, [keys[example] for example in ordered])
    poison = seen["poison_adoption_poisoned"].values
    metrics = {
        name: bootstrap_interval(seen[name].values, seen[name].clusters, seed=seed)
        for name in METRICS
    }
    return RuleResult(metrics, int(sum(poison)), len(poison))


def _take(path: Path, line: int, row: Mapping[str, str], found: dict[str, list[Diagnosis]]) -> None:
    try:
        found.setdefault(row["example_id"], []).append(_row(row))
    except (KeyError, TypeError, ValueError) as error:
        expected = "expected example_id, memory_id, utility, stability, selected and label"
        raise malformed(path, line, f"{expected}, got {dict(row)!r}") from error


def _row(row: Mapping[str, str]) -> Diagnosis:
    return Diagnosis(
        memory_id=RecordId(row["memory_id"]),
        utility=float(row["utility"]),
        stability=float(row["stability"]),
        selected=row["selected"] == "True",
        harmful=row["label"] == "harmful",
        label=row["label"],
    )
