"""A turn and a record as the pages show them: plain data, made from what the journal and bank hold."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from assay.guards.protocols import Judgement, Ledger
from assay.guards.trace import Trace
from assay.runtime.events import CommandFailed
from assay.runtime.http.inspector.asked import Asked, Branch, asked_of, deletion_tree
from assay.runtime.reviews import Verdict, Verdicts
from assay.runtime.settings import BudgetSettings
from assay.runtime.turns import PastTurn
from assay.stores.records import MemoryRecord, Origin, RecordId

Kind: TypeAlias = Literal["good", "bad", "warn"]

ERASED = "erased input"
"""Stands where a text was that has been erased since."""

_WRITERS: Mapping[str, str] = {
    "user": "said by the user",
    "assistant": "written by the assistant",
    "tool": "given by a tool",
    "external": "from outside",
    "operator": "entered by the operator",
}


class CandidateShown(NamedTuple):
    """A candidate and what became of it.

    Attributes:
        place: Its number in the turn, from 1, in prompt order.
        judgement: What the guard said, or a person.
        record: ``None`` once it was erased.
        score: Of retrieval, in [0, 1].
        verdict: What people say about it now.
    """

    place: int
    judgement: Judgement
    record: MemoryRecord | None
    score: float
    verdict: Verdict

    @property
    def kind(self) -> Kind:
        """Class of its colour."""
        if self.judgement.flagged:
            return "warn"
        return "good" if self.judgement.admitted else "bad"

    @property
    def word(self) -> str:
        """What became of it, in a word."""
        if self.judgement.flagged:
            return "doubtful"
        return "admitted" if self.judgement.admitted else "withheld"

    @property
    def text(self) -> str:
        """What it says; ``erased input`` once it was erased."""
        return ERASED if self.record is None else self.record.text


class Step(NamedTuple):
    """A context whose value was measured: what was left out, and what that was worth."""

    words: str
    shown: frozenset[int]
    utility: float | None
    state: str
    kind: str


class Gauge(NamedTuple):
    """What was spent of a limit; without a limit there is no ``share``."""

    name: str
    spent: str
    limit: str
    share: float | None


class TurnShown(NamedTuple):
    """Everything the page of a turn shows.

    Attributes:
        turn: As the journal has it.
        candidates: In prompt order.
        asked: What the guard asked: with everything first, then in order.
        tree: What was left out, step by step; ``None`` where nothing was.
        steps: Contexts whose value a clearing measured.
        bar: Value at which its task counted as done; ``None`` if nothing was cleared.
        pairs: Interactions: places from 0, strength, meaning.
        gauges: What the turn spent of its budget.
    """

    turn: PastTurn
    candidates: tuple[CandidateShown, ...]
    asked: tuple[Asked, ...]
    tree: Branch | None
    steps: tuple[Step, ...]
    bar: float | None
    pairs: tuple[tuple[int, int, float, str], ...]
    gauges: tuple[Gauge, ...]

    @property
    def admitted(self) -> list[CandidateShown]:
        """Candidates that entered the prompt."""
        return [c for c in self.candidates if c.judgement.admitted]

    @property
    def withheld(self) -> list[CandidateShown]:
        """Candidates that did not."""
        return [c for c in self.candidates if not c.judgement.admitted]

    @property
    def kinds(self) -> list[str]:
        """Class of each candidate's dot, in prompt order."""
        return [c.kind for c in self.candidates]

    @property
    def kept(self) -> frozenset[int]:
        """Places of the admitted candidates, from 0."""
        return frozenset(c.place - 1 for c in self.admitted)

    @property
    def has_erased(self) -> bool:
        """Whether one of its candidates was erased since."""
        return any(c.record is None for c in self.candidates)

    @property
    def most(self) -> float:
        """The largest effect measured, for the scale of the bars."""
        return max((abs(c.judgement.effect or 0.0) for c in self.candidates), default=0.0)

    @property
    def spent(self) -> Ledger:
        """What it cost, reply included."""
        return self.turn.spent

    @property
    def failure(self) -> str:
        """Why no reply came; empty if one did."""
        return failure_of(self.turn)


def turn_shown(
    turn: PastTurn,
    records: Mapping[RecordId, MemoryRecord],
    verdicts: Verdicts,
    answers: Mapping[str, bytes],
    budget: BudgetSettings,
) -> TurnShown:
    """Put a turn together.

    Args:
        turn: As the journal has it.
        records: Those of its candidates that are still there.
        verdicts: What people say about them now.
        answers: What the cache still holds of its interventions.
        budget: Limits of a turn's experiments.
    """
    decision = turn.decided.decision if turn.decided else None
    judgements = decision.judgements if decision else ()
    places = {judgement.record_id: place for place, judgement in enumerate(judgements)}
    interventions = turn.decided.interventions if turn.decided else ()
    asked = asked_of(interventions, places, answers)
    trace = decision.trace if decision else None
    return TurnShown(
        turn=turn,
        candidates=_candidates(turn, judgements, records, verdicts),
        asked=tuple(sorted(asked, key=lambda each: each.words != "everything")),
        tree=deletion_tree(asked, len(places)),
        steps=_steps(trace, places) if trace else (),
        bar=trace.bar if trace else None,
        pairs=_pairs(trace, places) if trace else (),
        gauges=gauges(decision.spent, budget) if decision else (),
    )


def failure_of(turn: PastTurn) -> str:
    """Why no reply came, in words; empty if one did or may still come."""
    if turn.failure is None:
        return ""
    if isinstance(turn.failure, CommandFailed):
        return f"{turn.failure.kind}: {turn.failure.message}"
    return f"given up ({turn.failure.reason})"


def origin_words(origin: Origin) -> str:
    """Where a record came from, in words."""
    return f"{_WRITERS[origin.writer]}, through {origin.channel}"


def day(time: datetime) -> str:
    """A time as a day people read."""
    return f"{time.day} {time:%b %Y}"


def count(number: int, what: str) -> str:
    """A number of things: ``1 turn``, ``1,200 turns``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def gauges(spent: Ledger, budget: BudgetSettings) -> tuple[Gauge, ...]:
    """What experiments spent, beside the limits that are set."""
    return (
        _gauge("calls to the model", spent.live, budget.calls),
        _gauge("tokens", spent.tokens, budget.tokens),
        _gauge("seconds", spent.seconds, budget.seconds),
        _gauge("money", spent.money, budget.money),
    )


def _gauge(name: str, spent: float, limit: float | None) -> Gauge:
    if limit is None:
        return Gauge(name, _figure(spent), "no limit", None)
    share = spent / limit if limit > 0 else 1.0
    return Gauge(name, _figure(spent), f"of {_figure(limit)}", share)


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _candidates(
    turn: PastTurn,
    judgements: Sequence[Judgement],
    records: Mapping[RecordId, MemoryRecord],
    verdicts: Verdicts,
) -> tuple[CandidateShown, ...]:
    scores = {found.record_id: found.score for found in turn.found}
    return tuple(
        CandidateShown(
            place=place,
            judgement=judgement,
            record=records.get(judgement.record_id),
            score=scores.get(judgement.record_id, 0.0),
            verdict=verdicts.of(judgement.record_id),
        )
        for place, judgement in enumerate(judgements, start=1)
    )


def _steps(trace: Trace, places: Mapping[RecordId, int]) -> tuple[Step, ...]:
    everything = frozenset(places.values())
    steps = [_step("everything shown", everything, trace.before, trace.bar, verified=False)]
    for tested in trace.tested:
        left_out = {places[r] for r in tested.withheld if r in places}
        listed = ", ".join(str(place + 1) for place in sorted(left_out)) or "nothing"
        steps.append(
            _step(
                f"without {listed}",
                everything - left_out,
                tested.utility,
                trace.bar,
                verified=tested.verified,
            )
        )
    return tuple(steps)


def _step(
    words: str, shown: frozenset[int], utility: float | None, bar: float, *, verified: bool
) -> Step:
    if utility is None:
        return Step(words, shown, None, "not measured", "none")
    if verified:
        return Step(words, shown, utility, "verified", "good")
    reached = utility >= bar
    return Step(words, shown, utility, "reaches the bar" if reached else "below the bar", "plain")


def _pairs(trace: Trace, places: Mapping[RecordId, int]) -> tuple[tuple[int, int, float, str], ...]:
    return tuple(
        (places[pair.first], places[pair.second], pair.strength, pair.meaning)
        for pair in trace.interactions
        if pair.first in places and pair.second in places
    )


def listed(places: Iterable[int]) -> str:
    """Places as people number them: ``2``, ``2 and 5``, ``2, 3 and 5``."""
    numbers = [str(place + 1) for place in sorted(places)]
    return " and ".join(filter(None, (", ".join(numbers[:-1]), *numbers[-1:])))
