"""The nine families: when a retained set suffices, and what the cheapest sufficient set costs.

Source: "Beyond Marginal Influence: Interaction-Aware Memory Selection for LLM Agents", the exact
stage. Nine labels are five monotone functions of the support records.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from assay.errors import ScenarioError
from assay.guards.coalitions import Coalition, coalition_of, members

Family: TypeAlias = Literal[
    "single_variable",
    "redundant_or",
    "synergy_and",
    "synergy_xor",
    "threshold",
    "multiple_minimal_sets",
    "proxy_confounded",
    "delayed_fsm",
    "harmful_stale",
]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""The families in published order."""

EQUAL_COSTS = frozenset[Family]({"redundant_or", "multiple_minimal_sets"})
"""Families whose support records all cost the same."""


class Rule(NamedTuple):
    """At least ``need`` of the groups lie wholly inside the retained set.

    Attributes:
        groups: Coalitions; each is a conjunction.
        need: How many of them have to be retained, from 1 to the number of groups.
    """

    groups: tuple[Coalition, ...]
    need: int

    def __call__(self, retained: Coalition) -> bool:
        """Whether the retained set is logically sufficient."""
        return sum(retained & group == group for group in self.groups) >= self.need

    def cheapest(self, costs: Sequence[float]) -> Coalition:
        """A cheapest sufficient set, in closed form: the groups are disjoint."""

        def price(group: Coalition) -> float:
            return sum(costs[i] for i in members(group))

        return coalition_of(
            i for group in sorted(self.groups, key=price)[: self.need] for i in members(group)
        )


def rule_for(family: Family, support: Sequence[int]) -> Rule:
    """The rule of a family over its support records, in their published order.

    Raises:
        ScenarioError: If there are no support records, or the family is unknown.
    """
    if not support:
        raise ScenarioError(f"a rule needs at least one support record, family {family!r} got none")
    each = tuple(coalition_of([i]) for i in support)
    match family:
        case "single_variable":
            return Rule(each[:1], 1)
        case "redundant_or":
            return Rule(each, 1)
        case "threshold":
            return Rule(each, max(1, (len(each) + 1) // 2))
        case "multiple_minimal_sets":
            return Rule(_halves(support), 1)
        case "synergy_and" | "synergy_xor" | "proxy_confounded" | "delayed_fsm" | "harmful_stale":
            return Rule((coalition_of(support),), 1)
        case _:
            raise ScenarioError(f"unknown family {family!r} (known: {', '.join(FAMILIES)})")


def _halves(support: Sequence[int]) -> tuple[Coalition, ...]:
    middle = len(support) // 2
    halves = (support[:middle], support[middle:])
    return tuple(coalition_of(half) for half in halves if half)
