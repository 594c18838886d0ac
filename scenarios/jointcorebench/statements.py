"""The records of a task as text, and the printed condition a model is to judge.

Names and values are the published ones. ``harmful_stale`` has a current authorization first, a
stale policy last and numbered supports between them, however many records support it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from assay.guards.coalitions import Coalition, contains
from assay.scenarios.jointcorebench.conditions import Task

Values: TypeAlias = Mapping[str, str]
"""What a prompt shows: value by name, without the records that are absent."""

PAIRS = (
    ("case_id", "MATCH"),
    ("current_status", "CONFIRMED"),
    ("policy_version", "CURRENT"),
    ("approval", "ALLOW"),
    ("completion", "VERIFIED"),
    ("constraint", "SATISFIED"),
    ("authority", "VALID"),
    ("receipt", "PRESENT"),
)
"""Names and values of conjunctions, in published order."""


class Field(NamedTuple):
    """One record as it is printed: ``name=value``."""

    name: str
    value: str


class Statement(NamedTuple):
    """A condition in words, and when it is true of what is printed, read literally.

    Attributes:
        text: A clause without a full stop.
        holds: Whether it is true of the printed values.
    """

    text: str
    holds: Callable[[Values], bool]


def fields_of(task: Task) -> list[Field]:
    """Every record of a task as text, by index, shape ``(n,)``."""
    fields = [Field(f"context_note_{i}", f"NOTE_{i}") for i in range(task.n)]
    if task.proxy is not None:
        fields[task.proxy] = Field("historical_priority_proxy", "URGENT")
    for i, field in zip(task.support, _support(task), strict=True):
        fields[i] = field
    return fields


def statement_of(task: Task) -> Statement:
    """The condition printed for a task; true when all records are shown as they are."""
    support = _support(task)
    match task.family:
        case "redundant_or" | "threshold":
            return _approvals(task.rule.need)
        case "synergy_xor":
            return _ONE_KEY
        case "multiple_minimal_sets":
            halves = (support[: len(support) // 2], support[len(support) // 2 :])
            return _either([_all_of(half) for half in halves])
        case _:
            return _all_of(support)


def values_shown(
    fields: Sequence[Field], retained: Coalition, omitted: Callable[[str], str | None]
) -> dict[str, str]:
    """Value by name: retained records as they are, the others as ``omitted`` has them.

    Args:
        fields: Every record, by index.
        retained: Records shown as they are.
        omitted: From a record's value to what stands in its place; ``None``: no line at all.
    """
    shown: dict[str, str] = {}
    for i, (name, value) in enumerate(fields):
        standing = value if contains(retained, i) else omitted(value)
        if standing is not None:
            shown[name] = standing
    return shown


def _support(task: Task) -> list[Field]:
    count = len(task.support)
    match task.family:
        case "single_variable":
            return [Field("authorization", "ALLOW")]
        case "redundant_or" | "threshold":
            return [Field(f"approval_{i + 1}", "ALLOW") for i in range(count)]
        case "synergy_xor":
            return [Field(f"key_flag_{i + 1}", "OFF" if i else "ON") for i in range(count)]
        case "multiple_minimal_sets":
            half = count // 2
            first = [Field(f"channel_a_{i + 1}", "VALID") for i in range(half)]
            return first + [Field(f"channel_b_{i + 1}", "VALID") for i in range(count - half)]
        case "harmful_stale":
            middle = [Field(f"support_{i + 1}", "VALID") for i in range(count - 2)]
            current, stale = Field("current_authorization", "ALLOW"), Field("stale_policy", "BLOCK")
            return [current, *middle, stale]
        case _:
            return [Field(*pair) for pair in PAIRS[:count]]


def _all_of(fields: Sequence[Field]) -> Statement:
    def holds(shown: Values) -> bool:
        return all(shown.get(name) == value for name, value in fields)

    return Statement(" and ".join(f"{name} is {value}" for name, value in fields), holds)


def _either(statements: Sequence[Statement]) -> Statement:
    def holds(shown: Values) -> bool:
        return any(statement.holds(shown) for statement in statements)

    return Statement(", or ".join(f"({statement.text})" for statement in statements), holds)


def _approvals(need: int) -> Statement:
    def holds(shown: Values) -> bool:
        allowed = (v == "ALLOW" for name, v in shown.items() if name.startswith("approval_"))
        return sum(allowed) >= need

    return Statement(
        f"at least {need} of the approvals {'is' if need == 1 else 'are'} ALLOW", holds
    )


def _one_key(shown: Values) -> bool:
    flags = [value for name, value in shown.items() if name.startswith("key_flag_")]
    return set(flags) <= {"ON", "OFF"} and flags.count("ON") == 1


_ONE_KEY = Statement("every key_flag is known and exactly one key_flag is ON", _one_key)
