"""P11: where experiments fail, the declared policy decides, and reply and journal say so."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import pytest

from assay.errors import TurnFailed
from assay.guards.protocols import OnGuardFailure
from assay.runtime.clock import StoppedClock
from assay.runtime.events import CommandFailed, GuardDecided
from assay.runtime.facade import Runtime
from assay.runtime.models.calling import Waits
from assay.runtime.models.openai import open_endpoint
from assay.runtime.reply import Reply
from assay.runtime.settings import GuardSettings, Settings
from assay.stores.records import Origin

from ..runtime.models.fault_server import (  # noqa: TID252 - the fault server of the models' tests
    FaultServer,
    Fitting,
    Talk,
    answer,
    http,
    serving,
)
from ..runtime.rooms import SESSION, USER, journal_of, runtime  # noqa: TID252
from .conftest import Promise
from .endpoint_faults import NOW, WHOLE, Fault
from .test_endpoint_faults import KEYS, SETTINGS

STATEMENT = "a bad endpoint degrades by the declared policy, visibly"
POLICIES: tuple[OnGuardFailure, ...] = (
    "withhold_all",
    "admit_flagged",
    "last_decision",
    "fail_turn",
)
FAILING = [fault for fault in WHOLE if fault.outcome is not None]
EXPERIMENT_TOKENS = 31
TOLD = "The cellar key hangs behind the clock."


class Turn(NamedTuple):
    """What became of one turn.

    Attributes:
        reply: Of the turn; ``None`` if it failed.
        kind: Of the failure.
        decided: As the journal has it.
        failed: Likewise.
        cached: Answers kept.
        prompt: What the reply was written from.
    """

    reply: Reply | None
    kind: str
    decided: list[GuardDecided]
    failed: list[CommandFailed]
    cached: int
    prompt: str


def only_experiments(fault: Fault) -> Fitting:
    """Experiments meet the fault, replies do not."""

    def reply(_path: str, body: dict[str, Any]) -> bytes | Talk:
        if body["max_tokens"] != EXPERIMENT_TOKENS or isinstance(fault.reply, Fitting):
            return http(answer("Noted."))
        return fault.reply

    return Fitting(reply)


async def turn_through(fault: Fault, policy: OnGuardFailure) -> Turn:
    settings = Settings(
        guard=GuardSettings(method="cmi", on_guard_failure=policy, answer_tokens=EXPERIMENT_TOKENS)
    )
    async with (
        serving(only_experiments(fault)) as server,
        open_endpoint(
            "m",
            settings=SETTINGS,
            base_url=server.url,
            env=KEYS,
            waits=Waits(0.001, 0.002),
            clock=StoppedClock(NOW),
        ) as model,
        runtime(model=model, guard="cmi", settings=settings) as rt,
    ):
        await rt.remember(USER, TOLD, origin=Origin(writer="user", channel="chat"))
        return await _ask(rt, server)


async def _ask(rt: Runtime, server: FaultServer) -> Turn:
    reply, kind = None, ""
    try:
        reply = await rt.session(user=USER, session_id=SESSION).send("Where is the cellar key?")
    except TurnFailed as error:
        kind = error.kind
    events = await journal_of(rt.bank)
    return Turn(
        reply=reply,
        kind=kind,
        decided=[event for event in events if isinstance(event, GuardDecided)],
        failed=[event for event in events if isinstance(event, CommandFailed)],
        cached=len([row async for row in rt.bank.cache.rows(USER)]),
        prompt=str(server.bodies[-1]["messages"]),
    )


def wrong_with(turn: Turn, policy: OnGuardFailure) -> str:
    """What a user would not have been told; nothing if all was."""
    if policy == "fail_turn":
        told = [event.kind for event in turn.failed] == ["GuardFailed"]
        return "" if told and turn.kind == "GuardFailed" and turn.cached == 0 else "not failed"
    if turn.reply is None or [e.decision for e in turn.decided] != [turn.reply.decision]:
        return f"reply and journal differ: {turn.kind}"
    decision = turn.reply.decision
    if decision.fallback != policy or not decision.failure:
        return f"the policy is not told: {decision.fallback!r}, {decision.failure!r}"
    if (TOLD in turn.prompt) != (policy == "admit_flagged"):
        return "the prompt does not follow the policy"
    return "" if turn.cached == 1 else f"{turn.cached} answers kept, expected the reply's only"


def pairs(promise: Promise) -> Sequence[tuple[Fault, OnGuardFailure]]:
    """Every fault with one policy in turn; in the long form with each."""
    if promise.long:
        return list(product(FAILING, POLICIES))
    return [(fault, POLICIES[i % len(POLICIES)]) for i, fault in enumerate(FAILING)]


@pytest.mark.promise("P11", STATEMENT)
async def test_the_declared_policy_acts_and_is_told(promise: Promise) -> None:
    tried = pairs(promise)

    wrong = [
        f"{fault.name}, {policy}: {what}"
        for fault, policy in tried
        if (what := wrong_with(await turn_through(fault, policy), policy))
    ]

    assert wrong == []
    promise.kept(f"{len(tried)} of {len(tried)} endpoint faults handled, by four policies")
