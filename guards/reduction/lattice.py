"""Every monotone rule over a few records, and the best next question for what is known so far.

Over ``b`` records there are 3, 6, 20 or 168 monotone rules (``b`` from 1 to 4). What a number of
answers leaves open is a pair (known sufficient, known insufficient) of subsets; over 4 records
there are 7,581 such states. That is few enough to compute, backwards from the states where one may
stop, the question with the least expected number of further questions: no heuristic is needed.

Local subsets are bit masks below ``2 ** b``; a rule, and a set of subsets, is a bit mask over them.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

MOST_RECORDS = 4
"""With 5 records there are 7,581 rules and 7,828,354 states: too many for this table."""

STOP = -1

ROUNDING = 1e-6
"""Differences in expected questions below this are none."""

NEVER = 1e9
"""Price of stopping where one may not: more than any number of questions."""

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

Goal: TypeAlias = Literal["core", "certificate"]
"""``core``: stop at a 1-minimal set that is very likely the cheapest. ``certificate``: stop only
when every cheaper set is known to be insufficient."""

REGRET = 3.0
"""Questions one would pay rather than end with a core that is 1-minimal but not the cheapest."""

SIMPLICITY = 0.25
"""How much less likely one more record in a rule's shortest formula makes it, in nats."""


class Lattice(NamedTuple):
    """What can be known about a monotone rule over ``b`` records.

    Attributes:
        b: Number of records.
        rules: Shape ``(rules,)``: each rule as the mask of its sufficient subsets.
        shapes: Shape ``(rules,)``: rules equal up to naming the records share a number.
        lengths: Shape ``(rules,)``: records named in the shortest formula of and / or; 1 for the
            two constants.
        states: State number by (known sufficient, known insufficient).
        sufficient: Shape ``(states,)``, as masks over subsets.
        insufficient: Shape ``(states,)``, likewise.
        consistent: Shape ``(states, rules)``, 0 or 1: the rules still alive.
        on_same: Shape ``(states, 2 ** b)``: the state after "same" for a subset.
        on_differs: Shape ``(states, 2 ** b)``: the state after "differs".
    """

    b: int
    rules: Ints
    shapes: Ints
    lengths: Ints
    states: dict[tuple[int, int], int]
    sufficient: Ints
    insufficient: Ints
    consistent: Floats
    on_same: Ints
    on_differs: Ints

    @property
    def top_insufficient(self) -> Flags:
        """Shape ``(states,)``: even all ``b`` records together are known not to suffice."""
        return _holds(self.insufficient, 2**self.b - 1)

    def state(self, answers: Sequence[bool | None]) -> int:
        """The state for one known answer or ``None`` per subset; the answers must be monotone."""
        same = sum(1 << q for q, answer in enumerate(answers) if answer is True)
        differs = sum(1 << q for q, answer in enumerate(answers) if answer is False)
        return self.states[same, differs]


@lru_cache(maxsize=MOST_RECORDS)
def lattice(b: int) -> Lattice:
    """Enumerate rules and states over ``b`` records.

    Raises:
        ValueError: If ``b`` is not from 1 to 4.
    """
    if not 1 <= b <= MOST_RECORDS:
        raise ValueError(f"the lattice takes 1 to {MOST_RECORDS} records, got {b}")
    size = 2**b
    every = (1 << size) - 1
    above = [sum(1 << s for s in range(size) if s & q == q) for q in range(size)]
    below = [sum(1 << s for s in range(size) if s | q == q) for q in range(size)]
    rules = _monotone_rules(above)
    pairs = [(g, every & ~h) for g in rules for h in rules if not g & ~h]
    states = {pair: number for number, pair in enumerate(pairs)}
    on_same = [
        [number if (same | differs) >> q & 1 else states[same | above[q], differs]
         for q in range(size)]
        for number, (same, differs) in enumerate(pairs)
    ]  # fmt: skip
    on_differs = [
        [number if (same | differs) >> q & 1 else states[same, differs | below[q]]
         for q in range(size)]
        for number, (same, differs) in enumerate(pairs)
    ]  # fmt: skip
    rule_masks = np.array(rules, dtype=np.int64)
    sufficient, insufficient = np.array(pairs, dtype=np.int64).T
    alive = ((sufficient[:, None] & ~rule_masks) == 0) & ((insufficient[:, None] & rule_masks) == 0)
    return Lattice(
        b=b,
        rules=rule_masks,
        shapes=_shapes(rules, b),
        lengths=_lengths(rules, b),
        states=states,
        sufficient=sufficient,
        insufficient=insufficient,
        consistent=alive.astype(np.float64),
        on_same=np.array(on_same, dtype=np.int64),
        on_differs=np.array(on_differs, dtype=np.int64),
    )


class Plan(NamedTuple):
    """The best question in every state, for one order of the subsets by cost.

    Attributes:
        question: Shape ``(states,)``: the subset to ask about; ``STOP`` where to stop.
        likely: Shape ``(states,)``: probability that the answer is "same".
        kept: Shape ``(states,)``: the subset to end with; ``STOP`` where there is none yet.
        expected: Shape ``(states,)``: expected number of further questions, plus regret.
    """

    question: npt.NDArray[np.int8]
    likely: npt.NDArray[np.float32]
    kept: npt.NDArray[np.int8]
    expected: npt.NDArray[np.float32]


@lru_cache(maxsize=512)
def plan(ranks: tuple[int, ...], goal: Goal, missing: float) -> Plan:
    """Solve the game for one order of the subsets by cost.

    The prior knows no benchmark: a *shape* of rule (equal up to naming the records) is less
    likely the longer its shortest formula (``SIMPLICITY``), then each naming of it is equally
    likely; only "not even all of them suffice" has its own probability, because it speaks of
    the retrieval, not of the rule. Other values (none to 0.4, regret 2 to 5, missing .03 to .1)
    change the mean on JointCoreBench by less than 0.2 questions.

    Args:
        ranks: Shape ``(2 ** b,)``: rank of each subset's cost, equal costs sharing a rank.
        goal: When one may stop.
        missing: Probability that not even all ``b`` records suffice, in (0, 1).

    Returns:
        Expected questions are minimal over all ways to ask, under that prior.
    """
    net = lattice(len(ranks).bit_length() - 1)
    mass = masses(net.b, missing)
    stop, kept = _stopping(net, ranks, goal, prior_of(net, missing), mass)
    likely = mass[net.on_same] / mass[:, None]
    known = net.sufficient | net.insufficient
    undecided = np.array([len(ranks) - int(k).bit_count() for k in known])
    expected = stop.copy()
    question = np.full(len(known), STOP, dtype=np.int64)
    for level in range(1, len(ranks) + 1):
        here = np.flatnonzero(undecided == level)
        p = likely[here]
        worth = 1 + p * expected[net.on_same[here]] + (1 - p) * expected[net.on_differs[here]]
        worth[_matrix(known[here], len(ranks))] = np.inf
        best = worth.argmin(axis=1)
        least = worth[np.arange(len(here)), best]
        asks = least < expected[here]
        question[here[asks]] = best[asks]
        expected[here[asks]] = least[asks]
    chance = likely[np.arange(len(known)), np.maximum(question, 0)]
    return Plan(
        question=question.astype(np.int8),
        likely=chance.astype(np.float32),
        kept=kept.astype(np.int8),
        expected=expected.astype(np.float32),
    )


@lru_cache(maxsize=64)
def masses(b: int, missing: float) -> Floats:
    """Prior probability that a rule is consistent with each state, shape ``(states,)``."""
    net = lattice(b)
    mass: Floats = net.consistent @ prior_of(net, missing)
    return mass


@lru_cache(maxsize=4096)
def companions(
    ranks: tuple[int, ...], goal: Goal, missing: float, state: int, count: int
) -> tuple[int, ...]:
    """Up to ``count`` subsets to ask at once in a state, the plan's own question first.

    Each next one is the subset that, asked beside those before, leaves the fewest expected
    questions.
    """
    best = plan(ranks, goal, missing)
    net = lattice(len(ranks).bit_length() - 1)
    chosen = [int(best.question[state])]
    mass = masses(net.b, missing)
    outcomes = {state: 1.0}
    while True:
        outcomes = _after(net, mass, outcomes, chosen[-1])
        if len(chosen) == count:
            break
        left = {
            q: _left(best, _after(net, mass, outcomes, q))
            for q in range(len(ranks))
            if q not in chosen
        }
        gain = _left(best, outcomes)
        following = min(left, key=left.__getitem__, default=STOP)
        if left.get(following, gain) >= gain - ROUNDING:
            break
        chosen.append(following)
    return tuple(chosen)


def _after(net: Lattice, mass: Floats, outcomes: dict[int, float], asked: int) -> dict[int, float]:
    after: dict[int, float] = {}
    for at, chance in outcomes.items():
        same = float(mass[net.on_same[at, asked]] / mass[at])
        for to, p in ((net.on_same[at, asked], same), (net.on_differs[at, asked], 1 - same)):
            if p > 0:
                after[int(to)] = after.get(int(to), 0.0) + chance * min(p, 1.0)
    return after


def _left(best: Plan, outcomes: Mapping[int, float]) -> float:
    return sum(chance * float(best.expected[at]) for at, chance in outcomes.items())


def cost_ranks(costs: Sequence[float]) -> tuple[int, ...]:
    """Rank of every subset's cost among the distinct ones, shape ``(2 ** len(costs),)``."""
    totals = [0.0]
    for cost in costs:
        totals += [total + cost for total in totals]
    order = {total: rank for rank, total in enumerate(sorted(set(totals)))}
    return tuple(order[total] for total in totals)


def _stopping(
    net: Lattice, ranks: Sequence[int], goal: Goal, prior: Floats, mass: Floats
) -> tuple[Floats, Ints]:
    """What stopping costs in each state (``NEVER`` where one may not), and what is kept then."""
    cheaper = [sum(1 << s for s in range(len(ranks)) if ranks[s] < rank) for rank in ranks]
    beaten = (net.rules[:, None] & np.array(cheaper)) != 0
    risk = (net.consistent @ (prior[:, None] * beaten)) / mass[:, None]
    if goal == "certificate":
        unsure = (np.array(cheaper) & ~net.insufficient[:, None]) != 0
        price = np.where(unsure, NEVER, 0.0)
    else:
        price = REGRET * risk
    price = np.where(_one_minimal(net), price, NEVER)
    best = price.argmin(axis=1)
    stop = price[np.arange(len(best)), best]
    failed = net.top_insufficient
    stop[failed] = 0.0
    return stop, np.where((stop >= NEVER) | failed, STOP, best)


def prior_of(net: Lattice, missing: float) -> Floats:
    """Probability of each rule before any answer, shape ``(rules,)``; see ``plan``."""
    counts = np.bincount(net.shapes)
    prior: Floats = np.exp(-SIMPLICITY * net.lengths) / counts[net.shapes]
    never = net.rules == 0
    prior[~never] *= (1 - missing) / prior[~never].sum()
    prior[never] = missing
    return prior


def _one_minimal(net: Lattice) -> Flags:
    """Shape ``(states, 2 ** b)``: known sufficient, and known insufficient without any one record."""
    columns: list[Flags] = []
    for kept in range(2**net.b):
        fine = _holds(net.sufficient, kept)
        for i in range(net.b):
            if kept >> i & 1:
                fine = fine & _holds(net.insufficient, kept & ~(1 << i))
        columns.append(fine)
    return np.stack(columns, axis=1)


def _holds(masks: Ints, subset: int) -> Flags:
    held: Flags = (masks >> subset & 1) == 1
    return held


def _matrix(masks: Ints, size: int) -> Flags:
    held: Flags = (masks[:, None] >> np.arange(size) & 1) == 1
    return held


def _monotone_rules(above: Sequence[int]) -> list[int]:
    rules = {0}
    waiting = [0]
    while waiting:
        rule = waiting.pop()
        for cone in above:
            if rule | cone not in rules:
                rules.add(rule | cone)
                waiting.append(rule | cone)
    return sorted(rules)


def _shapes(rules: Sequence[int], b: int) -> Ints:
    names = [
        [sum(1 << order[i] for i in range(b) if q >> i & 1) for q in range(2**b)]
        for order in itertools.permutations(range(b))
    ]
    numbers: dict[int, int] = {}
    shapes: list[int] = []
    for rule in rules:
        renamed = (sum(1 << to for q, to in enumerate(name) if rule >> q & 1) for name in names)
        shapes.append(numbers.setdefault(min(renamed), len(numbers)))
    return np.array(shapes, dtype=np.int64)


def _lengths(rules: Sequence[int], b: int) -> Ints:
    subsets = range(2**b)
    found = {0: 1, (1 << 2**b) - 1: 1}
    found |= {sum(1 << q for q in subsets if q >> i & 1): 1 for i in range(b)}
    by_length = {1: list(found)}
    length = 1
    while len(found) < len(rules):
        length += 1
        fresh: list[int] = []
        for shorter in range(1, length // 2 + 1):
            for f, g in itertools.product(by_length[shorter], by_length[length - shorter]):
                fresh += [rule for rule in (f & g, f | g) if rule not in found]
                found |= dict.fromkeys(fresh, length)
        by_length[length] = sorted(set(fresh))
    return np.array([found[rule] for rule in rules], dtype=np.int64)
