"""Causal-LoCoMo, loaded for the blind protocol.

What the blind protocol removes, because it would tell which memory is right: labels, ids that name a
role, source ids, order within the bank, timestamps, and the sentence that resolves the answer inside
some memories. What is left of a memory is its text; ids, order and times are functions of
(seed, text). The data is not part of this project; it is read from a path the user gives.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np

from assay.scenarios.loader import malformed, read_jsonl
from assay.scenarios.normalise import holds, words
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

SUITE = "causal-locomo"
ORIGIN = Origin(writer="user", channel=f"import:{SUITE}")
ASKED_AFTER = timedelta(hours=1)
"""How long after the start of the last session the question is asked."""

_ANSWER_SUFFIX = re.compile(
    r"\s*Resolved (?:temporal )?answer(?: for the current question)?:.*\Z", re.DOTALL
)
_TURN = re.compile(r"D\d+:\d+ ([^:\n]+): (.*)")
_LABELS = ("useful", "irrelevant", "harmful")
_HEADER = "Session date/time:"
_DATE = "%I:%M %p on %d %B, %Y"
_DATE_SHOWN = "'1:56 pm on 8 May, 2023'"


class _Session(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    date_time: str
    content: str


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    memory_id: str
    content: str
    label: str


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    instruction: str


class _Criteria(msgspec.Struct, frozen=True, kw_only=True):
    expected_answer: str
    answer_aliases: tuple[str, ...] = ()


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    example_id: str
    source_sample_id: str
    task_family: str
    past_sessions: tuple[_Session, ...]
    memory_bank: tuple[_Memory, ...]
    current_task: _Task
    gold_memory_ids: tuple[str, ...]
    scoring_criteria: _Criteria


def load_blind(path: Path, *, seed: int, limit: int | None = None) -> list[Scenario]:
    """The examples of a file, blinded, each beside its key.

    Args:
        path: A Causal-LoCoMo JSONL file.
        seed: Of ids, order and redrawn times.
        limit: Keep the first so many examples; ``None`` keeps all.

    Raises:
        ScenarioError: With file, line and what was expected; the whole file is checked first.
    """
    scenarios: list[Scenario] = []
    seen: dict[str, int] = {}
    for number, row in read_jsonl(path, _Row):
        if row.example_id in seen:
            first = seen[row.example_id]
            expected = f"expected a new example_id, got {row.example_id!r} of line {first} again"
            raise malformed(path, number, expected)
        seen[row.example_id] = number
        try:
            scenarios.append(_blind(row, seed))
        except ValueError as error:
            raise malformed(path, number, str(error)) from error
    return scenarios[:limit]


def strip_answer(text: str) -> str:
    """A memory's text without the sentence that resolves the answer, if it carries one."""
    return _ANSWER_SUFFIX.sub("", text).strip()


def _blind(row: _Row, seed: int) -> Scenario:
    _check(row)
    namespace = Namespace(f"{SUITE}/{row.example_id}")
    starts = [_parse_date(session.date_time) for session in row.past_sessions]
    now = max(starts) + ASKED_AFTER
    ids = _opaque_ids(row, seed)
    records = [
        MemoryRecord(
            id=ids[memory.memory_id],
            namespace=namespace,
            text=strip_answer(memory.content),
            origin=ORIGIN,
            ingested_at=_redrawn(ids[memory.memory_id], min(starts), now),
        )
        for memory in row.memory_bank
    ]
    example = Example(
        id=row.example_id,
        question=row.current_task.instruction,
        records=tuple(sorted(records, key=lambda record: record.id)),
        turns=_archive(row.past_sessions, starts, namespace),
        now=now,
    )
    return Scenario(example=example, key=_key(row, ids))


def _check(row: _Row) -> None:
    if not row.past_sessions:
        raise ValueError("expected at least one session in past_sessions, got none")
    for where, text in _texts(row):
        if "\0" in text:
            raise ValueError(f"expected text without NUL in {where}")
        if not strip_answer(text):
            raise ValueError(f"expected text in {where}, got {text!r}")
    for memory in row.memory_bank:
        if memory.label not in _LABELS:
            known = ", ".join(_LABELS)
            raise ValueError(
                f"expected label {known} of {memory.memory_id!r}, got {memory.label!r}"
            )
    _check_ids(row)


def _check_ids(row: _Row) -> None:
    known = Counter(memory.memory_id for memory in row.memory_bank)
    for memory_id, count in known.items():
        if count > 1:
            raise ValueError(f"expected distinct memory_ids, got {memory_id!r} {count} times")
    for memory_id in row.gold_memory_ids:
        if memory_id not in known:
            raise ValueError(f"expected gold_memory_ids of the bank, got {memory_id!r}")


def _texts(row: _Row) -> list[tuple[str, str]]:
    texts = [("current_task.instruction", row.current_task.instruction)]
    texts += [(f"memory {memory.memory_id!r}", memory.content) for memory in row.memory_bank]
    texts += [(f"session {s.session_id!r}", s.content) for s in row.past_sessions]
    return [*texts, ("example_id", row.example_id)]


def _opaque_ids(row: _Row, seed: int) -> dict[str, RecordId]:
    """Ids from (seed, text); equal texts are told apart by a count, and are interchangeable."""
    ids: dict[str, RecordId] = {}
    copies: Counter[str] = Counter()
    for memory in row.memory_bank:
        text = strip_answer(memory.content)
        named = f"{seed}\0{copies[text]}\0{text}"
        copies[text] += 1
        ids[memory.memory_id] = RecordId("m" + hashlib.sha256(named.encode()).hexdigest()[:12])
    return ids


def _redrawn(record_id: RecordId, first: datetime, now: datetime) -> datetime:
    """A time inside the session range that depends on nothing but seed and text."""
    rng = np.random.default_rng(int(record_id[1:], 16))
    return first + timedelta(seconds=int(rng.integers(0, int((now - first).total_seconds()))))


def _archive(
    sessions: Sequence[_Session], starts: Sequence[datetime], namespace: Namespace
) -> tuple[ArchiveTurn, ...]:
    order = sorted(range(len(sessions)), key=lambda i: starts[i])
    turns: list[ArchiveTurn] = []
    for place, i in enumerate(order, start=1):
        session = SessionId(f"s{place}")
        for position, (speaker, text) in enumerate(_turns(sessions[i].content)):
            turns.append(
                ArchiveTurn(
                    id=TurnId(f"{session}.{position}"),
                    namespace=namespace,
                    session=session,
                    position=position,
                    speaker=speaker,
                    text=text,
                    at=starts[i],
                )
            )
    return tuple(turns)


def _turns(content: str) -> list[tuple[str, str]]:
    """Speaker and text of each turn; a line that opens none goes on with the turn before it."""
    turns: list[tuple[str, str]] = []
    for line in content.splitlines():
        if line.startswith(_HEADER) or not line.strip():
            continue
        if opened := _TURN.fullmatch(line):
            turns.append((opened[1].strip(), opened[2].strip()))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line.strip()}")
        else:
            raise ValueError(f"expected a turn like 'D1:3 Name: text', got {line[:60]!r}")
    return [turn for turn in turns if turn[1]]


def _parse_date(text: str) -> datetime:
    try:
        return datetime.strptime(text.strip(), _DATE).replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"expected date_time like {_DATE_SHOWN}, got {text!r}") from error


def _key(row: _Row, ids: dict[str, RecordId]) -> Key:
    by_label = {
        label: frozenset(ids[m.memory_id] for m in row.memory_bank if m.label == label)
        for label in ("irrelevant", "harmful")
    }
    criteria = row.scoring_criteria
    return Key(
        family=row.task_family,
        cluster=row.source_sample_id,
        useful=frozenset(ids[memory_id] for memory_id in row.gold_memory_ids),
        irrelevant=by_label["irrelevant"],
        harmful=by_label["harmful"],
        expected=(criteria.expected_answer, *criteria.answer_aliases),
        flags=_flags(row),
    )


def _flags(row: _Row) -> tuple[str, ...]:
    """Examples whose harmful memory states the expected answer; kept in, but named in reports."""
    expected = words(row.scoring_criteria.expected_answer)
    stated = (
        expected and holds(words(memory.content), expected)
        for memory in row.memory_bank
        if memory.label == "harmful"
    )
    return ("a harmful memory states the expected answer",) if any(stated) else ()
