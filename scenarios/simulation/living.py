"""One user's days with one agent, played on a real runtime and scored. Runs in a process of its own."""

import os
import resource
import sys
from typing import NamedTuple

import anyio
import msgspec

from assay.errors import AssayError, ScenarioError
from assay.guards.methods import guard_named
from assay.runtime.clock import SystemClock
from assay.runtime.models.opening import open_model
from assay.runtime.settings import Settings
from assay.scenarios.normalise import holds, words
from assay.scenarios.playing import Played, play
from assay.scenarios.simulation.days import Days, Note, unfold
from assay.scenarios.simulation.records import Asked, Judged, Lived, SimulationConfig, Told, Voice
from assay.scenarios.simulation.schema import Channel
from assay.scenarios.simulation.voice import spoken, voiced
from assay.stores.embeddings import open_embedder

SCRIPT = "script"


class Order(NamedTuple):
    """What to do: a user, an agent, and how the user says things (empty: as the script does)."""

    config: SimulationConfig
    user: int
    agent: int
    lines: dict[str, str]


class Usage(NamedTuple):
    """The process that did something, and the most memory it has held so far, in bytes."""

    process: int
    peak: int


def peak_memory() -> Usage:
    """Of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Usage(os.getpid(), peak if sys.platform == "darwin" else peak * 1024)


def live(order: Order) -> tuple[Lived, Usage]:
    """Play and score; blocking, with an event loop of its own.

    Raises:
        ScenarioError: If a turn fails; it says whose.
    """
    try:
        return anyio.run(_live, order), peak_memory()
    except AssayError as error:
        who = order.config.simulation.agent[order.agent].name
        # Foreign arguments of an error do not survive the way between processes; its text does.
        raise ScenarioError(f"user {order.user + 1}, agent {who!r}: {error}") from None


def give_voice(order: Order) -> tuple[Voice, Usage]:
    """Have the user model say what the user says; blocking likewise.

    Raises:
        ScenarioError: If the model does not answer.
    """
    try:
        return anyio.run(_give_voice, order), peak_memory()
    except AssayError as error:
        raise ScenarioError(f"user {order.user + 1}, user model: {error}") from None


async def _give_voice(order: Order) -> Voice:
    config = order.config
    name = config.simulation.user_model
    async with open_model(name, settings=config.settings, base_url=config.base_url) as model:
        lines = await voiced(_days(order), model, seed=config.seed)
    return Voice(user=order.user, lines=lines)


async def _live(order: Order) -> Lived:
    config = order.config
    agent = config.simulation.agent[order.agent]
    days = spoken(_days(order), order.lines)
    embedder = open_embedder(config.simulation.embedder)
    settings = _with_k(config.settings, agent.k)
    model_name, base_url = config.simulation.model, config.base_url
    async with open_model(model_name, settings=settings, base_url=base_url) as model:
        played = await play(
            days.rollout,
            model=model,
            embedder=embedder,
            guard=guard_named(
                agent.guard,
                on_undecided=settings.guard.on_undecided,
                seed=config.seed,
                embedder=embedder,
                reduce=settings.guard.reduce,
            ),
            bank=None,
            settings=settings,
            seed=config.seed,
            wall=SystemClock(),
        )
    pairs = list(zip(played, days.notes, strict=True))
    return Lived(
        user=order.user,
        agent=order.agent,
        asked=tuple(_scored(one, note, days) for one, note in pairs),
        told=tuple(_told(one) for one, _ in pairs) if order.user == 0 else (),
    )


def _days(order: Order) -> Days:
    config = order.config
    sessions = config.sessions_of(order.user)
    return unfold(config.simulation, user=order.user, seed=config.seed, sessions=sessions)


def _with_k(settings: Settings, k: int) -> Settings:
    return msgspec.structs.replace(settings, guard=msgspec.structs.replace(settings.guard, k=k))


def _scored(one: Played, note: Note, days: Days) -> Asked:
    said = words(one.answer)
    names = [one.names[judgement.record_id] for judgement in one.decision.admitted]
    adopted: dict[Channel, None] = dict.fromkeys(
        days.channels[name] for name in names if name in one.question.planted
    )
    return Asked(
        month=note.month,
        fact=note.fact,
        goal=note.goal,
        right=one.right is True,
        channels=note.channels,
        adopted=tuple(adopted),
        misled=any(holds(said, words(value)) for value in note.planted),
        changed=bool(one.question.stale),
        stale=one.admitted("stale") > 0,
        useful=one.admitted("useful") > 0,
        evaluations=one.ledger.evaluations,
        tokens=one.ledger.tokens,
    )


def _told(one: Played) -> Told:
    judged = tuple(
        Judged(one.texts[j.record_id], one.role(j.record_id), j.admitted, j.reason)
        for j in one.decision.judgements
    )
    return Told(f"{one.at:%d %b %Y}", one.question.text, one.answer, judged)
