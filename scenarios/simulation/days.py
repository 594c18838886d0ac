"""From a simulation to the days of one user: a rollout, and beside it what only the report may know.

All is a function of the simulation, the seed and the user's number. The same days are given to every
agent, so agents are compared in pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, TypeAlias

import numpy as np

from assay.scenarios.rollouts import Plant, Question, Rollout, SessionScript, Step, Tell
from assay.scenarios.simulation.loading import PLACEHOLDER
from assay.scenarios.simulation.schema import Channel, Fact, Goal, Injection, Simulation
from assay.stores.records import Writer

DAYS_PER_MONTH = 30
_TELLING = 0.2
"""Share of the sessions, from the first on, over which a user tells what holds."""

_ORIGINS: dict[Channel, tuple[Writer, str]] = {
    "web": ("external", "web"),
    "tool": ("tool", "tool:search"),
    "other_user": ("external", "user:another"),
    "planted_turn": ("user", "chat"),
}


class Note(NamedTuple):
    """What the report may know of a question and no agent.

    Attributes:
        month: Of the question, from 0.
        fact: What it asks about.
        goal: Which attempt at which goal it belongs to; empty: none.
        planted: Wrong values claimed about the fact so far.
        channels: Through which channels.
    """

    month: int
    fact: str
    goal: str
    planted: tuple[str, ...]
    channels: tuple[Channel, ...]


class Days(NamedTuple):
    """Days of one user.

    Attributes:
        rollout: What happens.
        notes: One per question of it, in order.
        channels: Channel of each planted record, by its name in the rollout.
        values: What a sentence in which the user tells a fact says that it is, by the sentence.
    """

    rollout: Rollout
    notes: tuple[Note, ...]
    channels: dict[str, Channel]
    values: dict[str, str]


class _Poison(NamedTuple):
    """A wrong value claimed about a fact, under the name of its record."""

    name: str
    value: str
    channel: Channel


@dataclass(slots=True)
class _Life:
    """One fact of one user.

    Attributes:
        fact: What it is.
        true: Values that hold one after the other.
        false: Values that poison claims, one after the other.
        days: When each of them begins to hold; the first is 0.
        session: In which session the user tells it first.
        told: Versions told so far.
        poison: Claimed so far.
    """

    fact: Fact
    true: Sequence[str]
    false: Sequence[str]
    days: Sequence[float]
    session: int
    told: list[int] = field(default_factory=list[int])
    poison: list[_Poison] = field(default_factory=list[_Poison])

    def version(self, day: float) -> int:
        """Which value holds on a day."""
        return sum(begins <= day for begins in self.days) - 1


class _Chat(NamedTuple):
    """A turn yet to come: a fact told, a question, or a text under a name."""

    tells: _Life | None = None
    asks: _Life | None = None
    goal: str = ""
    name: str = ""
    text: str = ""
    poisons: _Life | None = None


_Block: TypeAlias = list[_Chat]
"""Turns that stay together."""


def unfold(simulation: Simulation, *, user: int, seed: int, sessions: int | None = None) -> Days:
    """The days of one user.

    Args:
        simulation: What is simulated.
        user: Number of the user, from 0.
        seed: The same seed gives the same days.
        sessions: Only the first so many; ``None``: all.
    """
    return _User(simulation, user, seed).days(simulation.sessions if sessions is None else sessions)


class _User:
    """Draws the days of one user, session after session."""

    def __init__(self, simulation: Simulation, user: int, seed: int) -> None:
        self._simulation = simulation
        self._rng = np.random.default_rng([seed, user])
        self._name = simulation.names[user % len(simulation.names)]
        self._user = f"user-{user + 1:04d}"
        self._span = float(simulation.months * DAYS_PER_MONTH)
        self._lives = [self._life(number, fact) for number, fact in enumerate(simulation.fact)]
        self._next = [self._rng.uniform(0.3, 1.0) * goal.every for goal in simulation.goal]
        self._notes: list[Note] = []
        self._channels: dict[str, Channel] = {}
        self._values: dict[str, str] = {}

    def days(self, sessions: int) -> Days:
        step = self._span / self._simulation.sessions
        scripts: list[SessionScript] = []
        for number in range(sessions):
            day = (number + self._rng.uniform(0.1, 0.9)) * step
            at = self._simulation.start + timedelta(days=day)
            steps = tuple(self._session(number, day))
            # Whole seconds, so that times are as readable in a report as in a file.
            at = at.replace(microsecond=0)
            scripts.append(SessionScript(at=at, step=steps, asks_within=True))
        rollout = Rollout(title=self._simulation.title, user=self._user, session=tuple(scripts))
        return Days(rollout, tuple(self._notes), self._channels, self._values)

    def _life(self, number: int, fact: Fact) -> _Life:
        order = [fact.values[i] for i in self._order(len(fact.values))]
        half = (len(order) + 1) // 2
        changes = min(int(self._rng.poisson(fact.changes)), half - 1)
        days = sorted(self._rng.uniform(0, self._span, size=changes).tolist())
        telling = max(1, round(_TELLING * self._simulation.sessions))
        return _Life(fact, order[:half], order[half:], [0.0, *days], number % telling)

    def _session(self, number: int, day: float) -> Iterator[Step]:
        blocks = self._planned(number, day)
        for place, injection in enumerate(self._simulation.inject):
            if self._rng.random() < injection.rate:
                name = f"{injection.what}-{number}-{place}"
                yield from self._slipped_in(injection, name, blocks)
        room = self._simulation.turns - sum(map(len, blocks))
        blocks += [[self._chat(f"chatter-{number}-{i}")] for i in range(room)]
        for index in self._order(len(blocks)):
            for chat in blocks[index]:
                yield self._step(chat, day)

    def _planned(self, number: int, day: float) -> list[_Block]:
        """What is told, wanted and asked, as far as there is room beside planted turns."""
        due = [life for life in self._lives if self._is_due(life, number, day)]
        blocks: list[_Block] = [[_Chat(tells=life)] for life in due]
        askable = [life for life in self._lives if life.told and life not in due]
        asked: list[_Life] = []
        for place, goal in enumerate(self._simulation.goal):
            block = self._attempt(goal, place, number, day, askable)
            if block:
                asked += [chat.asks for chat in block if chat.asks]
                blocks.append(block)
        wanted = round(self._simulation.questions * self._simulation.turns) - len(asked)
        others = [life for life in askable if life not in asked]
        picks = self._order(len(others))[: max(0, wanted)]
        blocks += [[_Chat(asks=others[index])] for index in picks]
        plants = sum(one.channel == "planted_turn" for one in self._simulation.inject)
        return list(_fitting(blocks, self._simulation.turns - plants))

    def _is_due(self, life: _Life, number: int, day: float) -> bool:
        if not life.told:
            return number >= life.session
        return life.version(day) not in life.told

    def _attempt(
        self, goal: Goal, place: int, number: int, day: float, askable: Sequence[_Life]
    ) -> _Block:
        """The turns of a goal that is due, if all it needs was told in an earlier session."""
        by_name = {life.fact.name: life for life in askable}
        if day < self._next[place] or not all(name in by_name for name in goal.needs):
            return []
        self._next[place] = day + self._rng.uniform(0.7, 1.3) * goal.every
        attempt = f"{goal.name}#{number}"
        asks = [_Chat(asks=by_name[name], goal=attempt) for name in goal.needs]
        return [_Chat(name=f"goal-{number}-{place}", text=self._filled(goal.says)), *asks]

    def _slipped_in(self, injection: Injection, name: str, blocks: list[_Block]) -> Iterator[Step]:
        """A record before the session begins, or a turn within it."""
        if injection.what == "noise":
            text = self._filled(self._one_of(injection.texts))
            if injection.channel == "planted_turn":
                blocks.append([_Chat(name=name, text=text)])
            else:
                yield _plant(name, text, injection.channel)
            return
        lives = [life for life in self._lives if life.told and life.fact.poison]
        if not lives:
            return
        life = lives[int(self._rng.integers(len(lives)))]
        if injection.channel == "planted_turn":
            blocks.append([_Chat(name=name, poisons=life)])
        else:
            yield _plant(name, self._poisoned(life, name, injection.channel), injection.channel)

    def _chat(self, name: str) -> _Chat:
        return _Chat(name=name, text=self._filled(self._one_of(self._simulation.chatter.says)))

    def _step(self, chat: _Chat, day: float) -> Step:
        if chat.asks is not None:
            return self._question(chat.asks, chat.goal, day)
        if chat.tells is not None:
            return self._told(chat.tells, day)
        if chat.poisons is not None:
            text = self._poisoned(chat.poisons, chat.name, "planted_turn")
            return Tell(says={chat.name: text})
        return Tell(says={chat.name: chat.text})

    def _told(self, life: _Life, day: float) -> Tell:
        version = life.version(day)
        text = life.fact.changed if life.told else life.fact.told
        life.told.append(version)
        sentence = self._filled(text, life.true[version])
        self._values[sentence] = life.true[version]
        return Tell(says={_record(life, version): sentence})

    def _question(self, life: _Life, goal: str, day: float) -> Question:
        *stale, current = life.told
        planted = tuple(poison.name for poison in life.poison)
        values = tuple(dict.fromkeys(poison.value for poison in life.poison))
        through: dict[Channel, None] = dict.fromkeys(one.channel for one in life.poison)
        month = int(day // DAYS_PER_MONTH)
        self._notes.append(Note(month, life.fact.name, goal, values, tuple(through)))
        return Question(
            text=self._filled(self._one_of(life.fact.asked)),
            accept=(life.true[current],),
            reject=(*(life.true[version] for version in stale), *values),
            useful=(_record(life, current),),
            stale=tuple(_record(life, version) for version in stale),
            planted=planted,
        )

    def _poisoned(self, life: _Life, name: str, channel: Channel) -> str:
        value = life.false[len(life.poison) % len(life.false)]
        life.poison.append(_Poison(name, value, channel))
        self._channels[name] = channel
        return self._filled(life.fact.poison, value)

    def _filled(self, text: str, value: str = "") -> str:
        """The text with every placeholder replaced; words of the user's own are drawn."""
        words = {"value": value, "user": self._name}
        for name in PLACEHOLDER.findall(text):
            if name not in words:
                words[name] = self._one_of(self._simulation.fill[name])
        return PLACEHOLDER.sub(lambda found: words[found[1]], text)

    def _order(self, n: int) -> list[int]:
        return [int(place) for place in self._rng.permutation(n)]

    def _one_of(self, texts: Sequence[str]) -> str:
        return texts[int(self._rng.integers(len(texts)))]


def _fitting(blocks: Sequence[_Block], room: int) -> Iterator[_Block]:
    """Blocks from the first on, as long as they fit; one at least."""
    left = max(1, room)
    for block in blocks:
        if len(block) <= left:
            left -= len(block)
            yield block


def _record(life: _Life, version: int) -> str:
    return f"{life.fact.name}@{version}"


def _plant(name: str, text: str, channel: Channel) -> Plant:
    writer, through = _ORIGINS[channel]
    return Plant(id=name, text=text, writer=writer, channel=through)
