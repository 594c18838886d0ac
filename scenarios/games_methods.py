"""The methods that play the clearing games, by the names the command line knows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from assay.guards.clearing.adaptive import Policy, adaptive
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.core_grow import core_grow
from assay.guards.clearing.levelwise import levelwise
from assay.guards.clearing.pivot import pivot
from assay.guards.clearing.probes import Search
from assay.guards.clearing.published import (
    by_banzhaf,
    by_context_cite,
    by_exact_deletion,
    by_exact_shapley,
    by_leave_one_out,
    meclear,
)

Method: TypeAlias = Callable[[int, Answers, np.random.Generator], Search]
"""From the number of candidates, how answers scatter, and a source of chance to a search."""

LARGEST_TABLE = 12
"""Most candidates a full table is asked for in a benchmark: 4,096 evaluations a game."""

LARGEST_LEVELS = 16
"""Most candidates for level-wise deletion: up to 2,517 evaluations a game."""

UNSURE = (0.8, 0.15)
"""Chances of a right answer on a right and on a wrong context, assumed by ``adaptive_unsure``."""

EVERY_CONTEXT = frozenset({"shapley_exact", "exact_deletion"})


def own_methods() -> Mapping[str, Method]:
    """Every method that needs nothing but Assay, in the order of the tables."""
    return {
        "leave_one_out": lambda n, _answers, _rng: by_leave_one_out(n),
        "meclear_l4": _meclear(4),
        "meclear_l8": _meclear(8),
        "meclear": _meclear(16),
        "meclear_l32": _meclear(32),
        "meclear_antithetic": _meclear(16, antithetic=True),
        "shapley_exact": lambda n, _answers, _rng: by_exact_shapley(n),
        "exact_deletion": lambda n, _answers, _rng: by_exact_deletion(n),
        "contextcite": lambda n, _answers, rng: by_context_cite(n, rng),
        "banzhaf": lambda n, _answers, rng: by_banzhaf(n, rng),
        "levelwise": lambda n, answers, _rng: levelwise(n, answers),
        "pivot": pivot,
        "core_grow": core_grow,
        "adaptive": _adaptive(Policy(batch=2)),
        "adaptive_batch4": _adaptive(Policy(batch=4), exact_batch=4),
        "adaptive_even": _adaptive(Policy(batch=2, prior="even")),
        "adaptive_flat": _adaptive(Policy(batch=2, prior="flat")),
        "adaptive_unsure": _adaptive(Policy(batch=2), UNSURE),
    }


def too_large(name: str, n: int) -> str:
    """Why a method is not run on games of this size; empty if it is."""
    if name in EVERY_CONTEXT and n > LARGEST_TABLE:
        return f"asks all 2 ** {n} contexts"
    if name == "levelwise" and n > LARGEST_LEVELS:
        return f"asks every deletion of up to 4 of {n} candidates"
    return ""


def _meclear(permutations: int, *, antithetic: bool = False) -> Method:
    def make(n: int, answers: Answers, rng: np.random.Generator) -> Search:
        return meclear(n, rng, permutations=permutations, antithetic=antithetic)

    return make


def _adaptive(
    noisy: Policy, assumed: tuple[float, float] | None = None, *, exact_batch: int = 1
) -> Method:
    """Adaptive with a policy; exact answers are asked one at a time and believed only when sure."""

    def make(n: int, answers: Answers, rng: np.random.Generator) -> Search:
        policy = noisy
        if answers.kind == "deterministic":
            policy = replace(noisy, batch=exact_batch, confidence=0.999)
        if assumed is not None:
            answers = replace(answers, right=assumed[0], wrong=assumed[1])
        return adaptive(n, answers, rng, policy)

    return make
