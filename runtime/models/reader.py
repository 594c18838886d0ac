"""The plain reader: from the records in a prompt to the one that bears most on the question."""

import html
import re
from collections.abc import Iterator

from assay.guards.protocols import Request

UNKNOWN = "I do not know"

_STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before but by can could did do does
    doing for from had has have he her hers him his how i if in into is it its just like me my no
    not now of on or our please she should so some than that the their them then there these they
    this those to up us was we were what when where which who whose whom why will with would you
    your yours tell know say said think""".split()
)
_SHORTEST_STEM = 3
_TAG = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_PARAGRAPH = re.compile(r"\n+")


def read(request: Request) -> str:
    """The record that shares most content words with the question; on a tie the later one."""
    *before, asked = _split(request)
    question = content_words(asked)
    best, shared = UNKNOWN, 0
    for text in _statements(before):
        score = len(question & content_words(text))
        if score >= max(shared, 1):
            best, shared = text, score
    return best


def content_words(text: str) -> frozenset[str]:
    """Words that carry meaning, without case and plain endings."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(_stem(word) for word in words if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def _split(request: Request) -> list[str]:
    texts = [message.content for message in request.messages]
    return texts or [""]


def _statements(texts: list[str]) -> Iterator[str]:
    for text in texts:
        for line in _PARAGRAPH.split(text):
            plain = html.unescape(_TAG.sub(" ", line)).strip(" \t-*")
            if plain:
                yield plain
