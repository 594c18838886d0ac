"""What an answer is worth against a key. Keys are benchmark material: no selector sees one.

``published`` follows the scorer of the Causal-LoCoMo study to the bit; ``answer_score`` is ours.
"""

import re

import msgspec

from assay.scenarios.normalise import holds, words

_PUBLISHED_TOKEN = re.compile(r"[A-Za-z0-9']+")


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """The key of one question, as the Causal-LoCoMo files hold it."""

    expected_answer: str | int | float = ""
    answer_aliases: tuple[str | int | float, ...] = ()
    must_include: tuple[str | int | float, ...] = ()
    must_not_include: tuple[str | int | float, ...] = ()
    max_words: int = 60
    style: str = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every wording of the right answer."""
        return tuple(str(text) for text in (self.expected_answer, *self.answer_aliases))


def published(answer: str, criteria: Criteria) -> float:
    """The study's deterministic score: the mean of lower-case substring checks.

    Returns:
        In [0, 1]. An answer that says nothing still earns .6 on most keys, and ``No`` is found
        in ``enough``; that is the published behaviour, kept as it is.
    """
    text = answer.lower()
    tokens = len(_PUBLISHED_TOKEN.findall(answer))
    components: list[float] = []
    if criteria.must_include:
        found = sum(str(part).lower() in text for part in criteria.must_include)
        components.append(found / len(criteria.must_include))
    if criteria.must_not_include:
        absent = sum(str(part).lower() not in text for part in criteria.must_not_include)
        components.append(absent / len(criteria.must_not_include))
    components.append(1.0 if tokens <= criteria.max_words else criteria.max_words / tokens)
    if criteria.expected_answer != "":
        components.append(float(str(criteria.expected_answer).lower() in text))
    if "concise" in criteria.style:
        components.append(1.0 if tokens <= 90 else 0.5)  # noqa: PLR2004  # the study's limit
    return sum(components) / len(components)


def answer_score(answer: str, criteria: Criteria) -> float:
    """How right an answer is: whole words, aliases, dates and numbers in one notation.

    Returns:
        1 if any accepted wording stands in the answer; else the share of ``must_include`` that
        does; 0 if anything of ``must_not_include`` stands in it and is no part of an accepted
        wording. Abstaining earns 0.
    """
    said = words(answer)
    accepted = [words(text) for text in criteria.accepted]
    forbidden = (words(str(text)) for text in criteria.must_not_include)
    if any(_adopts(said, phrase, accepted) for phrase in forbidden):
        return 0.0
    if any(holds(said, phrase) for phrase in accepted):
        return 1.0
    if not criteria.must_include:
        return 0.0
    found = sum(holds(said, words(str(part))) for part in criteria.must_include)
    return found / len(criteria.must_include)


def _adopts(said: list[str], forbidden: list[str], accepted: list[list[str]]) -> bool:
    if any(holds(phrase, forbidden) for phrase in accepted):
        return False
    return holds(said, forbidden)
