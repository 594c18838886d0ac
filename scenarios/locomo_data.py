"""LoCoMo's conversations and questions, read past every defect of the file, each defect counted.

Source: Maharana et al. 2024, ``locomo10.json``. Category numbers are kept as they are in the file.
"""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from assay.errors import ScenarioError

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_WHEN = "%I:%M %p on %d %B, %Y"

Json: TypeAlias = dict[str, Any]
"""One parsed object of the file; nothing about it is trusted."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation.

    Attributes:
        id: ``D<session>:<place>``.
        speaker: Who said it.
        text: What was said.
        caption: Of a photo shown with it; empty if there was none.
        at: When its session was, UTC; relative dates in the text count from here.
    """

    id: str
    speaker: str
    text: str
    caption: str
    at: datetime

    @property
    def shown(self) -> str:
        """The text as a memory record: who said it, and what a photo showed."""
        photo = f" [photo: {self.caption}]" if self.caption else ""
        return f"{self.speaker}: {self.text}{photo}"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question about a conversation.

    Attributes:
        text: The question.
        answer: Its answer; empty where the file has none.
        category: The file's number, 1 to 5.
        evidence: Turns that hold the answer, only ones that exist.
    """

    text: str
    answer: str
    category: int
    evidence: tuple[str, ...]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation with its questions; a repeated question is kept once."""

    id: str
    speakers: tuple[str, str]
    turns: dict[str, Turn]
    questions: tuple[Question, ...]


class Locomo(msgspec.Struct, frozen=True, kw_only=True):
    """The file, and how often each defect was met."""

    conversations: tuple[Conversation, ...]
    defects: dict[str, int]


def load(path: Path) -> Locomo:
    """Read the file.

    Raises:
        ScenarioError: If it cannot be read or is not LoCoMo.
    """
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise ScenarioError(f"{str(path)!r} is no JSON: {error}") from error
    defects: Counter[str] = Counter()
    try:
        conversations = tuple(_conversation(sample, defects) for sample in samples)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ScenarioError(
            f"{str(path)!r} is not LoCoMo: expected conversations with dated sessions and "
            f"questions, got {type(error).__name__} {error}"
        ) from error
    return Locomo(conversations=conversations, defects=dict(sorted(defects.items())))


def _conversation(sample: Json, defects: Counter[str]) -> Conversation:
    talk = sample["conversation"]
    turns: dict[str, Turn] = {}
    for name in sorted(talk, key=_session_number):
        if _session_number(name):
            at = _session_time(talk[f"{name}_date_time"])
            turns |= {turn.id: turn for turn in (_turn(raw, at) for raw in talk[name])}
    questions: dict[str, Question] = {}
    for raw in sample["qa"]:
        question = _question(raw, turns, defects)
        if question.text in questions:
            defects["repeated questions"] += 1
            continue
        questions[question.text] = question
    return Conversation(
        id=sample["sample_id"],
        speakers=(talk["speaker_a"], talk["speaker_b"]),
        turns=turns,
        questions=tuple(questions.values()),
    )


def _session_number(name: str) -> int:
    found = re.fullmatch(r"session_(\d+)", name)
    return int(found[1]) if found else 0


def _session_time(text: str) -> datetime:
    return datetime.strptime(text.upper(), _WHEN).replace(tzinfo=UTC)


def _turn(raw: Json, at: datetime) -> Turn:
    return Turn(
        id=raw["dia_id"],
        speaker=raw["speaker"],
        text=" ".join(raw["text"].split()),
        caption=" ".join(raw.get("blip_caption", "").split()),
        at=at,
    )


def _question(raw: Json, turns: dict[str, Turn], defects: Counter[str]) -> Question:
    answer = raw.get("answer")
    if answer is None:
        defects["questions without an answer"] += 1
    elif not isinstance(answer, str):
        defects["answers that are no text"] += 1
    if not raw["evidence"]:
        defects["questions without evidence"] += 1
    evidence = _evidence(raw["evidence"], turns, defects)
    return Question(
        text=" ".join(raw["question"].split()),
        answer="" if answer is None else " ".join(str(answer).split()),
        category=raw["category"],
        evidence=evidence,
    )


def _evidence(listed: list[str], turns: dict[str, Turn], defects: Counter[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for entry in listed:
        if not re.fullmatch(r"D\d+:\d+", entry):
            defects["malformed evidence ids"] += 1
        for session, place in _EVIDENCE.findall(entry):
            name = f"D{int(session)}:{int(place)}"
            if name in turns:
                found[name] = None
            else:
                defects["dangling evidence ids"] += 1
    return tuple(found)
