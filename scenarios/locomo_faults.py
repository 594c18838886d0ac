"""The fault benchmark without a language model: questions, wrong records, and what retrieval brings.

Source of the idea: "MeClear" (2609.09115). Structures: *direct*, one later record that contradicts the
evidence; *redundant*, two to four differently worded copies of it; *joint*, a neutral pointer and a
payload that mislead only together. A case is *natural* when all its evidence and all its faults reach
the top of hybrid retrieval; other cases are *forced* and kept apart.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

import msgspec

from assay.scenarios.locomo_data import Conversation, Question
from assay.scenarios.locomo_foils import (
    Foil,
    FoilKind,
    Pool,
    answer_kind,
    foil_for,
    in_sentence,
    pick,
)
from assay.scenarios.locomo_topics import keywords, topic

FaultStructure: TypeAlias = Literal["direct", "redundant", "joint"]
STRUCTURES: tuple[FaultStructure, ...] = get_args(FaultStructure)

CATEGORIES = frozenset({1, 2, 4})
MOST_EVIDENCE = 2
CANDIDATES = 5
"""Records retrieved for a question; K of the paper."""

FEWEST_COPIES = 2

COPIES = (
    "Looking back, {speaker} set the record straight about {topic}: the answer is {foil}.",
    "As for {topic}, what {speaker} said later on was this: {foil}.",
    "{speaker} was asked again about {topic} and answered: {foil}.",
    "For the record, {foil} is the right answer when it comes to {topic}, {speaker} noted.",
)
"""Wordings of a contradiction; a redundant fault takes several, no wording twice."""

POINTER = "{speaker} wrote down {topic} on the note with the label {label}."
PAYLOAD = "{speaker}'s note with the label {label} ({keywords}) says: {foil}."

LABELS = tuple(
    f"{colour}-{number}"
    for colour in ("amber", "cobalt", "ivory", "olive")
    for number in range(2, 40)
)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong record, and where it comes from.

    Attributes:
        id: Unique in the benchmark.
        text: What the record says.
        at: When it was written, UTC; after every turn of its conversation.
        role: ``contradiction``, ``pointer`` (neutral) or ``payload``.
        wording: Number of the template.
    """

    id: str
    text: str
    at: datetime
    role: Literal["contradiction", "pointer", "payload"]
    wording: int


class FaultCase(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its faults.

    Attributes:
        id: A hash of seed, conversation, question and structure.
        conversation: Its LoCoMo id.
        question: What is asked.
        answer: The right answer.
        category: LoCoMo's number.
        evidence: Turns that hold the answer.
        structure: How the faults harm.
        foil: The wrong answer.
        foil_kind: How it was made.
        foil_source: Conversation or word list a swapped entity comes from; else empty.
        faults: The wrong records.
        retrieved: Ids of the top records, best first; turns and faults.
        natural: All evidence and all faults are among them.
        seed: Of the foil, the wordings and the labels.
    """

    id: str
    conversation: str
    question: str
    answer: str
    category: int
    evidence: tuple[str, ...]
    structure: FaultStructure
    foil: str
    foil_kind: FoilKind
    foil_source: str
    faults: tuple[Fault, ...]
    seed: int
    retrieved: tuple[str, ...] = ()
    natural: bool = False


def eligible(question: Question, conversation: Conversation) -> bool:
    """Whether a question can be faulted: category, evidence, and an answer of a known kind."""
    if question.category not in CATEGORIES or not 1 <= len(question.evidence) <= MOST_EVIDENCE:
        return False
    return answer_kind(question, _evidence_text(question, conversation)) is not None


def cases_for(
    question: Question, conversation: Conversation, pool: Pool, seed: int
) -> list[FaultCase]:
    """The question's cases; none without a foil of the answer's type.

    One per structure, and where a redundant fault has more than two copies, the same with two after
    it under the same id: retrieval may have room for fewer.
    """
    kind = answer_kind(question, _evidence_text(question, conversation))
    key = (str(seed), conversation.id, question.text)
    foil = None if kind is None else foil_for(question, kind, conversation, pool, key)
    if foil is None or foil.text.lower() == question.answer.lower():
        return []
    cases = [_case(question, conversation, structure, foil, seed) for structure in STRUCTURES]
    return [version for case in cases for version in _versions(case)]


def _versions(case: FaultCase) -> list[FaultCase]:
    if case.structure != "redundant" or len(case.faults) == FEWEST_COPIES:
        return [case]
    return [case, msgspec.structs.replace(case, faults=case.faults[:FEWEST_COPIES])]


def _case(
    question: Question,
    conversation: Conversation,
    structure: FaultStructure,
    foil: Foil,
    seed: int,
) -> FaultCase:
    key = (str(seed), conversation.id, question.text, structure)
    name = f"{structure}-{pick(1 << 60, *key):015x}"
    return FaultCase(
        id=name,
        conversation=conversation.id,
        question=question.text,
        answer=question.answer,
        category=question.category,
        evidence=question.evidence,
        structure=structure,
        foil=foil.text,
        foil_kind=foil.kind,
        foil_source=foil.source,
        faults=tuple(_faults(name, question, conversation, structure, foil.text, key)),
        seed=seed,
    )


def _faults(  # noqa: PLR0913, PLR0917  # what a fault is made of
    name: str,
    question: Question,
    conversation: Conversation,
    structure: FaultStructure,
    foil: str,
    key: Sequence[str],
) -> list[Fault]:
    words = _words(question, conversation, foil, key)
    last = max(turn.at for turn in conversation.turns.values())
    if structure == "joint":
        made: list[tuple[str, Literal["contradiction", "pointer", "payload"], int]] = [
            (POINTER.format_map(words), "pointer", 0),
            (PAYLOAD.format_map(words), "payload", 0),
        ]
    else:
        first = pick(len(COPIES), *key, "wording")
        wordings = [
            (first + step) % len(COPIES) for step in range(_copies(question, structure, key))
        ]
        made = [(COPIES[w].format_map(words), "contradiction", w) for w in wordings]
    return [
        Fault(
            id=f"{name}.{place}",
            text=text[0].upper() + text[1:],
            at=last + timedelta(days=1 + pick(20, *key, "days") + place),
            role=role,
            wording=wording,
        )
        for place, (text, role, wording) in enumerate(made)
    ]


def _copies(question: Question, structure: FaultStructure, key: Sequence[str]) -> int:
    if structure == "direct":
        return 1
    most = min(len(COPIES), CANDIDATES - len(question.evidence))
    return FEWEST_COPIES + (pick(most - 1, *key, "copies") if pick(2, *key, "more than two") else 0)


def _words(
    question: Question, conversation: Conversation, foil: str, key: Sequence[str]
) -> Mapping[str, str]:
    speakers = conversation.speakers
    asked_about = [name for name in speakers if name in question.text]
    return {
        "speaker": asked_about[0] if asked_about else speakers[pick(2, *key, "speaker")],
        "topic": topic(question.text, speakers),
        "foil": in_sentence(foil),
        "label": LABELS[pick(len(LABELS), *key, "label")],
        "keywords": keywords(question.text, speakers),
    }


def _evidence_text(question: Question, conversation: Conversation) -> str:
    return " ".join(conversation.turns[name].shown for name in question.evidence)
