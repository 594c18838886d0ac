"""Carries commands out. Each gives one event, and may be run twice for one command."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeAlias, assert_never

import anyio
import msgspec

from assay.errors import GuardFailed
from assay.guards.coalitions import EMPTY, Coalition, grand, members
from assay.guards.failing import fallback, review_with_policy
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import (
    Ask,
    Case,
    Completion,
    Decision,
    DeltaSink,
    Judgement,
    Ledger,
    Message,
    Parameters,
    Request,
)
from assay.guards.tasks import SUMMARISE
from assay.guards.trace import Intervention
from assay.runtime.commands import (
    AnyCommand,
    Complete,
    Found,
    Remember,
    Retrieve,
    Review,
    ToolResult,
)
from assay.runtime.conversation import Conversation
from assay.runtime.equipment import Equipment
from assay.runtime.erasing import erase_again
from assay.runtime.events import (
    AnyEvent,
    CandidatesRetrieved,
    GuardDecided,
    MemoriesWritten,
    ReplyProduced,
)
from assay.runtime.prompts import canonical_order
from assay.runtime.remember import leavings, states_something, turn_of
from assay.runtime.scenes import Scene, candidates_of, fitted
from assay.runtime.standing import Standing
from assay.runtime.summaries import summary_candidate
from assay.stores.records import ArchiveTurn, Candidate, Namespace, RecordId, SessionId

QUERY_CHARACTERS = 4000
"""Characters of a message that are searched for; embedders read fewer."""


Answerer: TypeAlias = Callable[[Request], Awaitable[Completion]]
"""Replies in the place of the runtime's model, given the system message and the user's words with
the notes that were admitted before them; the conversation so far is the answerer's own affair."""


class _Decided(NamedTuple):
    """A decision and what was asked for it."""

    decision: Decision
    interventions: tuple[Intervention, ...] = ()


class Handlers:
    """The handlers of one session.

    Attributes:
        sink: Takes the pieces of the reply of the turn that runs; they are not journalled.
        answerer: Replies in this turn; ``None``: the runtime's model.
        conversation: What the caller of this turn says came before it; ``None``: what the archive says.
    """

    def __init__(self, equipment: Equipment, namespace: Namespace, session: SessionId) -> None:
        self.sink: DeltaSink | None = None
        self.answerer: Answerer | None = None
        self.conversation: Conversation | None = None
        self._equipment = equipment
        self._namespace = namespace
        self._session = session
        self._standing = Standing(equipment.bank, namespace)

    @contextmanager
    def asked_with(
        self, answerer: Answerer | None, conversation: Conversation | None
    ) -> Generator[None]:
        """Carry out what this block's turn asks for with what its caller gave."""
        self.answerer, self.conversation = answerer, conversation
        try:
            yield
        finally:
            self.answerer = self.conversation = None

    async def __call__(self, command: AnyCommand) -> AnyEvent:
        """Carry a command out.

        Raises:
            AssayError: If it cannot be; the bus makes an event of it.
        """
        match command:
            case Retrieve():
                return await self.retrieve(command)
            case Review():
                return await self.review(command)
            case Complete():
                return await self._complete(command)
            case Remember():
                written = await self._remember(command)
                await self._without_erased(command)
                return written
            case _:
                assert_never(command)

    async def retrieve(self, command: Retrieve) -> CandidatesRetrieved:
        """Find candidates."""
        k, verdicts = self._equipment.settings.guard.k, await self._standing.verdicts()
        candidates = await self._equipment.bank.retriever.retrieve(
            self._namespace,
            command.text[:QUERY_CHARACTERS],
            limit=k + len(verdicts.quarantined),
            at=command.said_at,
        )
        allowed = self._consented(verdicts.allowed(candidates))[:k]
        ordered = canonical_order(allowed, seed=self._equipment.seed)
        return CandidatesRetrieved(
            turn_id=command.turn_id,
            at=self._equipment.clock.now(),
            found=tuple(Found(candidate.record.id, candidate.score) for candidate in ordered),
        )

    async def review(self, command: Review) -> GuardDecided:
        """Decide about them."""
        whole = await self._scene(command, recent_tokens=self._recent_tokens())
        scene = fitted(whole, self._equipment)
        decision, interventions = await self._decide(scene, command.last_decision)
        verdicts = await self._standing.verdicts()
        return GuardDecided(
            turn_id=command.turn_id,
            at=self._equipment.clock.now(),
            decision=_with_left_out(verdicts.applied(decision), whole.candidates),
            recent_tokens=scene.recent_tokens,
            interventions=interventions,
        )

    async def _decide(self, scene: Scene, last: Decision | None) -> _Decided:
        equipment = self._equipment
        case = Case(
            question=scene.question,
            candidates=scene.candidates,
            evidence=self._standing.evidence,
        )
        if not case.candidates:
            return _Decided(Decision(method=equipment.guard.name, judgements=()))
        laboratory = equipment.experiments(
            self._namespace,
            scene.renderer(equipment, equipment.experiment_parameters(scene.tools)),
            tuple(candidate.record.id for candidate in case.candidates),
            scene.sources,
        )
        decision = await self._in_time(case, laboratory, last)
        spent = msgspec.structs.replace(decision, spent=laboratory.ledger())
        return _Decided(spent, laboratory.interventions())

    async def _in_time(self, case: Case, laboratory: Laboratory, last: Decision | None) -> Decision:
        guard, settings = self._equipment.guard, self._equipment.settings.guard
        with anyio.move_on_after(settings.seconds):
            return await review_with_policy(
                guard, case, laboratory, settings.on_guard_failure, last
            )
        failure = f"not decided within {settings.seconds:g} s (guard.seconds)"
        if settings.on_guard_failure == "fail_turn":
            raise GuardFailed(f"{guard.name}: {failure}")
        return fallback(
            guard.name,
            case,
            settings.on_guard_failure,
            last,
            failure=failure,
            spent=laboratory.ledger(),
        )

    async def _complete(self, command: Complete) -> ReplyProduced:
        if command.decision.ask:
            return self._ask_back(command)
        scene = await self._scene(command, recent_tokens=command.recent_tokens)
        shown, flagged = scene.shown(command.decision), scene.flagged(command.decision)
        if command.decision.shown_as == "summary" and shown:
            scene = await self._summed_up(scene, shown)
            shown, flagged = grand(1), EMPTY
        if self.answerer is not None:
            scene = replace(scene, recent=())
        render = scene.renderer(
            self._equipment, self._reply_parameters(command.tools), flagged=flagged
        )
        if self.answerer is not None:
            return self._answered_elsewhere(command, await self.answerer(render(Ask(shown))))
        laboratory = self._equipment.reply_only(self._namespace, render, scene.sources)
        completion = await laboratory.answer(
            _with_results(render(Ask(shown)), command.results),
            record_ids=tuple(judgement.record_id for judgement in command.decision.admitted),
            sink=self.sink,
        )
        reply = self._reply(command, text=completion.text.replace("\0", ""))
        return msgspec.structs.replace(
            reply,
            truncated=completion.finish_reason == "length",
            tool_calls=completion.tool_calls,
            usage=completion.usage,
            ledger=command.spent + laboratory.ledger(),
        )

    def _answered_elsewhere(self, command: Complete, completion: Completion) -> ReplyProduced:
        spent = Ledger(live=1, tokens=completion.usage.total)
        return msgspec.structs.replace(
            self._reply(command, text=completion.text.replace("\0", "")),
            truncated=completion.finish_reason == "length",
            usage=completion.usage,
            ledger=command.spent + spent,
        )

    async def _summed_up(self, scene: Scene, shown: Coalition) -> Scene:
        """The scene with a summary of the shown candidates in their place; the guard has asked for it."""
        equipment = self._equipment
        laboratory = equipment.experiments(
            self._namespace,
            scene.renderer(equipment, equipment.experiment_parameters(scene.tools)),
            tuple(candidate.record.id for candidate in scene.candidates),
            scene.sources,
        )
        outcome = await laboratory.outcome(Ask(shown, rendering=SUMMARISE))
        summed_up = [scene.candidates[i] for i in members(shown)]
        candidate = summary_candidate(outcome, summed_up, now=scene.now)
        return replace(scene, candidates=(candidate,))

    def _ask_back(self, command: Complete) -> ReplyProduced:
        """The policy is to ask: the question is the reply, and no model is asked."""
        if self.sink is not None:
            self.sink(command.decision.ask)
        return self._reply(command, text=command.decision.ask)

    def _reply(self, command: Complete, *, text: str) -> ReplyProduced:
        return ReplyProduced(
            turn_id=command.turn_id,
            exchange=command.exchange,
            at=self._equipment.clock.now(),
            text=text,
            ledger=command.spent,
        )

    async def _remember(self, command: Remember) -> MemoriesWritten:
        bank = self._equipment.bank
        if self.conversation is not None and self.conversation.is_repeated:
            return self._written(command, turns=0, records=())
        found = command.found if states_something(command) else ()
        recalled = await candidates_of(bank.store, self._namespace, found)
        left = leavings(
            command,
            namespace=self._namespace,
            session=self._session,
            recalled=[candidate.record.text for candidate in recalled],
        )
        await bank.archive.append(left.turns)
        await bank.store.write(left.records)
        ids = tuple(record.id for record in left.records)
        return self._written(command, turns=len(left.turns), records=ids)

    async def _without_erased(self, command: Remember) -> None:
        """What the reply says of records that were erased after it had seen them goes, too.

        Looked for last: an erasure that comes later finds all that the turn has written.
        """
        shown = {one.record_id for one in command.found}
        there = await candidates_of(self._equipment.bank.store, self._namespace, command.found)
        if gone := shown.difference(candidate.record.id for candidate in there):
            await erase_again(self._equipment.bank, self._namespace, gone)

    def _written(
        self, command: Remember, *, turns: int, records: tuple[RecordId, ...]
    ) -> MemoriesWritten:
        return MemoriesWritten(
            turn_id=command.turn_id,
            exchange=command.exchange,
            at=self._equipment.clock.now(),
            archived=turns,
            record_ids=records,
        )

    def _consented(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Those that may be shown to this model, by the guard as well as by the reply."""
        remote = self._equipment.is_remote or self.answerer is not None
        return tuple(
            candidate
            for candidate in candidates
            if candidate.record.consent.experiments
            and not (remote and candidate.record.consent.no_external_model)
        )

    def _recent_tokens(self) -> int:
        if self.conversation is None:
            return self._equipment.settings.prompt.recent_tokens
        return self.conversation.history_tokens

    def _reply_parameters(self, tools: str) -> Parameters:
        default = self._equipment.reply_parameters(tools)
        return default if self.conversation is None else self.conversation.reply_parameters(default)

    async def _recent(self, command: Review | Complete) -> list[ArchiveTurn]:
        # Asked for in any case: it brings up to date which past turns may witness.
        recent = await self._standing.recent(self._session, command.shown)
        if self.conversation is not None:
            return self.conversation.turns(self._namespace, self._session, command.said_at)
        return [turn for turn in recent if turn_of(turn.id) != command.turn_id]

    async def _scene(self, command: Review | Complete, *, recent_tokens: int) -> Scene:
        bank = self._equipment.bank
        recent = await self._recent(command)
        verdicts = self._standing.said  # one set of verdicts for the turns and the candidates
        found = await candidates_of(bank.store, self._namespace, command.found)
        return Scene(
            turn_id=command.turn_id,
            question=command.text,
            candidates=self._consented(verdicts.allowed(found)),
            recent=tuple(recent),
            now=command.said_at,
            recent_tokens=recent_tokens,
            tools=command.tools,
            instructions=self.conversation.instructions if self.conversation else "",
        )


def _with_left_out(decision: Decision, candidates: tuple[Candidate, ...]) -> Decision:
    """The decision with a judgement for each candidate the context had no room for."""
    judged = {judgement.record_id: judgement for judgement in decision.judgements}
    return msgspec.structs.replace(
        decision,
        judgements=tuple(
            judged.get(candidate.record.id) or _left_out(candidate) for candidate in candidates
        ),
    )


def _left_out(candidate: Candidate) -> Judgement:
    return Judgement(
        record_id=candidate.record.id,
        admitted=False,
        reason="the model's context has no room for it",
        method="context",
    )


def _with_results(request: Request, results: tuple[tuple[ToolResult, ...], ...]) -> Request:
    """The request continued by the tool calls of this turn, each followed by its result."""
    added: list[Message] = []
    for exchange in results:
        calls = tuple(result.call for result in exchange)
        added.append(Message(role="assistant", content="", tool_calls=calls))
        added += [
            Message(role="tool", content=result.output, tool_call_id=result.call.id)
            for result in exchange
        ]
    return msgspec.structs.replace(request, messages=(*request.messages, *added))
