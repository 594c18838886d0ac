"""Names and times in a scenario that stand for nothing, or do not go together."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from assay.runtime.naming import close_names
from assay.scenarios.cases.locating import Place
from assay.scenarios.cases.schema import Case, Turn

_LISTS = ("admitted", "admitted_any", "withheld", "kept_out", "flagged", "not_proposed")
"""Fields of ``Expected`` that name records."""


class Problem(NamedTuple):
    """What is wrong, and with which value."""

    path: Place
    sentence: str


def problem_of(case: Case) -> Problem | None:
    """The first thing wrong with a scenario that its types do not show; ``None`` if nothing is."""
    return next(_problems(case), None)


def _problems(case: Case) -> Iterator[Problem]:
    yield from _of_times(case)
    yield from _of_the_bank(case)
    known = [memory.id for memory in case.memory]
    for number, turn in enumerate(case.turn):
        place: Place = ("turn", number)
        yield from _of_a_turn(turn, place)
        if turn.do is not None:
            yield from _unknown((turn.record,), known, (*place, "record"))
        known += [*turn.expect.remembers, *([turn.name] if turn.name else [])]
        yield from _of_expectations(turn, known, (*place, "expect"))
    yield from _repeated(known, ("memory",))
    if case.rule and case.model != "scripted":
        yield Problem(("rule",), f"rules go with model 'scripted' only, got {case.model!r}")


def _of_times(case: Case) -> Iterator[Problem]:
    given: list[tuple[Place, datetime | None]] = [(("now",), case.now)]
    given += [
        (("memory", number, field), getattr(memory, field))
        for number, memory in enumerate(case.memory)
        for field in ("at", "claimed_at", "valid_from", "valid_to")
    ]
    given += [(("archive", number, "at"), past.at) for number, past in enumerate(case.archive)]
    given += [(("turn", number, "at"), turn.at) for number, turn in enumerate(case.turn)]
    for place, at in given:
        if at is not None and at.tzinfo is None:
            yield Problem(
                place, f"expected a time with an offset, like 2026-03-02T18:30:00Z, got {at}"
            )
            return
    times = [at for at, _ in case.times()]
    for number, (earlier, later) in enumerate(pairwise(times), start=1):
        if later < earlier:
            yield Problem(("turn", number, "at"), "expected turns in order of time")


def _of_the_bank(case: Case) -> Iterator[Problem]:
    left = [name for turn in case.turn for name in turn.expect.remembers]
    records = [*(memory.id for memory in case.memory), *left]
    said = [past.id for past in case.archive if past.id]
    for number, memory in enumerate(case.memory):
        if memory.supersedes:
            yield from _unknown((memory.supersedes,), records, ("memory", number, "supersedes"))
        if memory.turn:
            yield from _unknown((memory.turn,), said, ("memory", number, "turn"), "past message")
    yield from _repeated(said, ("archive",))


def _of_a_turn(turn: Turn, place: Place) -> Iterator[Problem]:
    if bool(turn.say) == (turn.do is not None):
        yield Problem(place, "expected a turn with either `say` or `do`")
    if turn.do is not None and not turn.record:
        yield Problem(place, f"expected `record` beside do = {turn.do!r}")
    if bool(turn.text) != (turn.do == "correct"):
        yield Problem(place, "expected `text` with do = 'correct', and only there")


def _of_expectations(turn: Turn, known: list[str], place: Place) -> Iterator[Problem]:
    expect = turn.expect
    for field in _LISTS:
        yield from _unknown(getattr(expect, field), known, (*place, field))
    both = set(expect.admitted) & set(expect.withheld)
    if both:
        yield Problem((*place, "withheld"), f"{min(both)!r} is expected admitted and withheld")


def _unknown(
    names: tuple[str, ...], known: list[str], place: Place, kind: str = "record"
) -> Iterator[Problem]:
    for name in names:
        if name not in known:
            yield Problem(place, f"no {kind} is called {name!r}{close_names(name, known)}")


def _repeated(names: list[str], place: Place) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(place, f"expected different names, got {name!r} again")
