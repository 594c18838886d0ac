"""Wrong answers of the right type: shifted numbers, moved dates, swapped entities.

Every choice is a function of a hash of seed, conversation and question, so one seed gives one foil.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from assay.scenarios.locomo_data import Conversation, Question
from assay.scenarios.locomo_words import LEXICON, lexicon_types, normal

AnswerKind: TypeAlias = Literal["date", "number", "span"]
FoilKind: TypeAlias = Literal["date", "number", "entity", "phrase"]

MONTHS: Sequence[str] = (
    "January February March April May June July August September October November December"
).split()
_MONTH = "|".join(MONTHS)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(\s?)({_MONTH})(,?\s?)(\d{{4}})", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b({_MONTH})(\s)(\d{{1,2}})(,?\s?)(\d{{4}})", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"\b({_MONTH})(,?\s?)(\d{{4}})", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19[5-9]\d|20[0-3]\d)\b")

WORDS: Sequence[str] = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_NUMBER = re.compile(rf"(?<![\w$.])(\d{{1,4}}|{'|'.join(WORDS[1:])})(?![\w.,]*\d)\b", re.IGNORECASE)

_LONGEST_DATE = 5
"""Most words of a date that names a year only."""

_ABOUT = frozenset({"about", "around", "nearly", "over", "almost", "for", "in"})

_LONGEST_SPAN = 8
"""Most words of an entity that is swapped."""


class Foil(NamedTuple):
    """A wrong answer.

    Attributes:
        text: What the fault claims.
        kind: How it was made.
        source: For a swapped entity, the conversation or the word list it comes from; else empty.
    """

    text: str
    kind: FoilKind
    source: str = ""


class Entity(NamedTuple):
    """An answer that may replace another one of its type."""

    text: str
    conversation: str


Pool: TypeAlias = Mapping[str, Sequence[Entity]]
"""Entities by type."""


def pick(limit: int, *parts: str) -> int:
    """A number in ``range(limit)`` from SHA-256 of the parts, the same on every machine."""
    digest = sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") % limit


def answer_kind(question: Question, evidence: str) -> AnswerKind | None:
    """Whether an answer is a date, a number or a span of its evidence; ``None``: none of them."""
    answer = question.answer
    if not answer:
        return None
    if _has_date(answer):
        return "date"
    if _is_number(answer):
        return "number"
    words = len(answer.split())
    if (
        words <= _LONGEST_SPAN
        and normal(answer)
        and f" {normal(answer)} " in f" {normal(evidence)} "
    ):
        return "span"
    return None


def foil_for(
    question: Question, kind: AnswerKind, conversation: Conversation, pool: Pool, key: Sequence[str]
) -> Foil | None:
    """A wrong answer of the same type; ``None`` if there is no candidate for one.

    Args:
        question: What it must answer wrongly.
        kind: From ``answer_kind``.
        conversation: Whose text must not contain a swapped entity.
        pool: Entities of all conversations, from ``entity_pool``.
        key: Parts of the hash that chooses.
    """
    if kind == "date":
        return Foil(moved_date(question.answer, *key), "date")
    if kind == "number":
        return Foil(shifted_number(question.answer, *key), "number")
    return _swapped(question, conversation, pool, key)


def moved_date(text: str, *key: str) -> str:
    """The first date of a text moved by one to eight weeks, or its month or year, notation kept.

    A weekday that counts from the date stays right, because whole weeks are added.
    """
    weeks = timedelta(days=7 * (1 + pick(8, *key, "weeks")))
    if found := _DAY_MONTH.search(text):
        day, gap, month, comma, year = found.groups()
        moved = _date(int(year), month, int(day)) + weeks
        new = f"{moved.day}{gap or ' '}{MONTHS[moved.month - 1]}{comma or ' '}{moved.year}"
        return text[: found.start()] + new + text[found.end() :]
    if found := _MONTH_DAY.search(text):
        month, gap, day, comma, year = found.groups()
        moved = _date(int(year), month, int(day)) + weeks
        new = f"{MONTHS[moved.month - 1]}{gap}{moved.day}{comma}{moved.year}"
        return text[: found.start()] + new + text[found.end() :]
    if found := _MONTH_YEAR.search(text):
        month, comma, year = found.groups()
        later = _month(month) + 1 + pick(6, *key, "months")
        new = f"{MONTHS[(later - 1) % 12]}{comma}{int(year) + (later - 1) // 12}"
        return text[: found.start()] + new + text[found.end() :]
    years = (-2, -1, 1)[pick(3, *key, "years")]
    return _YEAR.sub(lambda match: str(int(match[0]) + years), text, count=1)


def shifted_number(text: str, *key: str) -> str:
    """The first number of a text made larger by one to three; words stay words, digits digits.

    Larger only, so that a plural stays one.
    """
    found = _NUMBER.search(text)
    if found is None:
        raise ValueError(f"no number in {text!r}")
    old, step = found[1], 1 + pick(3, *key, "number")
    if old.isdigit():
        new = str(int(old) + step * max(1, 10 ** (len(old) - 2)))
    else:
        new = WORDS[min(WORDS.index(old.lower()) + step, len(WORDS) - 1)]
        new = new.capitalize() if old[0].isupper() else new
    return text[: found.start()] + new + text[found.end() :]


def entity_pool(conversations: Sequence[Conversation]) -> Pool:
    """Every span answer of every conversation, by the type its question asks for."""
    pool: dict[str, dict[str, Entity]] = {}
    for conversation in conversations:
        for question in conversation.questions:
            evidence = " ".join(conversation.turns[i].shown for i in question.evidence)
            if answer_kind(question, evidence) == "span":
                entity = Entity(question.answer, conversation.id)
                for kind in entity_types(question):
                    pool.setdefault(kind, {}).setdefault(normal(question.answer), entity)
    return {kind: tuple(found.values()) for kind, found in pool.items()}


def entity_types(question: Question) -> tuple[str, ...]:
    """Types an answer belongs to, the narrowest first; a type that starts with ``~`` is a form only.

    What the question names (``which city``), else what is done with it (``what ... paint``), else,
    for what-questions alone, the form of the answer.
    """
    shape = _shape(question.answer)
    words = [word.strip("?,").lower() for word in question.text.split()]
    lead, second = words[0], words[1] if len(words) > 1 else ""
    if lead in {"what", "which"} and second in _OF_A_SORT and len(words) > 3:  # noqa: PLR2004  # kind of X
        return (words[3].removesuffix("s"),)
    if lead in {"what", "which"} and second not in _AUXILIARIES:
        return (second.removesuffix("s"),)
    if lead in {"where", "who"}:
        return (f"{lead}|{shape}",)
    verbs = [word for word in words[2:] if word in _TELLING]
    form = (f"~what|{shape}",) if lead == "what" else ()
    return (*(f"{lead} {verb}|{shape}" for verb in verbs[:1]), *form)


_OF_A_SORT = frozenset({"kind", "type", "sort"})
_AUXILIARIES = frozenset(
    "did does do is are was were has have had can could will would should".split()
)

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_SMALL = frozenset(
    "a an the in on at few last first mid late early around about few two three four five six seven "
    "eight nine ten week weekend end since for when during".split()
)
"""Words that have a capital only at the beginning of a line."""

_TELLING = frozenset(
    "adopt buy call called cook create describe dish do eat enjoy favorite feel felt find game get "
    "give go help instrument like love make made movie name named offer paint play practice read "
    "receive recommend say see share show start study suggest teach travel try use visit volunteer "
    "want watch win work write".split()
)
"""Words of a question that say what sort of answer fits."""


def in_sentence(answer: str) -> str:
    """An answer as it stands inside a sentence: no full stop, no capital that only began a line."""
    text = answer.strip().rstrip(".")
    first, _, rest = text.partition(" ")
    is_title = first == "The" and rest[:1].isupper() and not rest.startswith(_WEEKDAYS)
    return text if is_title or first.lower() not in _SMALL else text[0].lower() + text[1:]


def _swapped(
    question: Question, conversation: Conversation, pool: Pool, key: Sequence[str]
) -> Foil | None:
    said = f" {normal(' '.join(turn.shown for turn in conversation.turns.values()))} "
    for name in lexicon_types(question.answer):
        fitting = [word for word in LEXICON[name] if f" {normal(word)} " not in said]
        if fitting:
            chosen = fitting[pick(len(fitting), *key, "word")]
            return Foil(_cased(chosen, question.answer), "entity", f"list of {name}")
    for kind in entity_types(question):
        others = [
            entity
            for entity in pool.get(kind, ())
            if entity.conversation != conversation.id and f" {normal(entity.text)} " not in said
        ]
        if others:
            entity = others[pick(len(others), *key, "entity")]
            form: FoilKind = "phrase" if kind.startswith("~") else "entity"
            return Foil(_cased(entity.text, question.answer), form, entity.conversation)
    return None


def _shape(answer: str) -> str:
    words = answer.strip(" .\"'").split()
    first = words[0].lower()
    length = "one" if len(words) == 1 else "few" if len(words) <= 3 else "many"  # noqa: PLR2004
    if first.endswith("ing"):
        return f"doing-{length}"
    if first in {"a", "an", "the", "her", "his", "their", "to", "in", "at", "for", "by", "with"}:
        return f"{'the' if first in {'a', 'an', 'the'} else first}-{length}"
    if all(word[0].isupper() for word in words if len(word) > 3):  # noqa: PLR2004  # small words
        return f"Name-{length}"
    return f"plain{'-s' if words[-1].endswith('s') else ''}-{length}"


def _cased(text: str, like: str) -> str:
    text = text.strip().rstrip(".")
    if like[:1].islower() and text[:1].isupper() and not _shape(text).startswith("Name"):
        return text[:1].lower() + text[1:]
    return text


def _has_date(answer: str) -> bool:
    return any(p.search(answer) for p in (_DAY_MONTH, _MONTH_DAY, _MONTH_YEAR)) or bool(
        _YEAR.search(answer) and len(answer.split()) <= _LONGEST_DATE
    )


def _is_number(answer: str) -> bool:
    found = _NUMBER.search(answer)
    if found is None or len(answer.split()) > 4:  # noqa: PLR2004  # "40 points", not a sentence
        return False
    before = answer[: found.start()].lower().split()
    if any(word not in _ABOUT for word in before):
        return False
    alone = found[0] == answer.strip(" .")
    return alone or found[0].lower() not in {"1", "one"}


def _date(year: int, month: str, day: int) -> date:
    return date(year, _month(month), day)


def _month(name: str) -> int:
    return MONTHS.index(name.capitalize()) + 1
