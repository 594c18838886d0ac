"""Eight families of memory problems, any number of them from one seed.

Whether a record is true shows only in what was said: position, ids, times and provenance are drawn
without regard to its role, and a true and a false twin differ in nothing but the value. The same
(seed, index) always gives the same scenario, whatever the size of the set.
"""

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from assay.scenarios.schema import Example, Key, Scenario
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
    Writer,
)

SUITE = "families"

Role: TypeAlias = Literal["useful", "irrelevant", "harmful"]
T = TypeVar("T")

_FIRST_DAY = datetime(2025, 1, 6, 9, tzinfo=UTC)
_SESSIONS = 6
_DISTRACTORS = 4
_CHANNELS: tuple[tuple[Writer, str], ...] = (
    ("user", "chat"),
    ("assistant", "chat"),
    ("tool", "tool:notes"),
    ("external", "web"),
)


class Attribute(msgspec.Struct, frozen=True):
    """Something a person can be asked about; ``{context}`` is empty or starts with a space."""

    topic: str
    question: str
    statements: tuple[str, ...]
    turns: tuple[str, ...]
    values: tuple[str, ...]


class Procedure(msgspec.Struct, frozen=True):
    """A task and what may have to be done first."""

    goal: str
    steps: tuple[str, ...]


class Material(msgspec.Struct, frozen=True):
    """Pools of names, attributes and phrasings."""

    names: str
    relations: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...]
    small_talk: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    procedures: tuple[Procedure, ...]


class Statement(NamedTuple):
    """One record's text and what it is to the question."""

    text: str
    role: Role


class Said(NamedTuple):
    """One turn of the archive."""

    session: int
    speaker: str
    text: str


class Story(NamedTuple):
    """A problem before ids, times and provenance are drawn."""

    question: str
    expected: tuple[str, ...]
    statements: list[Statement]
    said: list[Said]


class Draw:
    """Seeded choices for one scenario.

    Args:
        material: What to choose from.
        seed: Of the whole set.
        index: Of the scenario in it.
    """

    def __init__(self, material: Material, seed: int, index: int) -> None:
        digest = hashlib.sha256(f"{SUITE}|{seed}|{index}".encode()).digest()
        self.rng = np.random.default_rng(int.from_bytes(digest[:16], "big"))
        self.material = material
        self._names = self.sample(material.names.split(), len(material.names.split()))

    def one(self, pool: Sequence[T]) -> T:
        """One element of a pool."""
        return pool[int(self.rng.integers(len(pool)))]

    def sample(self, pool: Sequence[T], count: int) -> list[T]:
        """Different elements of a pool, in random order."""
        return [pool[i] for i in self.rng.permutation(len(pool))[:count]]

    def name(self) -> str:
        """A person not drawn before."""
        return self._names.pop()

    def sessions(self, count: int) -> list[int]:
        """Different sessions in order of time."""
        return sorted(self.sample(range(_SESSIONS), count))


def load_material() -> Material:
    """The pools that ship with Assay."""
    text = files("assay.scenarios").joinpath("data/families.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Material)


def generate(size: int, *, seed: int) -> list[Scenario]:
    """``size`` scenarios, the eight families in turn.

    Raises:
        ValueError: If ``size`` is below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    material = load_material()
    names = tuple(FAMILIES)
    return [_scenario(names[i % len(names)], material, seed, i) for i in range(size)]


def preference_update(draw: Draw) -> Story:
    """A preference changed; the old record is still in the bank."""
    name, attribute = draw.name(), draw.one(draw.material.attributes)
    old, new = draw.sample(attribute.values, 2)
    before, after = draw.sessions(2)
    said = [
        Said(before, name, _say(draw, attribute, old)),
        Said(after, name, f"That has changed. {_say(draw, attribute, new)}"),
    ]
    return Story(_ask(attribute, name), (new,), _twins(draw, attribute, name, new, old), said)


def context_specific_preference(draw: Draw) -> Story:
    """Two preferences, each for its own context; only one context is asked about."""
    name, attribute = draw.name(), draw.one(draw.material.attributes)
    asked, other = draw.sample(draw.one(draw.material.contexts), 2)
    right, wrong = draw.sample(attribute.values, 2)
    first, second = draw.sample(range(_SESSIONS), 2)
    template = draw.one(attribute.statements)
    statements = [
        Statement(_fill(template, name, right, asked), "useful"),
        Statement(_fill(template, name, wrong, other), "harmful"),
    ]
    said = [
        Said(first, name, _say(draw, attribute, right, asked)),
        Said(second, name, _say(draw, attribute, wrong, other)),
    ]
    return Story(_ask(attribute, name, asked), (right,), statements, said)


def procedural_memory(draw: Draw) -> Story:
    """How something is done; a false twin names another first step."""
    procedure, name = draw.one(draw.material.procedures), draw.name()
    right, wrong = draw.sample(procedure.steps, 2)
    template = draw.one(
        [
            "To {goal}, first {step}.",
            "Before you {goal}, {step}.",
            "The first step to {goal}: {step}.",
        ]
    )
    statements = [
        Statement(template.format(goal=procedure.goal, step=right), "useful"),
        Statement(template.format(goal=procedure.goal, step=wrong), "harmful"),
    ]
    said = [Said(draw.one(range(_SESSIONS)), name, f"To {procedure.goal} we always {right} first.")]
    return Story(f"What comes first to {procedure.goal}?", (right,), statements, said)


def spurious_semantic_trap(draw: Draw) -> Story:
    """A record in the question's own words, about somebody else."""
    name, other, attribute = draw.name(), draw.name(), draw.one(draw.material.attributes)
    right, wrong = draw.sample(attribute.values, 2)
    question = _ask(attribute, name)
    trap = f"{name} asked {_lower(question.replace(name, other))} {other} said: {wrong}."
    statements = [
        Statement(_fill(draw.one(attribute.statements), name, right), "useful"),
        Statement(trap, "harmful"),
    ]
    first, second = draw.sample(range(_SESSIONS), 2)
    said = [
        Said(first, name, _say(draw, attribute, right)),
        Said(second, other, _say(draw, attribute, wrong)),
    ]
    return Story(question, (right,), statements, said)


def conflicting_memories(draw: Draw) -> Story:
    """Two records of one thing; what was said supports one."""
    name, attribute = draw.name(), draw.one(draw.material.attributes)
    right, wrong = draw.sample(attribute.values, 2)
    said = [Said(draw.one(range(_SESSIONS)), name, _say(draw, attribute, right))]
    return Story(_ask(attribute, name), (right,), _twins(draw, attribute, name, right, wrong), said)


def poisoned_memory(draw: Draw) -> Story:
    """The false record comes in several wordings; nobody ever said it."""
    name, attribute = draw.name(), draw.one(draw.material.attributes)
    right, wrong = draw.sample(attribute.values, 2)
    wordings = draw.sample(attribute.statements, 2)
    statements = [Statement(_fill(draw.one(attribute.statements), name, right), "useful")]
    statements += [Statement(_fill(wording, name, wrong), "harmful") for wording in wordings]
    said = [Said(draw.one(range(_SESSIONS)), name, _say(draw, attribute, right))]
    return Story(_ask(attribute, name), (right,), statements, said)


def multi_hop_memory(draw: Draw) -> Story:
    """Two records are needed together; a false twin contests the second."""
    name, other, relation = draw.name(), draw.name(), draw.one(draw.material.relations)
    attribute = draw.one(draw.material.attributes)
    right, wrong = draw.sample(attribute.values, 2)
    link = Statement(f"{other} is {name}'s {relation}.", "useful")
    first, second = draw.sample(range(_SESSIONS), 2)
    said = [
        Said(first, name, f"{other} is my {relation}."),
        Said(second, other, _say(draw, attribute, right)),
    ]
    question = _ask(attribute, f"{name}'s {relation}")
    return Story(question, (right,), [link, *_twins(draw, attribute, other, right, wrong)], said)


def abstention(draw: Draw) -> Story:
    """Nothing in the bank answers; a record about somebody else might seem to."""
    name, other, attribute = draw.name(), draw.name(), draw.one(draw.material.attributes)
    value = draw.one(attribute.values)
    near = Statement(_fill(draw.one(attribute.statements), other, value), "irrelevant")
    said = [Said(draw.one(range(_SESSIONS)), other, _say(draw, attribute, value))]
    return Story(_ask(attribute, name), (), [near], said)


FAMILIES: Mapping[str, Callable[[Draw], Story]] = {
    "preference_update": preference_update,
    "context_specific_preference": context_specific_preference,
    "procedural_memory": procedural_memory,
    "spurious_semantic_trap": spurious_semantic_trap,
    "conflicting_memories": conflicting_memories,
    "poisoned_memory": poisoned_memory,
    "multi_hop_memory": multi_hop_memory,
    "abstention": abstention,
}


def _twins(draw: Draw, attribute: Attribute, name: str, right: str, wrong: str) -> list[Statement]:
    template = draw.one(attribute.statements)
    return [
        Statement(_fill(template, name, right), "useful"),
        Statement(_fill(template, name, wrong), "harmful"),
    ]


def _ask(attribute: Attribute, name: str, context: str = "") -> str:
    return _fill(attribute.question, name, "", context)


def _say(draw: Draw, attribute: Attribute, value: str, context: str = "") -> str:
    return _fill(draw.one(attribute.turns), "", value, context)


def _fill(template: str, name: str, value: str, context: str = "") -> str:
    return template.format(name=name, value=value, context=f" {context}" if context else "")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _scenario(family: str, material: Material, seed: int, index: int) -> Scenario:
    draw = Draw(material, seed, index)
    story = FAMILIES[family](draw)
    distractors = [_distractor(draw) for _ in range(_DISTRACTORS)]
    said = story.said + [said for _, said in distractors] + _small_talk(draw)
    name = f"{family}-{seed}-{index:05}"
    namespace = Namespace(f"{SUITE}/{name}")
    turns = _turns(namespace, said, draw)
    now = turns[-1].at + timedelta(days=1)
    statements = story.statements + [statement for statement, _ in distractors]
    records = [_record(namespace, s.text, turns, now, draw) for s in statements]
    roles: dict[RecordId, Role] = {
        record.id: s.role for record, s in zip(records, statements, strict=True)
    }
    example = Example(
        id=name,
        question=story.question,
        records=tuple(sorted(records, key=lambda record: record.id)),
        turns=tuple(turns),
        now=now,
    )
    return Scenario(example=example, key=_key(family, f"{seed}-{index}", roles, story.expected))


def _key(
    family: str, cluster: str, roles: Mapping[RecordId, Role], expected: tuple[str, ...]
) -> Key:
    def having(role: Role) -> frozenset[RecordId]:
        return frozenset(record for record, found in roles.items() if found == role)

    return Key(
        family=family,
        cluster=cluster,
        useful=having("useful"),
        irrelevant=having("irrelevant"),
        harmful=having("harmful"),
        expected=expected,
    )


def _distractor(draw: Draw) -> tuple[Statement, Said]:
    name, attribute = draw.name(), draw.one(draw.material.attributes)
    value = draw.one(attribute.values)
    statement = Statement(_fill(draw.one(attribute.statements), name, value), "irrelevant")
    return statement, Said(draw.one(range(_SESSIONS)), name, _say(draw, attribute, value))


def _small_talk(draw: Draw) -> list[Said]:
    names = [draw.name() for _ in range(_SESSIONS)]
    return [
        Said(session, name, draw.one(draw.material.small_talk))
        for session, name in enumerate(names)
    ]


def _turns(namespace: Namespace, said: Sequence[Said], draw: Draw) -> list[ArchiveTurn]:
    turns: list[ArchiveTurn] = []
    start = _FIRST_DAY + timedelta(days=int(draw.rng.integers(365)))
    for session in range(_SESSIONS):
        spoken = [one for one in said if one.session == session]
        at = start + timedelta(days=session * 9 + int(draw.rng.integers(5)))
        for position, one in enumerate(draw.sample(spoken, len(spoken))):
            turns.append(
                ArchiveTurn(
                    id=TurnId(f"s{session}t{position}"),
                    namespace=namespace,
                    session=SessionId(f"s{session}"),
                    position=position,
                    speaker=one.speaker,
                    text=one.text,
                    at=at + timedelta(minutes=position),
                )
            )
    return turns


def _record(
    namespace: Namespace, text: str, turns: Sequence[ArchiveTurn], now: datetime, draw: Draw
) -> MemoryRecord:
    writer, channel = draw.one(_CHANNELS)
    source = draw.one([None, draw.one(turns).id])
    span = int((now - turns[0].at).total_seconds())
    at = turns[0].at + timedelta(seconds=int(draw.rng.integers(span)))
    return MemoryRecord(
        id=RecordId(draw.rng.bytes(6).hex()),
        namespace=namespace,
        text=text,
        origin=Origin(writer=writer, channel=channel, source_turn=source),
        ingested_at=at,
        claimed_at=draw.one([None, at]),
    )
