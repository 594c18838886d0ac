"""Words of a text, normalised the same way for records, questions and archived turns."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_POSSESSIVE: Final = re.compile(r"'s?$")
_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u0060": "'", "\u00b4": "'"})
_SHORT: Final = 3
_INVISIBLE: Final = ("Cf", "Cc")

FUNCTION_WORDS: Final = frozenset(
    (
        "a an the this that these those there here it its he him his she her hers they them their "
        "theirs we us our ours i me my mine you your yours who whom whose which what when where "
        "why how and or but nor so if then than as of at by for from in into on onto to with "
        "without within about over under up down out off again during is am are was were be been "
        "being do does did doing done have has had having will would shall should can could may "
        "might must not no yes also too very just only both either each any all some such own "
        "same other others s t don didn doesn isn wasn aren weren won wouldn couldn shouldn hasn "
        "haven hadn ain let get got ve ll re d m because while since after before until said says "
        "say told mention mentioned mentions more most state states stated indicate indicates "
        "indicated indicating therefore thus hence according conversation conversations chat "
        "timestamp timestamped dated i've i'm i'll i'd it's that's he's she's they're we're you're "
        "there's we've they've "
    ).split()
)


_SAME: Final = {
    **dict.fromkeys(("mom", "moms", "mum", "mommy", "mama", "momma"), "mother"),
    **dict.fromkeys(("dad", "dads", "daddy", "papa"), "father"),
    **dict.fromkeys(("grandma", "granny", "gran", "nana"), "grandmother"),
    **dict.fromkeys(("grandpa", "granddad"), "grandfather"),
    "auntie": "aunt",
    "bro": "brother",
    "sis": "sister",
    "kids": "children",
    "kid": "child",
    "pup": "puppy",
    "pups": "puppies",
    "bike": "bicycle",
    "pic": "picture",
    "pics": "pictures",
    "photo": "picture",
    "photos": "pictures",
    "fave": "favorite",
    "favourite": "favorite",
    "usa": "us",
    "uk": "britain",
    "tv": "television",
    "went": "go",
    "gone": "go",
    "goes": "go",
    "bought": "buy",
    "took": "take",
    "taken": "take",
    "gave": "give",
    "given": "give",
    "made": "make",
    "saw": "see",
    "seen": "see",
    "ran": "run",
    "won": "win",
    "wrote": "write",
    "written": "write",
    "began": "begin",
    "begun": "begin",
    "met": "meet",
    "drove": "drive",
    "bore": "bear",
    "came": "come",
    "found": "find",
    "lost": "lose",
    "sold": "sell",
    "taught": "teach",
    "grew": "grow",
    "left": "leave",
    "kept": "keep",
    "felt": "feel",
    "thought": "think",
    "ate": "eat",
    "eaten": "eat",
    "sang": "sing",
    "swam": "swim",
    "spoke": "speak",
    "spoken": "speak",
    "moved": "move",
    "built": "build",
    "held": "hold",
}
"""Everyday words for one thing, and irregular pasts, under one word."""

_DIGITS: Final = {
    name: str(number)
    for number, name in enumerate(
        (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen seventeen eighteen nineteen twenty"
        ).split()
    )
} | {"once": "1", "twice": "2", "couple": "2"}


def fold(text: str) -> str:
    """``text`` in NFKC lower case, one kind of apostrophe, without invisible characters.

    Line breaks become spaces.
    """
    if text.isascii() and text.isprintable():
        return text.translate(_APOSTROPHES).casefold()
    visible = (
        " " if c in "\n\r\t" else c
        for c in unicodedata.normalize("NFKC", text.translate(_APOSTROPHES))
        if c in "\n\r\t" or unicodedata.category(c) not in _INVISIBLE
    )
    return "".join(visible).casefold()


def words(text: str) -> list[str]:
    """Words of ``text`` in order, folded; letters and digits of any script, possessives cut."""
    return [_POSSESSIVE.sub("", w) for w in _WORD.findall(fold(text))]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without common English endings, so that ``painted`` meets ``painting``.

    Digits and words of up to three letters stay as they are; number words become digits.
    """
    word = _DIGITS.get(word, _SAME.get(word, word))
    if len(word) <= _SHORT or not word.isalpha():
        return word
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORT:
            return _undouble(word[: len(word) - len(ending)] + replacement)
    return word


_ENDINGS: Final = (
    ("iness", "y"),
    ("ies", "y"),
    ("ied", "y"),
    ("ings", ""),
    ("ing", ""),
    ("ers", ""),
    ("ed", ""),
    ("er", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)


def _undouble(root: str) -> str:
    """``runn`` to ``run``, ``lov``/``love`` alike; ``ll``, ``ss``, ``ee`` stay."""
    if len(root) > _SHORT and root[-1] == root[-2] and root[-1] not in "lseo":
        return root[:-1]
    return root.removesuffix("e") if len(root) > _SHORT else root


def stems(text: str) -> list[str]:
    """Stemmed content words of ``text`` in order; see ``terms``."""
    return terms(words(text))


def terms(spoken: Iterable[str]) -> list[str]:
    """Stems of the content words among ``spoken``, and each number again with what it counts.

    "three dogs for two years" gives ``3, dog, 3 dog, 2, year, 2 year``: the pairs tell apart two
    texts that hold the same numbers of different things.
    """
    found: list[str] = []
    number = ""
    for word in spoken:
        if word in FUNCTION_WORDS:
            continue
        root = stem(word)
        found.append(root)
        if number:
            found.append(f"{number} {root}")
        number = root if root.isdecimal() else ""
    return found


def content(texts: Iterable[str]) -> frozenset[str]:
    """Distinct content stems of several texts."""
    return frozenset(s for text in texts for s in stems(text))
