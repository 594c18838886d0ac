"""Figures of the eight families: the usual ones by family, and what abstaining takes."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.guards.values import own_words
from assay.scenarios.metrics import observations
from assay.scenarios.results import MethodResult
from assay.scenarios.runs import Row
from assay.scenarios.schema import Key, Scenario
from assay.scenarios.scorers import Criteria, answer_score

_SELECTION = ("useful_f1", "gold_recall", "bad_rejection", "poison_adoption_poisoned")
_ANSWERED = ("answered", "truncated")


def answer_right(row: Row, question: str, key: Key) -> float:
    """How right the final answer is, in [0, 1].

    Where nothing is to be known, 1 for an answer without a word of its own ("I do not know") and 0
    for any other; else our answer score. A missing answer is 0: the user got none.
    """
    if row.status not in _ANSWERED:
        return 0.0
    if not key.expected:
        return float(not own_words(row.answer, question))
    expected, *aliases = key.expected
    return answer_score(
        row.answer, Criteria(expected_answer=expected, answer_aliases=tuple(aliases))
    )


def by_family(
    scenarios: Sequence[Scenario], results: Mapping[str, MethodResult]
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Family to method to means over its examples.

    ``abstained`` is the share of examples in which nothing was selected, ``answer`` the mean of
    ``answer_right``; the others are those of ``METRICS``, ``None`` where no example has one.
    """
    families = dict.fromkeys(scenario.key.family for scenario in scenarios)
    return {
        family: {
            method: _figures(
                [i for i, s in enumerate(scenarios) if s.key.family == family], scenarios, r
            )
            for method, r in results.items()
        }
        for family in families
    }


def abstention(
    scenarios: Sequence[Scenario], results: Mapping[str, MethodResult]
) -> dict[str, dict[str, float | None]]:
    """Method to how it abstains, as shares of examples.

    ``recall``: nothing selected, where nothing answers; ``false``: nothing selected, where
    something does; ``answers``: answers that claim nothing, where nothing answers.
    """
    nothing = [i for i, s in enumerate(scenarios) if not s.key.useful]
    something = [i for i, s in enumerate(scenarios) if s.key.useful]
    return {
        method: {
            "recall": _mean([float(not result.rows[i].admitted) for i in nothing]),
            "false": _mean([float(not result.rows[i].admitted) for i in something]),
            "answers": _mean([_right(i, scenarios, result) for i in nothing]),
        }
        for method, result in results.items()
    }


def _figures(
    at: Sequence[int], scenarios: Sequence[Scenario], result: MethodResult
) -> dict[str, float | None]:
    seen = observations([result.scores[i] for i in at], [scenarios[i].key for i in at])
    figures: dict[str, float | None] = {"examples": len(at)}
    figures |= {name: _mean(seen[name].values) for name in _SELECTION}
    figures["abstained"] = _mean([float(not result.rows[i].admitted) for i in at])
    figures["answer"] = _mean([_right(i, scenarios, result) for i in at])
    return figures


def _right(i: int, scenarios: Sequence[Scenario], result: MethodResult) -> float:
    return answer_right(result.rows[i], scenarios[i].example.question, scenarios[i].key)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
