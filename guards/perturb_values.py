"""Values a text states, swapped for others of their kind."""

import re
from typing import Final

from assay.guards.perturb_dates import date_spans
from assay.guards.perturb_edits import Edit, capitalised_like

_KINDS: Final = (
    "two three four five six seven eight nine ten eleven twelve",
    "red blue green yellow purple orange pink black white brown grey",
    "mother father sister brother daughter son aunt uncle cousin grandmother grandfather",
    "mom dad wife husband",
    "dog cat rabbit horse turtle parrot hamster goldfish",
    "dogs cats rabbits horses turtles parrots hamsters",
    "breakfast lunch dinner",
    "morning afternoon evening night",
    "spring summer autumn winter",
    "tea coffee juice milk water wine beer",
    "piano guitar violin drums flute cello trumpet saxophone",
    "tennis football basketball hockey golf baseball rugby volleyball",
    "running swimming cycling hiking skiing yoga boxing climbing",
    "painting pottery photography knitting woodworking drawing sculpting",
    "book film song play poem game podcast",
    "beach mountain forest lake desert river island park",
    "school university hospital office library museum church shop",
    "car bike train bus plane boat motorcycle",
    "doctor teacher lawyer engineer nurse artist writer chef",
    "hour day week month year",
    "hours days weeks months years",
    "big small",
    "happy sad",
    "likes dislikes",
    "loves hates",
    "always rarely",
    "before after",
    "more less",
)
_NEXT: Final = {
    word: others[(i + 1) % len(others)]
    for others in (kind.split() for kind in _KINDS)
    for i, word in enumerate(others)
}
_WORD: Final = re.compile(r"(?<![\w'\u2019-])[^\W\d_]+(?![\w'\u2019]|-\w)")
_NUMBER: Final = re.compile(r"(?<![\w.,:/-])\d{1,6}(?:,\d{3})*(?![\w:/]|[.,]\d|-\w)")
_ARTICLE: Final = re.compile(r"(?<![\w'\u2019-])(an?) $", re.IGNORECASE)
_ARTICLE_REACH: Final = 4
_MORE: Final = 3


def value_edits(text: str) -> list[Edit]:
    """Each number and each word of a known kind becomes another of its kind; dates stay.

    A word with a capital is taken for part of a name, unless the text begins with it and goes on
    without another.
    """
    dates = date_spans(text)
    edits = [
        _swapped(text, match)
        for match in _WORD.finditer(text)
        if match.group().lower() in _NEXT and not _may_be_a_name(text, match)
    ]
    edits += [
        Edit(*match.span(), _another_number(match.group()))
        for match in _NUMBER.finditer(text)
        if not any(start < match.end() and match.start() < stop for start, stop in dates)
    ]
    return sorted(edits)


def _may_be_a_name(text: str, match: re.Match[str]) -> bool:
    if match.group().islower():
        return False
    return match.start() > 0 or text[match.end() + 1 : match.end() + 2].isupper()


def _swapped(text: str, match: re.Match[str]) -> Edit:
    """The edit of one word, and of the article before it where the new word wants another."""
    new = capitalised_like(_NEXT[match.group().lower()], match.group())
    article = _ARTICLE.search(text[max(0, match.start() - _ARTICLE_REACH) : match.start()])
    if article is None:
        return Edit(*match.span(), new)
    fitting = capitalised_like("an" if new[0].lower() in "aeiou" else "a", article[1])
    return Edit(match.start() - len(article[0]), match.end(), f"{fitting} {new}")


def _another_number(number: str) -> str:
    more = int(number.replace(",", "")) + _MORE
    return f"{more:,}" if "," in number else str(more)
