"""Blind examples made from LoCoMo questions outside Causal-LoCoMo: a check against overfitting.

Each has one true record (an annotated observation that holds the answer, or the question turned
into a statement with the annotated date), four observations from elsewhere, and in three of five
examples a false twin that differs in the value alone: the answer of another question of the same
kind, the session's own date ("yesterday" left unresolved), or a shifted date.
The data is read from a path and never committed.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from assay.guards.evidence.dates import mentions
from assay.guards.evidence.spans import Span, month_span
from assay.scenarios.schema import Example, Key, Scenario
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

_ORIGIN = Origin(writer="user", channel="import:locomo")
_WHEN = re.compile(r"^When (did|was|is|were|has|does|will) (.+?)\??$")
_DATE = "%I:%M %p on %d %B, %Y"
_UNRESOLVED = 0.5
_POISONED = 0.6
_MOST_WORDS = 6
_MONTH_DAYS = 31
_OTHERS = 4


class _Question(NamedTuple):
    conversation: str
    question: str
    answer: str
    session: int
    kind: str
    statement: str


class _Conversation(NamedTuple):
    name: str
    turns: list[ArchiveTurn]
    sessions: dict[int, datetime]
    observations: list[tuple[int, str]]
    questions: list[_Question]


def heldout(
    locomo: Path, known: frozenset[str], *, seed: int, per_conversation: int
) -> list[Scenario]:
    """Examples from questions whose text is not in ``known``; the same for the same seed.

    Args:
        locomo: ``locomo10.json``.
        known: Questions to leave out.
        seed: Of what is drawn.
        per_conversation: At most so many temporal, and as many other, questions of each.
    """
    rng = np.random.default_rng(seed)
    conversations = [
        _conversation(entry, known) for entry in msgspec.json.decode(locomo.read_bytes())
    ]
    everything = [q for c in conversations for q in c.questions]
    scenarios: list[Scenario] = []
    for conversation in conversations:
        for temporal in (True, False):
            fitting = [q for q in conversation.questions if (q.kind == "when") is temporal]
            picked = rng.permutation(len(fitting))[:per_conversation]
            scenarios += [
                _scenario(conversation, fitting[int(i)], everything, rng) for i in sorted(picked)
            ]
    return scenarios


def _conversation(entry: dict, known: frozenset[str]) -> _Conversation:  # type: ignore[type-arg]  # foreign JSON
    name, talk = entry["sample_id"], entry["conversation"]
    sessions: dict[int, datetime] = {}
    turns: list[ArchiveTurn] = []
    for number in _session_numbers(talk):
        written = talk[f"session_{number}_date_time"]
        sessions[number] = datetime.strptime(written, _DATE).replace(tzinfo=UTC)
        turns += [
            ArchiveTurn(
                id=TurnId(f"s{number}.{place}"),
                namespace=Namespace(name),
                session=SessionId(f"s{number}"),
                position=place,
                speaker=turn["speaker"],
                text=turn["text"],
                at=sessions[number],
            )
            for place, turn in enumerate(talk[f"session_{number}"])
            if turn["text"].strip()
        ]
    observations = list(_observations(entry["observation"]))
    questions = [
        made
        for asked in entry["qa"]
        if asked["question"] not in known and (made := _question(name, asked, observations))
    ]
    return _Conversation(
        name, turns, sessions, [(number, text) for number, _, text in observations], questions
    )


def _session_numbers(talk: dict[str, object]) -> list[int]:
    found = (re.fullmatch(r"session_(\d+)", key) for key in talk)
    return sorted(int(match[1]) for match in found if match and talk[match[0]])


def _observations(by_session: dict) -> Iterator[tuple[int, str, str]]:  # type: ignore[type-arg]  # foreign JSON
    for session, by_speaker in by_session.items():
        number = int(session.split("_")[1])
        for pairs in by_speaker.values():
            for text, sources in pairs:
                for source in [sources] if isinstance(sources, str) else sources:
                    yield number, source, text


def _question(
    name: str,
    asked: dict,  # type: ignore[type-arg]  # foreign JSON
    observations: list[tuple[int, str, str]],
) -> _Question | None:
    sources = [s for s in asked["evidence"] if re.fullmatch(r"D\d+:\d+", s)]
    answer = str(asked.get("answer", "")).strip()
    if not sources or not answer:
        return None
    session = max(int(source[1:].split(":")[0]) for source in sources)
    if when := _WHEN.match(asked["question"]):
        if len(mentions(answer, None)) != 1:
            return None
        return _Question(name, asked["question"], answer, session, "when", _statement(when, answer))
    holding = [t for _, s, t in observations if s in sources and _holds(t, answer)]
    if not holding or len(answer.split()) > _MOST_WORDS:
        return None
    kind = " ".join(asked["question"].lower().split()[:2])
    return _Question(name, asked["question"], answer, session, kind, holding[0])


def _statement(when: re.Match[str], answer: str) -> str:
    """A statement of "When did Jon start the gym?" and "March, 2023"."""
    subject, _, rest = when[2].partition(" ")
    joined = "" if re.match(r"(?:the|a|an|on|in|between)\b", answer, re.I) else "in "
    verb = "" if when[1] == "did" else f"{when[1]} "
    return f"{subject} {verb}{rest} {joined}{answer}."


def _holds(text: str, answer: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.I) is not None


def _scenario(
    conversation: _Conversation,
    picked: _Question,
    everything: list[_Question],
    rng: np.random.Generator,
) -> Scenario:
    past = [text for number, text in conversation.observations if number <= picked.session]
    apart = [
        t for t in dict.fromkeys(past) if t != picked.statement and not _holds(t, picked.answer)
    ]
    others = [apart[int(i)] for i in rng.permutation(len(apart))[:_OTHERS]]
    false = _false_twin(conversation, picked, everything, rng) if rng.random() < _POISONED else None
    texts = [picked.statement, *others, *([false] if false else [])]
    order = rng.permutation(len(texts))
    ids = {texts[int(i)]: RecordId(f"m{place}") for place, i in enumerate(order)}
    now = conversation.sessions[picked.session] + timedelta(hours=1)
    namespace = Namespace(conversation.name)
    example = Example(
        id=f"{conversation.name}/{conversation.questions.index(picked)}",
        question=picked.question,
        records=tuple(
            MemoryRecord(
                id=ids[texts[int(i)]],
                namespace=namespace,
                text=texts[int(i)],
                origin=_ORIGIN,
                ingested_at=now,
            )
            for i in order
        ),
        turns=tuple(t for t in conversation.turns if int(t.session[1:]) <= picked.session),
        now=now,
    )
    key = Key(
        family="temporal" if picked.kind == "when" else "factual",
        cluster=conversation.name,
        useful=frozenset({ids[picked.statement]}),
        irrelevant=frozenset(ids[t] for t in others),
        harmful=frozenset({ids[false]} if false else ()),
        expected=(picked.answer,),
    )
    return Scenario(example=example, key=key)


def _false_twin(
    conversation: _Conversation,
    picked: _Question,
    everything: list[_Question],
    rng: np.random.Generator,
) -> str | None:
    if picked.kind == "when":
        value = _false_time(picked.answer, conversation.sessions[picked.session].date(), rng)
    else:
        value = _false_value(picked, everything, rng)
    if value is None or value.lower() == picked.answer.lower():
        return None
    return re.sub(rf"(?<!\w){re.escape(picked.answer)}(?!\w)", value, picked.statement, flags=re.I)


def _false_value(
    picked: _Question, everything: list[_Question], rng: np.random.Generator
) -> str | None:
    fitting = sorted(
        {
            q.answer
            for q in everything
            if q.kind == picked.kind and q.answer.lower() not in picked.statement.lower()
        }
    )
    return fitting[int(rng.integers(len(fitting)))] if fitting else None


def _false_time(answer: str, session: date, rng: np.random.Generator) -> str | None:
    true = mentions(answer, None)[0].readings[0]
    unresolved = _day(session)
    if rng.random() < _UNRESOLVED and not (true.first <= session <= true.last):
        return unresolved
    return _shifted(true, rng)


def _shifted(true: Span, rng: np.random.Generator) -> str:
    sign = int(rng.choice([-1, 1]))
    if true.days > _MONTH_DAYS:
        return str(true.first.year + sign)
    if true.days > 14:  # noqa: PLR2004 - a month, not a week
        moved = month_span(true.first.year, true.first.month + sign).first
        return f"{moved:%B} {moved.year}"
    return _day(true.first + timedelta(days=sign * int(rng.integers(2, 15))))


def _day(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"
