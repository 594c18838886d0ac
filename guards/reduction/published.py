"""JointCore group deletion and its comparators, literally as published.

Source: "Beyond Marginal Influence: Interaction-Aware Memory Selection for LLM Agents". Nothing is
remembered between questions here; repeats are asked again, because the published counts do.
"""

from collections import deque
from collections.abc import Sequence

from assay.guards.coalitions import Coalition, coalition_of, without
from assay.guards.reduction.search import Core, Search, ask


def jointcore(order: Sequence[int]) -> Search:
    """Delete groups of records, halving a group whose deletion changes the decision.

    The set it holds is sufficient at every moment, for any deterministic decision. At most
    ``2 n - 1`` evaluations; 1-minimal if the decision is monotone, not in general.

    Args:
        order: Every record once, those to delete first in front; see ``Problem.cost_order``.
    """
    kept = coalition_of(order)
    waiting = deque([list(order)])
    while waiting:
        group = [i for i in waiting.popleft() if kept >> i & 1]
        if not group:
            continue
        retained = without(kept, coalition_of(group))
        if (yield ask(retained)):
            kept = retained
        elif len(group) > 1:
            half = len(group) // 2
            waiting.extend((group[:half], group[half:]))
    return Core(kept, "1-minimal if monotone")


def leave_one_out(n: int) -> Search:
    """Keep what, taken out alone, changes the decision. Blind to redundancy by construction."""
    everything = (1 << n) - 1
    kept = 0
    for i in range(n):
        if not (yield ask(everything & ~(1 << i), 0.9)):
            kept |= 1 << i
    return Core(Coalition(kept), "none")


def conditional_singleton(order: Sequence[int]) -> Search:
    """Try to delete one record at a time; accepted deletions stick."""
    kept = coalition_of(order)
    for i in order:
        retained = Coalition(kept & ~(1 << i))
        if (yield ask(retained, 0.9)):
            kept = retained
    return Core(kept, "1-minimal if monotone")
