"""What a clearing tried, as a small picture for the terminal: the tested filtration and the pairs."""

from collections.abc import Mapping, Sequence

from assay.guards.protocols import Judgement
from assay.guards.trace import Interaction, Tested, Trace
from assay.stores.records import RecordId

_WIDTH = 20
"""Columns of a full bar."""

_SIGNS: Mapping[str, str] = {
    "substitution": "=",
    "joint interference": "x",
    "complementarity": "+",
}


def trace_lines(trace: Trace, judgements: Sequence[Judgement]) -> list[str]:
    """The picture, line by line; records stand under the number of their judgement, from 1.

    Args:
        trace: What was tried.
        judgements: Of the same decision, in its order.
    """
    numbers = {judgement.record_id: place for place, judgement in enumerate(judgements, start=1)}
    lines = [_step("nothing withheld", trace.before, trace, mark="")]
    lines += [_tested(tested, numbers, trace) for tested in trace.tested]
    lines += _effects(judgements)
    lines += [_pair(pair, numbers) for pair in trace.interactions]
    return ["  tested (numbers are the memories above, in order):", *lines]


def bar(value: float, *, most: float = 1.0) -> str:
    """A bar of up to 20 characters for a size from 0 to ``most``."""
    filled = round(_WIDTH * min(max(abs(value) / most, 0.0), 1.0)) if most > 0 else 0
    return "#" * filled + "." * (_WIDTH - filled)


def _step(what: str, utility: float | None, trace: Trace, *, mark: str) -> str:
    if utility is None:
        return f"    {what:<24} {'no measurement':<25} {mark}".rstrip()
    reached = mark or ("reaches" if utility >= trace.bar else "below")
    return f"    {what:<24} {bar(utility)} {utility:.2f} {reached} the bar {trace.bar:.2f}"


def _tested(tested: Tested, numbers: Mapping[RecordId, int], trace: Trace) -> str:
    what = f"without {_listed(tested.withheld, numbers)}"
    return _step(what, tested.utility, trace, mark="verified at" if tested.verified else "")


def _effects(judgements: Sequence[Judgement]) -> list[str]:
    sizes = [abs(j.effect) for j in judgements if j.effect is not None]
    most = max(sizes, default=0.0)
    return [
        f"    effect of {place:<14} {bar(j.effect, most=most)} {j.effect:+.2f}"
        for place, j in enumerate(judgements, start=1)
        if j.effect is not None
    ]


def _pair(pair: Interaction, numbers: Mapping[RecordId, int]) -> str:
    first, second = numbers.get(pair.first, 0), numbers.get(pair.second, 0)
    what = f"{first} {_SIGNS[pair.meaning]} {second}"
    return f"    {what:<24} {pair.meaning} ({pair.strength:+.2f})"


def _listed(records: Sequence[RecordId], numbers: Mapping[RecordId, int]) -> str:
    return ", ".join(str(numbers.get(record, 0)) for record in records) or "nothing"
