"""Graph memory: records joined by the words and the people they share, reached from the question."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.baselines import decision_of
from assay.guards.evidence.text import stems, words
from assay.guards.perturb_names import names
from assay.guards.protocols import Case, Decision, Experimenter

Matrix: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(texts, nodes)``: how strongly each text holds on to each node, at least 0."""

_RESTART: Final = 0.3
_STEPS: Final = 32
_SCOPE_WEIGHT: Final = 2.0


class _Text(NamedTuple):
    tokens: frozenset[str]
    scopes: frozenset[str]


class Graph:
    """Admits the best by a random walk from the question over token and scope nodes.

    Every record is joined to its content words (token nodes) and to the names it speaks of (scope
    nodes); rarer nodes pull harder. The walk starts from the question's own nodes and returns there
    with probability .3 at each step (personalised PageRank; Page et al. 1999), so a record can be
    reached through another one that shares a name with it.

    Args:
        limit: How many to admit, as published three.

    Raises:
        ValueError: If the limit is negative.
    """

    def __init__(self, *, limit: int = 3) -> None:
        if limit < 0:
            raise ValueError(f"limit must be at least 0, got {limit!r}")
        self._limit = limit

    @property
    def name(self) -> str:
        """``graph``."""
        return "graph"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        texts = [candidate.record.text for candidate in case.candidates]
        reached = closeness(case.question, texts)
        # By text where two are equally near, so that order and ids change nothing.
        ranked = sorted(range(len(texts)), key=lambda i: (-round(reached[i], 12), texts[i]))
        return decision_of(
            self.name,
            case,
            ranked[: self._limit],
            kept=f"among the {self._limit} nearest to the question by shared words and names",
            left=f"{self._limit} others share more words and names with the question",
        )


def closeness(question: str, texts: Sequence[str]) -> list[float]:
    """How often a walk from the question visits each text; at least 0, in all at most 1."""
    if not texts:
        return []
    known = [_read(text) for text in (question, *texts)]
    weights = _weights(known)
    to_nodes, to_texts = _rows_sum_to_one(weights), _rows_sum_to_one(weights.T)
    start = np.zeros(len(known))
    start[0] = 1.0
    visits = start
    for _ in range(_STEPS):
        visits = _RESTART * start + (1 - _RESTART) * (visits @ to_nodes @ to_texts)
    return [float(visit) for visit in visits[1:]]


def _read(text: str) -> _Text:
    named = {word for start, stop in names(text) for word in words(text[start:stop])}
    return _Text(frozenset(stems(text)), frozenset(named))


def _weights(known: Sequence[_Text]) -> Matrix:
    """Weight of each node in each text: the inverse document frequency, doubled for scopes."""
    nodes = sorted({("token", token) for one in known for token in one.tokens})
    scopes = {scope for one in known for scope in one.scopes}
    nodes += sorted(("scope", scope) for scope in scopes)
    held = np.array([[_holds(one, *node) for node in nodes] for one in known], dtype=np.float64)
    held = held.reshape(len(known), len(nodes))
    rarity = np.log1p(len(known) / np.maximum(held.sum(axis=0), 1.0))
    kind = np.array([_SCOPE_WEIGHT if kind == "scope" else 1.0 for kind, _ in nodes])
    weights: Matrix = held * rarity * kind
    return weights


def _holds(text: _Text, kind: str, word: str) -> bool:
    """A name counts as a scope in any case it is written: questions hold names at their start too."""
    return word in text.tokens if kind == "token" else word in text.scopes | text.tokens


def _rows_sum_to_one(matrix: Matrix) -> Matrix:
    totals = matrix.sum(axis=1, keepdims=True)
    rows: Matrix = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    return rows
