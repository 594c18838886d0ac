"""What in a user's message is a statement worth remembering. Pure; rules, no model.

Questions, requests and small talk are not. The rules look at the words, so they work without case
and punctuation, as people type in a chat.
"""

import re

MOST = 8
"""Statements one message gives; further ones are joined to the last, so none is lost."""

LONGEST = 1000
"""Characters of one statement; the whole message is in the archive."""

_CUT = " [cut]"
_LEAST_WORDS = 3
_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026\u3002\uff01\uff1f])(?:\s+|(?<=[\u3002\uff01\uff1f]))|\n+"
)
_ABBREVIATION = re.compile(
    r"\b(?:mr|mrs|ms|dr|st|prof|no|vs|approx|e\.g|i\.e|[a-z])\.$", re.IGNORECASE
)
_WORD = re.compile(r"[\w'\u2019-]+")
_KEEP = re.compile(
    r"^(?:please\s+)?(?:remember|note|keep in mind|don't forget|do not forget)"
    r"(?:\s+that\b|\s*[:,])?\s*(?=\S+\s+\S)",
    re.IGNORECASE,
)
_CONTINUES = frozenset(
    "it he she they that this these those there his her their its then also but and so because".split()
)
_QUESTION_WORDS = frozenset("what who whom whose which where when why how".split())
_VERBS_FIRST = frozenset(
    """is are am was were do does did can could would will should shall may might have has had isn't
    aren't don't doesn't didn't can't couldn't wouldn't won't what's who's where's when's how's""".split()
)
_SUBJECTS = frozenset(
    "i you we they he she it this that these those there the a an my your our his her their any".split()
)
_REQUESTS = frozenset(
    """tell list show give explain write help find search summarize summarise translate describe
    suggest recommend let's lets guess imagine pretend answer repeat continue compare draft say make
    ignore forget stop try""".split()
)
_SMALL_TALK = frozenset(
    """hi hello hey there thanks thank you so much very a lot ok okay great cool nice good morning
    evening afternoon night day bye goodbye see later yes no yeah yep nope sure please sorry how are
    fine i am i'm im well wow haha lol welcome right alright perfect it that is it's that's all got
    understood exactly to too have meet for the help hm hmm oh ah and""".split()
)


def statements(text: str) -> list[str]:
    """The statements of a message, in order, each readable by itself.

    A sentence that begins with a word such as *it* or *because* stays with the one before.
    """
    found: list[str] = []
    joinable = False
    for sentence in _sentences(text):
        kept = _KEEP.sub("", sentence) if _KEEP.match(sentence) else sentence
        asked = kept == sentence
        if asked and not _is_statement(kept):
            joinable = False
            continue
        if found and ((joinable and _continues(kept)) or len(found) == MOST):
            found[-1] = f"{found[-1]} {kept}"
        else:
            found.append(kept)
        joinable = True
    return [_short(statement) for statement in found]


def same_words(text: str) -> str:
    """A text without case, punctuation and spacing: equal for two tellings of one statement."""
    return " ".join(_WORD.findall(text.casefold()))


def _sentences(text: str) -> list[str]:
    sentences: list[str] = []
    for piece in _SENTENCE_END.split(text):
        part = " ".join(piece.split())
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] = f"{sentences[-1]} {part}"
        elif part:
            sentences.append(part)
    return sentences


def _is_statement(sentence: str) -> bool:
    words = [word.replace("\u2019", "'") for word in _WORD.findall(sentence.casefold())]
    if sentence.endswith(("?", "\uff1f")) or set(words) <= _SMALL_TALK:
        return False
    while words and words[0] in {"please", "and", "so", "ok", "okay", "well", "now", "hey", "hi"}:
        words = words[1:]
    if not words or words[0] in _REQUESTS or _asks(words, punctuated=sentence.endswith(".")):
        return False
    return (
        len(words) >= _LEAST_WORDS
        or words[0] in {"i'm", "im", "it's", "my"}
        or not words[0].isascii()
    )


def _asks(words: list[str], *, punctuated: bool) -> bool:
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in _QUESTION_WORDS:
        return not punctuated and (second in _VERBS_FIRST or first in {"what", "who", "which"})
    return first in _VERBS_FIRST and (second in _SUBJECTS or first.endswith("'s"))


def _continues(sentence: str) -> bool:
    first = _WORD.match(sentence.casefold())
    return first is not None and first.group().partition("'")[0] in _CONTINUES


def _short(statement: str) -> str:
    if len(statement) <= LONGEST:
        return statement
    return statement[: LONGEST - len(_CUT)].rstrip() + _CUT
