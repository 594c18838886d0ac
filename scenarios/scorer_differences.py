"""Where the published scorer and ours part, and why, over the study's recorded answers.

Only counts and example ids leave this file: the answers and keys are not ours to copy.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

from assay.errors import ScenarioError
from assay.scenarios.loader import malformed, read_jsonl
from assay.scenarios.normalise import holds, words
from assay.scenarios.scorers import Criteria, answer_score, published

Cause: TypeAlias = Literal[
    "same score",
    "says nothing of the answer, yet earned the floor",
    "credited for a part of another word",
    "right in another notation or wording",
    "states a forbidden value",
    "states the right value and a forbidden one",
    "punished for a word the right answer needs",
    "right, but long or listed in part",
    "right in part: shares weighted otherwise",
]

CAUSES: tuple[Cause, ...] = get_args(Cause)
_EPSILON = 1e-9
_FEW = 3


class _Keyed(msgspec.Struct, frozen=True):
    example_id: str
    scoring_criteria: Criteria


class _Deterministic(msgspec.Struct, frozen=True):
    deterministic_score: float


class _Answer(msgspec.Struct, frozen=True):
    example_id: str
    agent_name: str
    final_answer: str
    scores: _Deterministic


class Difference(NamedTuple):
    """One cause: how many answers, and what both scorers give them on average.

    Attributes:
        answers: How many.
        published: Mean published score in [0, 1]; ``None`` without an answer.
        ours: Mean of our score in [0, 1].
        examples: Ids of the first few examples it shows on.
    """

    answers: int
    published: float | None
    ours: float | None
    examples: tuple[str, ...]


class Differences(NamedTuple):
    """The comparison over all answers.

    Attributes:
        answers: How many were scored.
        reproduced: How many recorded scores the published scorer gives to the last bit.
        causes: Every cause in the order in which it is looked for; the first that holds counts.
    """

    answers: int
    reproduced: int
    causes: dict[str, Difference]


class _Scored(NamedTuple):
    example: str
    cause: Cause
    published: float
    ours: float


def scorer_differences(keys: Path, answers: Path) -> Differences:
    """Score every recorded answer both ways.

    Args:
        keys: A Causal-LoCoMo file with the scoring criteria of the examples.
        answers: Recorded answers with their deterministic scores.

    Raises:
        ScenarioError: If a file is missing or malformed, or an answer has no key.
    """
    criteria = {row.example_id: row.scoring_criteria for _, row in read_jsonl(keys, _Keyed)}
    scored: list[_Scored] = []
    reproduced = 0
    for line, row in read_jsonl(answers, _Answer):
        if row.example_id not in criteria:
            raise _without_key(answers, line, row.example_id, keys)
        key = criteria[row.example_id]
        theirs, ours = published(row.final_answer, key), answer_score(row.final_answer, key)
        reproduced += theirs == row.scores.deterministic_score
        scored.append(_Scored(row.example_id, cause_of(row.final_answer, key), theirs, ours))
    return Differences(len(scored), reproduced, {cause: _of(cause, scored) for cause in CAUSES})


def cause_of(answer: str, criteria: Criteria) -> Cause:
    """Why the two scorers differ on an answer; the first cause that holds."""
    theirs, ours = published(answer, criteria), answer_score(answer, criteria)
    if abs(theirs - ours) < _EPSILON:
        return "same score"
    if ours >= 1.0:
        return _why_less(answer, criteria)
    if _states_forbidden(answer, criteria):
        said = words(answer)
        right = any(holds(said, words(text)) for text in criteria.accepted)
        return "states the right value and a forbidden one" if right else "states a forbidden value"
    if _credited_inside_a_word(answer, criteria):
        return "credited for a part of another word"
    if ours == 0.0:
        return "says nothing of the answer, yet earned the floor"
    return "right in part: shares weighted otherwise"


def _why_less(answer: str, criteria: Criteria) -> Cause:
    if any(str(part).lower() in answer.lower() for part in criteria.must_not_include):
        return "punished for a word the right answer needs"
    if str(criteria.expected_answer).lower() not in answer.lower():
        return "right in another notation or wording"
    return "right, but long or listed in part"


def _states_forbidden(answer: str, criteria: Criteria) -> bool:
    said = words(answer)
    return answer_score(answer, criteria) == 0.0 and any(
        holds(said, words(str(part))) for part in criteria.must_not_include
    )


def _credited_inside_a_word(answer: str, criteria: Criteria) -> bool:
    lowered = answer.lower()
    wanted = [str(part).lower() for part in (*criteria.must_include, criteria.expected_answer)]
    return any(
        part in lowered and not re.search(rf"(?<!\w){re.escape(part)}(?!\w)", lowered)
        for part in wanted
        if part
    )


def _of(cause: Cause, scored: Sequence[_Scored]) -> Difference:
    own = [one for one in scored if one.cause == cause]
    examples = tuple(dict.fromkeys(one.example for one in own))[:_FEW]
    if not own:
        return Difference(0, None, None, ())
    return Difference(
        len(own), fmean(one.published for one in own), fmean(one.ours for one in own), examples
    )


def _without_key(path: Path, line: int, example: str, keys: Path) -> ScenarioError:
    expected = f"expected an example of {str(keys)!r}, got {example!r}"
    return malformed(path, line, expected)
