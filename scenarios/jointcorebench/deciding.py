"""From the likelihoods of the allowed labels to a decision and its terminal step."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from assay.errors import ModelUnavailable
from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask, Experimenter, Outcome, TokenLogprob
from assay.scenarios.jointcorebench.prompting import Action, Form

Scoring: TypeAlias = Literal["teacher forcing", "first token"]
"""How labels are scored.

``teacher forcing``: mean log-probability of all tokens of the label. ``first token``: from the
alternatives an endpoint reports for the first token of its answer.
"""

Trajectory: TypeAlias = Literal["EXECUTE,COMMIT", "HOLD,HALT", "INVALID"]
"""A decision and the terminal step that follows it; ``INVALID`` equals nothing, not even itself."""

_FOLLOWED: Mapping[Action, Trajectory] = {"EXECUTE": "EXECUTE,COMMIT", "HOLD": "HOLD,HALT"}


def trajectory_of(action: Action) -> Trajectory:
    """An action with its terminal step: COMMIT after EXECUTE, HALT after HOLD."""
    return _FOLLOWED[action]


def is_same(one: Trajectory, other: Trajectory) -> bool:
    """Whether two trajectories are the same valid one."""
    return one == other != "INVALID"


async def decide(
    laboratory: Experimenter, retained: Coalition, form: Form, scoring: Scoring
) -> Trajectory:
    """What the model does with the retained records: the likeliest label's action.

    ``INVALID`` where a label could not be scored or two are equally likely.

    Raises:
        ModelUnavailable: If the model could not be reached: that is no answer of the model.
        ScenarioError: If the prompt is too long.
    """
    labels = list(form.actions)
    if scoring == "teacher forcing":
        asks = [Ask(retained, answer=label) for label in labels]
        scores = [_likelihood(o) for o in await laboratory.outcomes(asks)]
    else:
        [outcome] = await laboratory.outcomes([Ask(retained)])
        scores = first_token_scores(_checked(outcome).logprobs or (), labels)
    best = max(scores)
    if any(map(math.isnan, scores)) or scores.count(best) > 1:
        return "INVALID"
    return trajectory_of(form.actions[labels[scores.index(best)]])


def first_token_scores(tokens: Sequence[TokenLogprob], labels: Sequence[str]) -> list[float]:
    """Log-probability that the answer begins like each label, case and space ignored.

    A token counts for a label it is a beginning of, unless it begins another label too. A label
    that none of the reported alternatives begins gets minus infinity; NaN for all where nothing was
    reported.
    """
    if not tokens:
        return [math.nan] * len(labels)
    first = tokens[0]
    told = dict(first.top) or {first.token: first.logprob}
    mass = dict.fromkeys(labels, 0.0)
    for token, logprob in told.items():
        begun = [label for label in labels if _begins(token, label)]
        if len(begun) == 1:
            mass[begun[0]] += math.exp(logprob)
    return [math.log(p) if p > 0 else -math.inf for p in mass.values()]


def _begins(token: str, label: str) -> bool:
    word = token.strip().upper()
    return bool(word) and label.startswith(word)


def _likelihood(outcome: Outcome) -> float:
    value = _checked(outcome).log_likelihood
    return math.nan if value is None else value


def _checked(outcome: Outcome) -> Outcome:
    if outcome.status == "unavailable":
        raise ModelUnavailable(outcome.detail)
    return outcome
