"""What users say while faults strike, and what is left of it afterwards: the same whoever took the turns.

The model is the plain reader, which answers with the record shown that shares most words with the
question, so a decision that differs is a reply that differs. Users state names, ask for them, and now
and then contradict themselves.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from assay.runtime.events import (
    AnyEvent,
    CandidatesRetrieved,
    GuardDecided,
    MemoriesWritten,
    MessageReceived,
    ReplyProduced,
    decode,
)
from assay.runtime.facade import Runtime
from assay.runtime.limits import namespace_of
from assay.runtime.settings import Settings
from assay.runtime.streams import stream_of
from assay.runtime.wiring import open_runtime
from assay.stores.protocols import Embedder
from assay.stores.records import Namespace, SessionId

TOPICS = (
    *("cat", "dog", "car", "boat", "street", "school", "doctor", "dentist", "teacher", "landlord"),
    *("bakery", "gym", "bank", "airline", "hotel", "garden", "village", "river", "bridge", "band"),
)
NAMES = (
    *(
        "Miso",
        "Alder",
        "Quill",
        "Juniper",
        "Basalt",
        "Marlow",
        "Ostara",
        "Pepper",
        "Ravel",
        "Sable",
    ),
    *(
        "Tamsin",
        "Umber",
        "Vesper",
        "Wren",
        "Xanthe",
        "Yarrow",
        "Zephyr",
        "Clove",
        "Dorado",
        "Ember",
    ),
)
SESSIONS = 3
TENANTS = 3
STEPS = (MessageReceived, CandidatesRetrieved, GuardDecided, ReplyProduced, MemoriesWritten)


class Said(NamedTuple):
    """One message of a user, in a session, with the name of its request."""

    session: str
    text: str
    request: str


class Script(NamedTuple):
    """A user, and all that this user says, in order."""

    user: Namespace
    said: tuple[Said, ...]


def scripts(turns: int, users: int, seed: int) -> list[Script]:
    """What each user says; together ``turns`` messages, of several tenants and sessions."""
    rng = np.random.default_rng(seed)
    counts = [turns // users + (user < turns % users) for user in range(users)]
    return [
        Script(
            namespace_of(f"tenant{user % TENANTS}", f"user{user}"),
            tuple(_said(rng, user, number) for number in range(count)),
        )
        for user, count in enumerate(counts)
    ]


def _said(rng: np.random.Generator, user: int, number: int) -> Said:
    topic, name = TOPICS[rng.integers(len(TOPICS) // 2)], NAMES[rng.integers(len(NAMES))]
    texts = (
        f"My {topic} is called {name}.",
        f"What is my {topic} called?",
        f"A neighbour says that my {topic} is called {name}, not what I said before.",
    )
    text = texts[rng.choice(3, p=(0.45, 0.4, 0.15))]
    return Said(f"session{rng.integers(SESSIONS)}", text, f"{user}/{number}")


class Left(NamedTuple):
    """What is left of a user's turns.

    Attributes:
        records: Every record but for the time it was taken in at, by id.
        decisions: What was decided about each candidate, by turn.
        replies: What the journal says was answered, by turn.
        archived: ``SESSION SPEAKER TEXT``, sorted.
        events: How often each kind of event of each turn is in the journal.
    """

    records: dict[str, Any]
    decisions: dict[str, Any]
    replies: dict[str, str]
    archived: list[str]
    events: dict[str, Counter[str]]


async def left_of(runtime: Runtime, user: Namespace) -> Left:
    """Read all that is kept of a user."""
    records = (await runtime.bank.store.changes(user, after=0)).records
    events = [event for name in range(SESSIONS) for event in await _events(runtime, user, name)]
    counted: dict[str, Counter[str]] = {}
    for event in events:
        counted.setdefault(event.turn_id, Counter())[type(event).__name__] += 1
    return Left(
        records={record.id: _without(record, "ingested_at") for record in records},
        decisions={
            e.turn_id: _without(e.decision, "spent") for e in events if isinstance(e, GuardDecided)
        },
        replies={e.turn_id: e.text for e in events if isinstance(e, ReplyProduced)},
        archived=sorted(
            f"{turn.session} {turn.speaker} {turn.text}"
            for turn in await runtime.bank.archive.all(user)
        ),
        events=counted,
    )


async def _events(runtime: Runtime, user: Namespace, session: int) -> list[AnyEvent]:
    stream = stream_of(user, SessionId(f"session{session}"))
    return [decode(entry.payload) for entry in await runtime.bank.journal.read(stream)]


def _without(whole: msgspec.Struct, field: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(whole)
    fields.pop(field, None)
    return fields


async def embedded(script: Script, settings: Settings, embedder: Embedder, folder: Path) -> Left:
    """What is left when one process takes a user's turns, over a bank in a folder of the user's own."""
    async with open_runtime(
        model="scripted", bank=folder, embedder=embedder, settings=settings
    ) as runtime:
        for said in script.said:
            session = runtime.session(user=script.user, session_id=said.session)
            await session.send(said.text, request=said.request)
        return await left_of(runtime, script.user)


class Checks(NamedTuple):
    """How often something is not as it must be; all 0 when all is well.

    Attributes:
        lost: Acknowledged replies that the journal or the archive has not, or has otherwise.
        doubled: Turns with more than one decision.
        incomplete: Turns whose journal is not each of the five events, once.
        records: Records that differ from those of the embedded run.
        decisions: Decisions that do.
        replies: Replies that do.
        archived: Messages of the archive that do.
    """

    lost: int
    doubled: int
    incomplete: int
    records: int
    decisions: int
    replies: int
    archived: int


def checked(
    acknowledged: dict[str, str], said: Sequence[Said], left: Left, expected: Left
) -> Checks:
    """Compare what is left of a user's turns.

    Args:
        acknowledged: Replies that the user got, by request.
        said: What the user said.
        left: What is left of it.
        expected: What is left of the embedded run.
    """
    turns = turn_ids(said)
    kept = Counter(left.archived)
    lost = sum(
        left.replies.get(turns[one.request]) != acknowledged[one.request]
        or not kept[f"{one.session} user {one.text}"]
        or not kept[f"{one.session} assistant {acknowledged[one.request]}"]
        for one in said
        if one.request in acknowledged
    )
    once = {step.__name__: 1 for step in STEPS}
    archives = (Counter(left.archived), Counter(expected.archived))
    return Checks(
        lost=lost,
        doubled=sum(events["GuardDecided"] > 1 for events in left.events.values()),
        incomplete=sum(left.events.get(turn) != once for turn in turns.values()),
        records=_differing(left.records, expected.records),
        decisions=_differing(left.decisions, expected.decisions),
        replies=_differing(left.replies, expected.replies),
        archived=sum(((archives[0] - archives[1]) + (archives[1] - archives[0])).values()),
    )


def differences(left: Left, expected: Left) -> list[str]:
    """Each thing that differs, as it is and as it must be."""
    found: list[str] = []
    for what in ("records", "decisions", "replies"):
        one, other = getattr(left, what), getattr(expected, what)
        found += [
            f"{what} {key}: {one.get(key)} instead of {other.get(key)}"
            for key in sorted(one.keys() | other.keys())
            if one.get(key) != other.get(key)
        ]
    return found


def turn_ids(said: Sequence[Said]) -> dict[str, str]:
    """The turn of each request: sessions number their messages."""
    numbers: Counter[str] = Counter()
    turns: dict[str, str] = {}
    for one in said:
        turns[one.request] = f"{one.session}/{numbers[one.session]}"
        numbers[one.session] += 1
    return turns


def _differing(left: dict[str, Any], expected: dict[str, Any]) -> int:
    return sum(left.get(key) != expected.get(key) for key in left.keys() | expected.keys())
