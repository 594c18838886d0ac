"""PIVOT: leave-one-outs first; redundant harm is then found by adding to one right core.

A leave-one-out cannot see redundant copies, because the others still harm. Adding each candidate to a
small *right* context can: whatever breaks it is harmful, however many copies there are.
"""

from collections.abc import Generator, Iterator
from itertools import combinations, islice

import numpy as np

from assay.guards.clearing.answers import Answers, Notebook
from assay.guards.clearing.findings import Findings
from assay.guards.clearing.probes import Batch, Clearing, Search, anytime
from assay.guards.coalitions import (
    EMPTY,
    Coalition,
    Utilities,
    coalition_of,
    contains,
    grand,
    members,
    singleton,
    union,
    without,
)

ATTEMPTS = 3
"""Times the search starts again, surer of each answer, after its proposal failed verification."""

CORE_BATCH = 4
"""Contexts asked at once while looking for a right core."""


def pivot(n: int, answers: Answers, rng: np.random.Generator) -> Search:
    """Search for the harmful candidates around one right core.

    The grand coalition and the leave-one-outs; else a right core among singletons, pairs and random
    subsets; then core plus each other candidate in one batch; then the context without what broke
    it, and leave-one-outs inside it for a joint part. About ``n + 1`` evaluations for single and
    joint faults and ``3 n`` for redundant ones; noisy answers are redrawn until they are clear.

    Args:
        n: Number of candidates; any, 0 and more than 62 included.
        answers: How noisy the answers are.
        rng: Picks the random subsets.
    """
    findings = Findings(n, Notebook(answers))
    return anytime(_pivot(findings, rng), findings.best)


def _pivot(findings: Findings, rng: np.random.Generator) -> Search:
    if (yield from findings.grand_is_right()):
        return findings.clean()
    for _ in range(ATTEMPTS):
        found = yield from _attempt(findings, rng)
        if found is not None:
            return found
        if findings.book.answers.kind == "deterministic":
            break
        findings.book.enough += findings.book.answers.enough / 2
        findings.flagged.clear()
    return findings.unrecovered()


def _attempt(
    findings: Findings, rng: np.random.Generator
) -> Generator[Batch, Utilities, Clearing | None]:
    if (found := (yield from _leave_one_out(findings, grand(findings.n)))) is not None:
        return found
    core = yield from _right_core(findings, rng)
    if core is None:
        return None
    breakers = yield from _breakers(findings, core)
    findings.flag(members(breakers))
    if (yield from findings.try_clearing(breakers)):
        return findings.recovered(breakers)
    return (yield from _leave_one_out(findings, without(grand(findings.n), breakers)))


def _leave_one_out(
    findings: Findings, context: Coalition
) -> Generator[Batch, Utilities, Clearing | None]:
    """Single deletions inside a wrong context; the ones that recover it are harmful (together)."""
    book = findings.book
    inside = members(context)
    yield from book.settle([without(context, singleton(i)) for i in inside])
    recovering = [i for i in inside if book.is_right(without(context, singleton(i)))]
    recovering.sort(key=lambda i: -book.evidence[without(context, singleton(i))])
    already = without(grand(findings.n), context)
    for i in recovering:
        cleared = union(already, singleton(i))
        if (yield from findings.try_clearing(cleared)):
            findings.flag(recovering)
            return findings.recovered(cleared)
    return None


def _right_core(
    findings: Findings, rng: np.random.Generator
) -> Generator[Batch, Utilities, Coalition | None]:
    book = findings.book
    contexts = _cores(findings.n, rng)
    while batch := list(islice(contexts, 1 if findings.n <= CORE_BATCH else CORE_BATCH)):
        yield from book.settle(batch)
        for context in batch:
            if book.is_right(context):
                return context
    return None


def _cores(n: int, rng: np.random.Generator) -> Iterator[Coalition]:
    """Singletons, pairs and random subsets in turn, nothing; about ``n ** 2`` in all."""
    for i in rng.permutation(n):
        yield singleton(int(i))
    pairs = [coalition_of(pair) for pair in combinations(range(n), 2)]
    for k in rng.permutation(len(pairs)):
        yield pairs[int(k)]
        if n > 2:  # noqa: PLR2004  # below, pairs are everything
            kept = rng.random(n) < rng.choice([0.3, 0.5, 0.7])
            yield coalition_of(int(i) for i in np.flatnonzero(kept))
    yield EMPTY


def _breakers(findings: Findings, core: Coalition) -> Generator[Batch, Utilities, Coalition]:
    others = [i for i in range(findings.n) if not contains(core, i)]
    yield from findings.book.settle([union(core, singleton(i)) for i in others])
    return coalition_of(i for i in others if not findings.book.is_right(union(core, singleton(i))))
