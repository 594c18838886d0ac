"""The plain reader: from the records in a prompt to the one that bears most on the question."""

import html
import re

from assay.guards.protocols import Request

UNKNOWN = "I do not know"

_STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before but by can could did do does
    doing for from had has have he her hers him his how i if in into is it its just like me my no
    not now of on or our please she should so some than that the their them then there these they
    this those to up us was we were what when where which who whose whom why will with would you
    your yours tell know say said think""".split()
)
_RECORD = re.compile(r"<(\w+)(?: [^<>]*)?>(.*?)</\1>", re.DOTALL)
_SHORTEST_STEM = 3


def read(request: Request) -> str:
    """The record that shares most content words with the question; on a tie the last one.

    Records are what stands between two equal tags (``<k3fa9q 2026-03-01>...</k3fa9q>``), as in
    every prompt Assay makes; the question is what follows
    them in the last user message.
    """
    question = content_words(question_of(request))
    best, most = UNKNOWN, 1
    for text in shown_records(request):
        shared = len(question & content_words(text))
        if shared >= most:
            best, most = text, shared
    return best


def question_of(request: Request) -> str:
    """What the last user message says after the records that may stand in it; empty without one."""
    texts = [message.content for message in request.messages if message.role == "user"]
    return _RECORD.split(texts[-1])[-1] if texts else ""


def shown_records(request: Request) -> list[str]:
    """The texts of the records in the prompt, in its order, unescaped."""
    return [
        html.unescape(found.group(2)).strip()
        for message in request.messages
        for found in _RECORD.finditer(message.content)
    ]


def content_words(text: str) -> frozenset[str]:
    """Words that carry meaning, without case and plain endings."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(_stem(word) for word in words if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
