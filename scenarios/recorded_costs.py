"""What the study's agents cost, to stand beside what ours do."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from assay.scenarios.loader import read_jsonl


class PublishedCost(NamedTuple):
    """Means per example, as the study states them.

    Attributes:
        calls: Chat calls.
        rounds: Calls one after the other.
        tokens: Of the agent's calls.
        seconds: Wall time.
    """

    calls: float
    rounds: float
    tokens: float
    seconds: float


PUBLISHED_COSTS: Mapping[str, PublishedCost] = MappingProxyType(
    {
        "vector": PublishedCost(calls=1, rounds=1, tokens=178, seconds=1.7),
        "cmi": PublishedCost(calls=8, rounds=8, tokens=835, seconds=29),
    }
)
"""K = 3: CMI asks 2K + 1 questions and answers once, all of it serial."""


class RecordedCost(NamedTuple):
    """Means over an agent's recorded answers."""

    answers: int
    tokens: float
    seconds: float


class _Usage(msgspec.Struct, frozen=True):
    total_tokens: int


class _Answer(msgspec.Struct, frozen=True):
    agent_name: str
    token_usage: _Usage
    latency_seconds: float


def recorded_costs(answers: Path) -> dict[str, RecordedCost]:
    """Tokens (judging included) and seconds per example by agent, from recorded answers.

    Raises:
        ScenarioError: If the file is missing or malformed.
    """
    by_agent: dict[str, list[_Answer]] = {}
    for _, row in read_jsonl(answers, _Answer):
        by_agent.setdefault(row.agent_name, []).append(row)
    return {
        name: RecordedCost(
            len(rows),
            fmean(row.token_usage.total_tokens for row in rows),
            fmean(row.latency_seconds for row in rows),
        )
        for name, rows in by_agent.items()
    }
