"""The three tables of the Causal-LoCoMo study, computed from its recorded scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from assay.scenarios.loader import read_jsonl
from assay.scenarios.published_cmi import Diagnoses, require_keys
from assay.scenarios.schema import Key
from assay.scenarios.statistics import Interval, bootstrap_interval

_SUCCESS = 0.7


class _Judge(msgspec.Struct, frozen=True):
    explanation: str = ""


class _MemoryMetrics(msgspec.Struct, frozen=True):
    useful_memory_f1: float
    useful_memory_recall: float
    harmful_memory_rejection_rate: float
    poisoned_memory_adoption_rate: float


class _Scores(msgspec.Struct, frozen=True):
    task_score: float
    llm_judge_score: float
    memory_metrics: _MemoryMetrics
    judge: _Judge = _Judge()


class RecordedAnswer(msgspec.Struct, frozen=True):
    """One agent's recorded scores on one example."""

    example_id: str
    task_family: str
    agent_name: str
    scores: _Scores

    @property
    def judge_missing(self) -> bool:
        """Whether the judge's output was cut: a score of 0 without an explanation."""
        return self.scores.llm_judge_score == 0 and not self.scores.judge.explanation


class AgentRow(NamedTuple):
    """Table 1, one agent.

    Attributes:
        task: Mean task score in [0, 1] as published: a missing judge answer counts as 0.
        task_judged: The same over the answers that have a judge's answer.
        judge_missing: How many have none.
        success: Share of task scores of at least 0.7.
        useful_f1: Mean of the examples' F1.
        bad_rejection: Mean share of irrelevant and harmful memories left out.
        poison: Share of all examples in which a harmful memory was taken.
        memories: Mean number of memories taken.
    """

    task: Interval
    task_judged: Interval
    judge_missing: int
    success: Interval
    useful_f1: Interval
    bad_rejection: Interval
    poison: Interval
    memories: Interval


class DiagnosisRow(NamedTuple):
    """Table 3, one label: mean utility and stability of its candidates."""

    candidates: int
    utility: Interval
    stability: Interval


class Tables(NamedTuple):
    """Table 1 by agent; table 2 by agent and family (task score); table 3 by label."""

    agents: dict[str, AgentRow]
    families: dict[str, dict[str, Interval]]
    diagnostics: dict[str, DiagnosisRow]

    @property
    def judge_missing(self) -> int:
        """Truncated judge answers over all agents."""
        return sum(row.judge_missing for row in self.agents.values())


def published_tables(
    scores: Path, keys: Mapping[str, Key], diagnoses: Diagnoses, *, seed: int
) -> Tables:
    """All three tables with 95 % intervals by conversation."""
    answers = [answer for _, answer in read_jsonl(scores, RecordedAnswer)]
    require_keys(keys, [*diagnoses, *(answer.example_id for answer in answers)])
    by_agent: dict[str, list[RecordedAnswer]] = {}
    for answer in answers:
        by_agent.setdefault(answer.agent_name, []).append(answer)
    return Tables(
        agents={name: _agent(answers, keys, seed) for name, answers in by_agent.items()},
        families={name: _families(answers, keys, seed) for name, answers in by_agent.items()},
        diagnostics=_diagnostics(keys, diagnoses, seed),
    )


def _agent(answers: Sequence[RecordedAnswer], keys: Mapping[str, Key], seed: int) -> AgentRow:
    clusters = [keys[answer.example_id].cluster for answer in answers]

    def interval(values: Sequence[float]) -> Interval:
        return bootstrap_interval(values, clusters, seed=seed)

    judged = [answer for answer in answers if not answer.judge_missing]
    metrics = [answer.scores.memory_metrics for answer in answers]
    return AgentRow(
        task=interval([answer.scores.task_score for answer in answers]),
        task_judged=_task(judged, keys, seed),
        judge_missing=len(answers) - len(judged),
        success=interval([float(answer.scores.task_score >= _SUCCESS) for answer in answers]),
        useful_f1=interval([m.useful_memory_f1 for m in metrics]),
        bad_rejection=interval([m.harmful_memory_rejection_rate for m in metrics]),
        poison=interval([m.poisoned_memory_adoption_rate for m in metrics]),
        memories=interval([_memories(answer, keys[answer.example_id]) for answer in answers]),
    )


def _memories(answer: RecordedAnswer, key: Key) -> float:
    """How many memories were taken, from the shares of useful and of bad ones."""
    metrics = answer.scores.memory_metrics
    bad = len(key.irrelevant) + len(key.harmful)
    taken_bad = (1 - metrics.harmful_memory_rejection_rate) * bad
    return metrics.useful_memory_recall * len(key.useful) + taken_bad


def _families(
    answers: Sequence[RecordedAnswer], keys: Mapping[str, Key], seed: int
) -> dict[str, Interval]:
    groups: dict[str, list[RecordedAnswer]] = {}
    for answer in answers:
        groups.setdefault(answer.task_family, []).append(answer)
    return {family: _task(group, keys, seed) for family, group in groups.items()}


def _task(answers: Sequence[RecordedAnswer], keys: Mapping[str, Key], seed: int) -> Interval:
    clusters = [keys[answer.example_id].cluster for answer in answers]
    values = [answer.scores.task_score for answer in answers]
    return bootstrap_interval(values, clusters, seed=seed)


def _diagnostics(
    keys: Mapping[str, Key], diagnoses: Diagnoses, seed: int
) -> dict[str, DiagnosisRow]:
    rows = [(keys[example].cluster, row) for example, found in diagnoses.items() for row in found]
    table: dict[str, DiagnosisRow] = {}
    for label in ("useful", "irrelevant", "harmful"):
        chosen = [(cluster, row) for cluster, row in rows if row.label == label]
        clusters = [cluster for cluster, _ in chosen]
        table[label] = DiagnosisRow(
            candidates=len(chosen),
            utility=bootstrap_interval([r.utility for _, r in chosen], clusters, seed=seed),
            stability=bootstrap_interval([r.stability for _, r in chosen], clusters, seed=seed),
        )
    return table
