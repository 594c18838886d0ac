"""CORE-GROW: group testing from a right subset, for many candidates.

Grow a right subset by blocks, halving a block that breaks it: each harmful candidate costs a logarithm
of the number of candidates. Then shrink to a small right core, against which every breaker shows
whether it harms alone or only beside a partner.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import combinations

import numpy as np

from assay.guards.clearing.answers import Answers, Notebook
from assay.guards.clearing.findings import Findings
from assay.guards.clearing.probes import Batch, Clearing, Search, anytime
from assay.guards.coalitions import (
    EMPTY,
    Coalition,
    Utilities,
    coalition_of,
    grand,
    members,
    singleton,
    size,
    union,
    without,
)

ATTEMPTS = 3
DENSITIES = (0.5, 0.35, 0.65, 0.25, 0.8)
"""Shares of the candidates kept while looking for a first right subset, in turn."""

PAIRS_UP_TO = 16
"""Candidates up to which every pair is tried as a last resort."""


def core_grow(n: int, answers: Answers, rng: np.random.Generator) -> Search:
    """Search for the harmful candidates by growing and shrinking a right subset.

    About ``(h + a) log2 n`` evaluations for h harmful and a needed candidates once a right subset
    is found.

    Args:
        n: Number of candidates; any, 0 and more than 62 included.
        answers: How noisy the answers are.
        rng: Picks the first subsets and the order of growth.
    """
    findings = Findings(n, Notebook(answers))
    return anytime(from_findings(findings, rng), findings.best)


def from_findings(findings: Findings, rng: np.random.Generator) -> Search:
    """CORE-GROW on top of evidence that another search gathered."""
    if (yield from findings.grand_is_right()):
        return findings.clean()
    for _ in range(ATTEMPTS):
        found = yield from _attempt(findings, rng)
        if found is not None:
            return found
        if findings.book.answers.kind == "deterministic":
            break
        findings.book.enough += findings.book.answers.enough / 2
    return findings.unrecovered()


def _attempt(
    findings: Findings, rng: np.random.Generator
) -> Generator[Batch, Utilities, Clearing | None]:
    findings.flagged.clear()
    start = yield from _right_subset(findings, rng)
    if start is None:
        return None
    rest = [int(i) for i in rng.permutation(findings.n) if not start >> int(i) & 1]
    grown, breakers = yield from _grow(findings, start, rest)
    findings.flag(breakers)
    cleared = without(grand(findings.n), grown)
    if not (yield from findings.try_clearing(cleared)):
        return None
    core = yield from _shrink(findings, start)
    for breaker in breakers:
        partners = yield from _partners(findings, core, breaker, without(grown, core))
        findings.flag(partners)
    return findings.recovered(cleared)


def _right_subset(
    findings: Findings, rng: np.random.Generator
) -> Generator[Batch, Utilities, Coalition | None]:
    known = [c for c in findings.book.evidence if findings.book.is_right(c)]
    for context in sorted(known, key=lambda c: -findings.book.evidence[c]):
        yield from findings.book.settle([context])
        if findings.book.is_right(context):
            return context
    for context in _starts(findings.n, rng):
        yield from findings.book.settle([context])
        if findings.book.is_right(context):
            return context
    return None


def _starts(n: int, rng: np.random.Generator) -> Iterator[Coalition]:
    """Random subsets of several densities, then single deletions, singletons, pairs, nothing."""
    for trial in range(4 * n + 20):
        kept = max(1, round(DENSITIES[trial % len(DENSITIES)] * n)) if n else 0
        yield coalition_of(int(i) for i in rng.permutation(n)[:kept])
    for i in range(n):
        yield without(grand(n), singleton(i))
        yield singleton(i)
    if n <= PAIRS_UP_TO:
        yield from map(coalition_of, combinations(range(n), 2))
    yield EMPTY


def _grow(
    findings: Findings, start: Coalition, rest: Sequence[int]
) -> Generator[Batch, Utilities, tuple[Coalition, list[int]]]:
    """Add what does not break it; returns the grown subset and the candidates that broke it."""
    grown, breakers = start, list[int]()
    queue = [list(part) for part in np.array_split(list(rest), 2) if len(part)]
    while queue:
        block = [int(i) for i in queue.pop(0)]
        proposal = union(grown, coalition_of(block))
        yield from findings.book.settle([proposal])
        if findings.book.is_right(proposal):
            grown = proposal
        elif len(block) == 1:
            breakers.append(block[0])
        else:
            middle = len(block) // 2
            queue[:0] = [block[:middle], block[middle:]]
    return grown, breakers


def _shrink(findings: Findings, right: Coalition) -> Generator[Batch, Utilities, Coalition]:
    """Take out what is not needed, by halves."""
    everything = members(right)
    middle = (len(everything) + 1) // 2
    queue = [block for block in (everything[:middle], everything[middle:]) if block]
    while queue:
        block = queue.pop(0)
        proposal = without(right, coalition_of(block))
        yield from findings.book.settle([proposal])
        if findings.book.is_right(proposal):
            right = proposal
        elif len(block) > 1:
            middle = len(block) // 2
            queue += [block[:middle], block[middle:]]
    return right


def _partners(
    findings: Findings, core: Coalition, breaker: int, rest: Coalition
) -> Generator[Batch, Utilities, list[int]]:
    """Candidates that a breaker needs beside it; none if it breaks the bare core."""
    book = findings.book
    base, partners = union(core, singleton(breaker)), list[int]()
    yield from book.settle([base])
    while book.is_right(base) and size(rest):
        suspects = members(rest)
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            trial = union(base, coalition_of(half))
            yield from book.settle([trial])
            if book.is_right(trial):
                base = trial
                suspects = suspects[len(half) :]
            else:
                suspects = half
        partners += suspects
        base = union(core, coalition_of([breaker, *partners]))
        rest = without(rest, coalition_of(partners)) if suspects else EMPTY
        yield from book.settle([base])
    return partners
