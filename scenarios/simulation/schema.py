"""What a simulation file holds: users, what holds for them, what is slipped in, who is compared.

The ones that ship lie in ``scenarios/data/simulations`` and are written to be read.
"""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w .-]*$", max_length=60)]
Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S", max_length=1000)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Channel: TypeAlias = Literal["web", "tool", "other_user", "planted_turn"]


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to use memory; all agents live through the same days.

    Attributes:
        name: In tables and plots.
        guard: Name of the guard that reviews its memories.
        k: Records retrieved per question.
    """

    name: Name
    guard: str = "panel"
    k: Annotated[int, msgspec.Meta(ge=1, le=64)] = 5


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that holds for a user, and may change.

    ``{value}`` in a text stands for what holds then, ``{user}`` for the user's name.

    Attributes:
        name: In goals and reports.
        told: How the user says it the first time; one sentence.
        asked: Ways to ask about it; one is drawn each time. Each ends with a question mark.
        values: What may hold. For each user they are shuffled; the first half may come true, the
            other half is what poison claims.
        changed: How the user says that it changed.
        changes: How often it changes on average over the whole time (Poisson).
        poison: How a planted record claims another value; empty: this fact is never attacked.
    """

    name: Name
    told: Text
    asked: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    values: Annotated[tuple[Text, ...], msgspec.Meta(min_length=2)]
    changed: str = ""
    changes: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    poison: str = ""


class Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user wants to get done: it takes the right answer to every question it needs.

    Attributes:
        name: In reports.
        says: How the user begins.
        needs: Names of facts, asked about one after the other.
        every: Simulated days between two times, on average.
    """

    name: Name
    says: Text
    needs: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    every: Annotated[float, msgspec.Meta(gt=0)]


class Injection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What comes into the bank without being the user's own word.

    Attributes:
        what: ``poison`` claims a wrong value of one of the facts, ``noise`` is beside the point.
        channel: ``web``: a page; ``tool``: a tool's output; ``other_user``: forwarded by somebody
            else; ``planted_turn``: said in the user's own chat by somebody at the user's keyboard.
        rate: Chance per session, in [0, 1].
        texts: What noise says; one is drawn each time.
    """

    what: Literal["poison", "noise"]
    channel: Channel
    rate: Share
    texts: tuple[Text, ...] = ()


class Chatter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What users say that nobody will ask about.

    Attributes:
        says: Messages; one is drawn each time.
    """

    says: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class Simulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole simulation.

    Attributes:
        title: Of the report.
        about: What it is like, in a few sentences.
        start: When the simulated time begins, with an offset.
        months: How long it lasts, in months of 30 days.
        users: How many.
        sessions: Per user, spread over the months.
        turns: Messages of the user per session.
        questions: Share of turns that ask about a fact told in an earlier session.
        model: What answers; ``scripted`` needs no model.
        user_model: ``script`` says what the file says; the name of a model has the user put it in
            the model's words.
        embedder: For retrieval and evidence.
        names: First names of users, taken in turns.
        agent: Who is compared; the first one is the reference.
        fact: What holds for a user.
        goal: What users want to get done.
        inject: What is slipped in.
        chatter: The turns in between.
        fill: Words for placeholders of your own in chatter and noise: ``{dish}`` takes one of
            ``fill.dish``.
    """

    title: Text
    about: str = ""
    start: datetime
    months: Annotated[int, msgspec.Meta(ge=1, le=120)]
    users: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    sessions: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    turns: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    questions: Share = 0.35
    model: str = "scripted"
    user_model: str = "script"
    embedder: str = "hashing"
    names: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("Robin", "Kim", "Alex")
    agent: Annotated[tuple[Agent, ...], msgspec.Meta(min_length=1)]
    fact: Annotated[tuple[Fact, ...], msgspec.Meta(min_length=1)]
    goal: tuple[Goal, ...] = ()
    inject: tuple[Injection, ...] = ()
    chatter: Chatter
    fill: dict[str, Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]] = {}
