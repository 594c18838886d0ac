"""What a text says, denied; and the same said in other words."""

import re
from typing import Final

from assay.guards.perturb_dates import rewrite_edits
from assay.guards.perturb_edits import Edit, capitalised_like

_AUXILIARY: Final = re.compile(
    r"(?<![\w'\u2019-])(?:is|are|was|were|will|would|can|could|should|may|might|must)"
    r"(?![\w'\u2019-])"
)
_DENIAL: Final = re.compile(r"(?<![\w'\u2019-])(?:not|never)\s+(?=\w)", re.IGNORECASE)
_CONTRACTED: Final = re.compile(
    r"(?<![\w'\u2019-])(is|are|was|were|has|have|had|would|could|should|does|do|did)n['\u2019]t(?![\w'\u2019-])",
    re.IGNORECASE,
)
_IRREGULAR: Final = """has have had does did went saw said told took got gave made came found bought brought taught thought felt kept left lost met
    ran sang sat sold sent spent spoke stood swam wore won wrote began broke built chose drew drove ate fell flew forgot
    grew heard held hid knew led let paid put read rode rose set shared showed slept woke hiked became""".split()
_VERB: Final = re.compile(
    r"(?:[A-Z][\w-]*|(?<![\w'\u2019-])(?:I|he|she|it|we|they|He|She|It|We|They|you|You))"
    r"(?:\s+(?:also|often|currently|recently|really|mostly|always|usually|first|once|still|now))?"
    rf"\s+(?P<verb>(?:{'|'.join(_IRREGULAR)}|[a-z]{{2,}}ed|[a-z]{{2,}}[^s\W]s))(?![\w'\u2019-])"
)
_OTHER_WORDS: Final = {
    "likes": "is fond of",
    "loves": "adores",
    "enjoys": "takes pleasure in",
    "bought": "purchased",
    "started": "began",
    "began": "started",
    "finished": "completed",
    "got": "received",
    "often": "frequently",
    "currently": "at present",
    "kids": "children",
    "children": "kids",
    "because": "since",
    "about": "regarding",
    "many": "a lot of",
    "big": "large",
    "large": "big",
    "job": "post",
    "helps": "assists",
    "wants": "would like",
    "needs": "requires",
    "plans": "intends",
    "visited": "paid a visit to",
    "recently": "lately",
    "also": "too",
}
_WORD: Final = re.compile(rf"(?<![\w'\u2019-])(?:{'|'.join(_OTHER_WORDS)})(?![\w'\u2019-])")


def negation_edits(text: str) -> list[Edit]:
    """The text's first statement turned round: a denial goes, or one comes in.

    ``is`` becomes ``is not``, ``went`` becomes ``never went``, and ``isn't`` becomes ``is``; where no verb
    is recognised, the whole text is said not to be true.
    """
    if contracted := _CONTRACTED.search(text):
        return [Edit(*contracted.span(), contracted[1])]
    if denial := _DENIAL.search(text):
        return [Edit(*denial.span(), "")]
    verb, auxiliary = _VERB.search(text), _AUXILIARY.search(text)
    if auxiliary and (not verb or auxiliary.start() < verb.start("verb")):
        return [Edit(auxiliary.end(), auxiliary.end(), " not")]
    if verb:
        return [Edit(verb.start("verb"), verb.start("verb"), "never ")]
    return [Edit(0, 0, "It is not true that: ")]


def paraphrase_edits(text: str) -> list[Edit]:
    """The same in other words: common words, contractions written out, dates in another notation."""
    edits = [
        Edit(*match.span(), capitalised_like(_OTHER_WORDS[match.group().lower()], match.group()))
        for match in _WORD.finditer(text)
    ]
    edits += [Edit(*match.span(), f"{match[1]} not") for match in _CONTRACTED.finditer(text)]
    return sorted([*edits, *rewrite_edits(text)])
