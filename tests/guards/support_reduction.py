"""Rules, problems and properties the reduction tests share."""

from collections.abc import Callable, Iterator, Sequence

from hypothesis import strategies as st

from assay.guards.coalitions import Coalition, grand, members, subsets
from assay.guards.protocols import Ask
from assay.guards.reduction.search import Oracle, Problem

Rule = Callable[[int], bool]


def monotone(minimal: Sequence[int]) -> Rule:
    """Sufficient iff one of these sets is retained whole."""
    return lambda kept: any(kept & one == one for one in minimal)


def table(n: int, bits: int) -> Rule:
    """Any rule at all: bit ``S`` of ``bits`` says whether ``S`` passes; everything does."""
    return lambda kept: kept == grand(n) or bool(bits >> kept & 1)


def oracle(rule: Rule) -> Oracle:
    def answer(ask: Ask) -> bool:
        return rule(ask.coalition)

    return answer


def fewer_by_one(kept: Coalition) -> Iterator[Coalition]:
    return (Coalition(kept & ~(1 << i)) for i in members(kept))


def is_one_minimal(rule: Rule, kept: Coalition) -> bool:
    return rule(kept) and not any(map(rule, fewer_by_one(kept)))


def least_cost(problem: Problem, rule: Rule, within: Coalition) -> float:
    """By full enumeration."""
    return min(problem.cost(s) for s in subsets(within) if rule(s))


@st.composite
def problems(draw: st.DrawFn, most: int = 8) -> Problem:
    n = draw(st.integers(1, most))
    costs = draw(st.lists(st.integers(1, 12), min_size=n, max_size=n))
    scores = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    return Problem(costs, scores)


@st.composite
def monotone_cases(draw: st.DrawFn, most: int = 8) -> tuple[Problem, Rule]:
    problem = draw(problems(most))
    sets = draw(st.lists(st.integers(0, problem.everything), min_size=1, max_size=4))
    return problem, monotone(sets)


@st.composite
def arbitrary_cases(draw: st.DrawFn, most: int = 5) -> tuple[Problem, Rule]:
    problem = draw(problems(most))
    return problem, table(problem.n, draw(st.integers(0, 2 ** (2**problem.n) - 1)))
