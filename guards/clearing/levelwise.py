"""Level-wise deletion: every deletion of one candidate, then of two, and so on, until one recovers."""

from itertools import combinations

from assay.guards.clearing.answers import Answers, Notebook
from assay.guards.clearing.findings import Findings
from assay.guards.clearing.probes import Search, anytime
from assay.guards.coalitions import Coalition, coalition_of, grand, members, without


def levelwise(n: int, answers: Answers, *, deepest: int = 4) -> Search:
    """The globally smallest recovering deletion, and every candidate in one of that size.

    Args:
        n: Number of candidates.
        answers: How noisy the answers are.
        deepest: Largest deletion tried; a level of size d costs ``n choose d`` evaluations.
    """
    findings = Findings(n, Notebook(answers))
    return anytime(_levelwise(findings, deepest), findings.best)


def _levelwise(findings: Findings, deepest: int) -> Search:
    if (yield from findings.grand_is_right()):
        return findings.clean()
    n, book = findings.n, findings.book
    for level in range(1, min(deepest, n) + 1):
        deletions = [coalition_of(group) for group in combinations(range(n), level)]
        yield from book.settle([without(grand(n), deleted) for deleted in deletions])
        recovering = [d for d in deletions if book.is_right(without(grand(n), d))]
        for cleared in sorted(recovering, key=lambda d: _doubt(findings, d)):
            if (yield from findings.try_clearing(cleared)):
                for deleted in (cleared, *recovering):
                    findings.flag(members(deleted))
                return findings.recovered(cleared)
    return findings.unrecovered()


def _doubt(findings: Findings, deleted: Coalition) -> float:
    return -findings.book.evidence[without(grand(findings.n), deleted)]
