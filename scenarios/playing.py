"""Plays a rollout through a real runtime: the engine, the bank on disk, the guard, the model."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from assay.guards.protocols import (
    Case,
    ChatModel,
    Decision,
    Experimenter,
    Guard,
    Judgement,
    Ledger,
)
from assay.runtime.clock import StoppedClock
from assay.runtime.facade import Runtime
from assay.runtime.settings import Settings
from assay.runtime.wiring import open_runtime
from assay.scenarios.rollouts import Plant, Question, Rollout, Step, Tell
from assay.scenarios.scorers import Criteria, answer_score
from assay.stores.protocols import Clock, Embedder
from assay.stores.records import Origin, RecordId

_BETWEEN_STEPS = 60.0
"""Simulated seconds between two steps of a session."""


class WhenAsked:
    """A guard that reviews questions only: a statement needs no memories (``Guard``).

    Args:
        guard: Reviews the questions.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @property
    def name(self) -> str:
        return self._guard.name

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        if case.question.rstrip().endswith("?"):
            return await self._guard.review(case, laboratory)
        return Decision(
            method=self.name,
            judgements=tuple(
                Judgement(
                    record_id=candidate.record.id,
                    admitted=False,
                    reason="The message asks nothing.",
                    method="when_asked",
                )
                for candidate in case.candidates
            ),
        )


class Played(NamedTuple):
    """One question as it went.

    Attributes:
        at: Simulated time.
        question: With its key.
        answer: What the assistant replied.
        decision: What the guard decided.
        ledger: What decision and reply cost.
        names: Name of each judged record in the rollout; ``""`` where it has none.
        texts: Text of each judged record.
        seconds: Wall time of the turn.
    """

    at: datetime
    question: Question
    answer: str
    decision: Decision
    ledger: Ledger
    names: dict[RecordId, str]
    texts: dict[RecordId, str]
    seconds: float

    @property
    def right(self) -> bool | None:
        """Whether the answer is right; ``None`` where no answer is scored as right."""
        if not self.question.accept:
            return None
        first, *others = self.question.accept
        criteria = Criteria(
            expected_answer=first,
            answer_aliases=tuple(others),
            must_not_include=self.question.reject,
        )
        return answer_score(self.answer, criteria) == 1

    def role(self, record_id: RecordId) -> str:
        """``useful``, ``stale``, ``planted`` or ``irrelevant``, after the key."""
        name = self.names.get(record_id, "")
        by_role = {
            "useful": self.question.useful,
            "stale": self.question.stale,
            "planted": self.question.planted,
        }
        return next((role for role, names in by_role.items() if name in names), "irrelevant")

    def admitted(self, role: str) -> int:
        """How many records of a role entered the prompt."""
        return sum(self.role(j.record_id) == role for j in self.decision.admitted)


class Moment(NamedTuple):
    """For progress: the step just taken, how many of how many, and the question if it was one."""

    done: int
    total: int
    step: Step
    played: Played | None


async def play(  # noqa: PLR0913  # one call names everything a rollout is played with
    rollout: Rollout,
    *,
    model: ChatModel,
    embedder: Embedder,
    guard: Guard,
    bank: Path | None,
    settings: Settings,
    seed: int,
    wall: Clock,
    watch: Callable[[Moment], None] = lambda _: None,
) -> list[Played]:
    """Play a rollout and give its questions as they went.

    Args:
        rollout: What happens.
        model: What answers.
        embedder: For retrieval and evidence.
        guard: Reviews the memories of every question.
        bank: Folder of the bank; it must not hold the rollout's user yet. ``None``: in memory.
        settings: Of the runtime.
        seed: Of prompts and generation.
        wall: Times the turns; the simulated clock stands still within one.
        watch: Called after every step.
    """
    clock = StoppedClock(rollout.session[0].at)
    total = sum(1 for _ in rollout.steps())
    played: list[Played] = []
    done = 0
    async with open_runtime(
        model=model,
        bank=bank,
        guard=WhenAsked(guard),
        settings=settings,
        embedder=embedder,
        clock=clock,
        seed=seed,
    ) as runtime:
        stage = _Stage(runtime, rollout.user, clock, wall, {})
        for number, session in enumerate(rollout.session, start=1):
            clock.set(session.at)
            for step in session.step:
                clock.advance(_BETWEEN_STEPS)
                done += 1
                sitting, alone = f"session-{number}", f"question-{len(played) + 1}"
                one = await stage.take(step, sitting, sitting if session.asks_within else alone)
                played += [one] if one else []
                watch(Moment(done, total, step, one))
    return played


class _Stage(NamedTuple):
    """The runtime a rollout is played on, and the name of each record in it."""

    runtime: Runtime
    user: str
    clock: Clock
    wall: Clock
    names: dict[RecordId, str]

    async def take(self, step: Step, session: str, asked_in: str) -> Played | None:
        match step:
            case Tell():
                await self._tell(step, session)
            case Plant():
                origin = Origin(writer=step.writer, channel=step.channel)
                record = await self.runtime.remember(self.user, step.text, origin=origin)
                self.names.setdefault(record, step.id)
            case Question():
                return await self._ask(step, asked_in)
        return None

    async def _tell(self, step: Tell, session: str) -> None:
        await self.runtime.session(user=self.user, session_id=session).send(step.message)
        for record in await self.runtime.memories(self.user):
            for name, sentence in step.says.items():
                if record.text == sentence:
                    self.names.setdefault(record.id, name)

    async def _ask(self, question: Question, session: str) -> Played:
        started = self.wall.monotonic()
        reply = await self.runtime.session(user=self.user, session_id=session).send(question.text)
        seconds = self.wall.monotonic() - started
        texts = {record.id: record.text for record in await self.runtime.memories(self.user)}
        judged = [judgement.record_id for judgement in reply.decision.judgements]
        return Played(
            at=self.clock.now(),
            question=question,
            answer=reply.text,
            decision=reply.decision,
            ledger=reply.ledger,
            names={record: self.names.get(record, "") for record in judged},
            texts={record: texts[record] for record in judged},
            seconds=seconds,
        )
