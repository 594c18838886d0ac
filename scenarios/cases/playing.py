"""Plays a scenario through the real runtime and keeps what came of each turn."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from msgspec import json

from assay.errors import StoreError, TurnError, TurnFailed
from assay.guards.methods import guard_named
from assay.guards.protocols import ChatModel, Ledger
from assay.runtime.clock import StoppedClock
from assay.runtime.commands import ToolResult
from assay.runtime.facade import Runtime
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.reply import Reply
from assay.runtime.wiring import open_runtime
from assay.scenarios.cases.banking import Names, bank_until
from assay.scenarios.cases.files import CaseFile
from assay.scenarios.cases.limiting import Allowance, WithinAllowance
from assay.scenarios.cases.recording import Asked, recorded_model
from assay.scenarios.cases.schema import Case, Turn
from assay.stores.embeddings import open_embedder
from assay.stores.records import RecordId

_MOST_EXCHANGES = 8
"""How often the tool calls of one turn are answered; a model that goes on calling is stuck."""


class Failure(NamedTuple):
    """Why a turn ended without a reply: ``kind`` is the name of the error's class."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One turn as it went.

    Attributes:
        number: From 1.
        turn: What was scripted, with what is expected.
        at: Simulated time.
        reply: The last reply; ``None`` where there is none.
        failure: Why there is none.
        spent: What the turn has cost.
        names: Each judged record's name in the scenario, or its text where it has none.
        texts: Text of each record that has a name so far.
        left: Texts of the records the turn left behind.
        refused: The first question that did not fit the allowance; empty if all did.
    """

    number: int
    turn: Turn
    at: datetime
    reply: Reply | None = None
    failure: Failure | None = None
    spent: Ledger
    names: dict[RecordId, str] = field(default_factory=dict[RecordId, str])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    left: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A whole scenario as it went.

    Attributes:
        file: The scenario.
        taken: Its turns; the last one is the one that failed where one did.
        budget: The allowance of evaluations; ``None``: none.
    """

    file: CaseFile
    taken: tuple[Taken, ...]
    budget: int | None = None

    @property
    def refused(self) -> str:
        """The first question that did not fit the allowance; empty if all did."""
        return next((taken.refused for taken in self.taken if taken.refused), "")

    @property
    def spent(self) -> Ledger:
        """What all turns have cost together."""
        return sum((taken.spent for taken in self.taken), Ledger())


async def play(
    file: CaseFile,
    *,
    record: bool = False,
    budget: int | None = None,
    model: ChatModel | None = None,
) -> Played:
    """Play a scenario.

    Args:
        file: The scenario.
        record: Ask the real model and record its answers, instead of replaying the cassette.
        budget: Evaluations all its turns may cost together; the replies are not counted.
        model: Answers instead of the one the scenario names.

    Raises:
        ScenarioError: If its cassette is missing or unusable.
        ConfigError: If a name in it is not known.
    """
    case, allowance = file.case, Allowance(budget)
    embedder, clock = open_embedder(case.embedder), StoppedClock(case.now)
    guard = guard_named(
        case.guard or case.settings.guard.method,
        on_undecided=case.settings.guard.on_undecided,
        seed=case.seed,
        embedder=embedder,
        reduce=case.settings.guard.reduce,
    )
    async with (
        _model(file, model, record=record) as answering,
        open_runtime(
            model=answering,
            guard=WithinAllowance(guard, allowance),
            settings=case.settings,
            embedder=embedder,
            clock=clock,
            seed=case.seed,
        ) as runtime,
    ):
        taken = await _Stage(runtime, case, clock, allowance).play()
    return Played(file=file, taken=tuple(taken), budget=budget)


def _model(
    file: CaseFile, given: ChatModel | None, *, record: bool
) -> AbstractAsyncContextManager[ChatModel]:
    case = file.case
    if given is not None:
        return nullcontext(given)
    if case.rule:
        return nullcontext(ScriptedModel(case.rule))
    asked = Asked(
        model=case.model,
        settings=case.settings,
        base_url=case.base_url or None,
        folder=file.path.parent,
        cassette=file.cassette,
        how=f"pytest --assay {file.path} --assay-record",
    )
    return recorded_model(asked, record=record)


class _Stage:
    """The runtime a scenario is played on, and the name of each record in it."""

    def __init__(
        self, runtime: Runtime, case: Case, clock: StoppedClock, allowance: Allowance
    ) -> None:
        self._allowance = allowance
        self._runtime = runtime
        self._case = case
        self._clock = clock
        self._names = Names()

    async def play(self) -> list[Taken]:
        """Every turn in order, up to the first that fails."""
        taken: list[Taken] = []
        for number, (at, turn) in enumerate(self._case.times(), start=1):
            await bank_until(self._runtime, self._case, self._names, at)
            self._clock.set(at)
            taken.append(await self._take(number, turn, at))
            if taken[-1].failure is not None:
                break
        return taken

    async def _take(self, number: int, turn: Turn, at: datetime) -> Taken:
        user = turn.user or self._case.user
        before = {record.id for record in await self._runtime.memories(user)}
        reply: Reply | None = None
        failure: Failure | None = None
        try:
            if turn.do is not None:
                await self._do(turn, user)
            else:
                reply = await self._say(turn, user)
        except TurnFailed as error:
            failure = Failure(error.kind, str(error))
        except (TurnError, StoreError, ValueError) as error:
            failure = Failure(type(error).__name__, str(error))
        left = [r for r in await self._runtime.memories(user) if r.id not in before]
        expected = {text: name for name, text in turn.expect.remembers.items()}
        for record in left:
            if record.text in expected:
                self._names.add(expected[record.text], record.id, record.text)
        judged = reply.decision.judgements if reply else ()
        return Taken(
            number=number,
            turn=turn,
            at=at,
            reply=reply,
            failure=failure,
            spent=reply.ledger if reply else Ledger(),
            names={j.record_id: await self._called(user, j.record_id) for j in judged},
            texts=dict(self._names.texts),
            left=tuple(record.text for record in left),
            refused=self._allowance.noticed(),
        )

    async def _say(self, turn: Turn, user: str) -> Reply:
        session = self._runtime.session(user=user, session_id=turn.session)
        tools = json.encode(turn.tools).decode() if turn.tools else ""
        reply = await session.send(turn.say, tools=tools)
        for _ in range(_MOST_EXCHANGES):
            if not reply.tool_calls or not turn.tool_outputs:
                break
            results = [
                ToolResult(call=call, output=turn.tool_outputs.get(call.name, ""))
                for call in reply.tool_calls
            ]
            reply = await session.answer_tools(results)
        return reply

    async def _do(self, turn: Turn, user: str) -> None:
        record = self._names.ids[turn.record]
        match turn.do:
            case "correct":
                new = await self._runtime.correct(user, record, turn.text)
                if turn.name:
                    self._names.add(turn.name, new.id, new.text)
            case "forget":
                await self._runtime.forget(user, record)
            case "quarantine":
                await self._runtime.quarantine(user, record)
            case "vouch":
                await self._runtime.vouch(user, record)
            case _:
                await self._runtime.release(user, record)

    async def _called(self, user: str, record: RecordId) -> str:
        """The record's name; the text of one that has none, or its id where it is gone."""
        if record in self._names.names:
            return self._names.names[record]
        known = {r.id: r.text for r in await self._runtime.memories(user)}
        return repr(known[record]) if record in known else record
