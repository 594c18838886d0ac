"""Why a replay did not find a request: which part differs from the nearest recorded one."""

import difflib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from assay.guards.protocols import Request

Asked: TypeAlias = tuple[Request, str | None]
"""A request, and the answer whose likelihood was asked for."""

_COMPARED = 20
_LETTERS = 4000
_SHOWN = 40


def describe_miss(request: Request, answer: str | None, recorded: Sequence[Asked]) -> str:
    """A few lines: how many entries there are and each part in which the nearest one differs.

    Args:
        request: What was asked.
        answer: The answer whose likelihood was asked for, if it was.
        recorded: What the cassette holds.
    """
    if not recorded:
        return "the request is not in the cassette, which holds no entries"
    differences = [
        f"  {name}: {_difference(asked, known)}"
        for name, asked, known in differences_of(request, answer, recorded)
    ]
    head = f"the request is not in the cassette ({len(recorded)} entries); the nearest differs in"
    return "\n".join([head, *differences])


class Difference(NamedTuple):
    """A part in which a request and the nearest recorded one differ; ``None`` where one lacks it."""

    field: str
    asked: str | None
    recorded: str | None


def differences_of(
    request: Request, answer: str | None, recorded: Sequence[Asked]
) -> list[Difference]:
    """Each part in which the nearest recorded request differs; empty if nothing is recorded."""
    if not recorded:
        return []
    given = _parts(request, answer)
    nearest = _nearest(given, [_parts(*asked) for asked in recorded])
    return [
        Difference(name, given.get(name), nearest.get(name))
        for name in dict.fromkeys([*given, *nearest])
        if given.get(name) != nearest.get(name)
    ]


def _parts(request: Request, answer: str | None) -> dict[str, str]:
    parts = {"model": request.model}
    for field, value in msgspec.structs.asdict(request.parameters).items():
        parts[f"parameters.{field}"] = repr(value)
    for number, message in enumerate(request.messages, start=1):
        extra = f" {message.tool_calls}" if message.tool_calls else ""
        parts[f"message {number} ({message.role})"] = message.content + extra
    if answer is not None:
        parts["answer"] = answer
    return parts


def _nearest(given: dict[str, str], recorded: Sequence[dict[str, str]]) -> dict[str, str]:
    def equal(other: dict[str, str]) -> int:
        same = sum(other.get(name) == value for name, value in given.items())
        return same - len(other.keys() - given.keys())

    # Comparing texts letter by letter is slow: only those with the most equal parts are.
    likely = sorted(recorded, key=equal, reverse=True)[:_COMPARED]
    return max(likely, key=lambda other: (equal(other), _likeness(given, other)))


def _likeness(given: dict[str, str], other: dict[str, str]) -> float:
    differing = [name for name in given if name in other and given[name] != other[name]]
    ratios = [
        difflib.SequenceMatcher(
            None, given[name][-_LETTERS:], other[name][-_LETTERS:], autojunk=True
        ).quick_ratio()
        for name in differing
    ]
    return sum(ratios) / len(ratios) if ratios else 1.0


def _difference(asked: str | None, recorded: str | None) -> str:
    if asked is None:
        return "recorded, but not asked"
    if recorded is None:
        return "asked, but not recorded"
    pairs = enumerate(zip(asked, recorded, strict=False))
    shorter = min(len(asked), len(recorded))
    same = next((place for place, (a, b) in pairs if a != b), shorter)
    return (
        f"from character {same} on, asked {_excerpt(asked, same)}, "
        f"recorded {_excerpt(recorded, same)}"
    )


def _excerpt(text: str, start: int) -> str:
    cut = text[start : start + _SHOWN]
    return repr(cut) + ("..." if len(text) > start + _SHOWN else "")
