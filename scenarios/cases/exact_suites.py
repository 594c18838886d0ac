"""Suites without a model: clearing games and reductions, each checked against what is known of it."""

import numpy as np

from assay.guards.clearing.answers import Answers
from assay.guards.clearing.probes import drive
from assay.guards.coalitions import Coalition, members
from assay.scenarios.games import Answerer, Game
from assay.scenarios.games_methods import own_methods
from assay.scenarios.games_scoring import score
from assay.scenarios.jointcorebench.conditions import EXACT_SEED, Coordinates, coordinates
from assay.scenarios.jointcorebench.exact import measure

CLEARING = "adaptive"
REDUCTION = "core_global"
_SD = 0.1


def check_game(game: Game, seed: int, budget: int | None) -> str:
    """Clear one game; gives what is wrong with what was cleared, empty if nothing is."""
    answers = Answers(kind="deterministic", sd=_SD)
    answerer = Answerer(game, "deterministic", _SD)
    method = own_methods()[CLEARING](game.n, answers, np.random.default_rng(seed))
    found, spending = drive(method, answerer, limit=budget)
    scored = score(found, spending, answerer)
    if scored.recovery and scored.complete and not scored.silent:
        return ""
    stopped = f", stopped by the budget of {budget}" if scored.stopped else ""
    return (
        f"{CLEARING} on a game with {game.structure} harm\n"
        f"  expected: harmful records {_shown(game.harmful)} flagged, and a right answer without "
        "what is withheld\n"
        f"  came: flagged {_shown(found.flagged)}, withheld {_shown(found.cleared)}, the answer "
        f"{'right' if scored.recovery else 'wrong'}\n"
        f"  cost: {scored.evaluations} evaluations{stopped}"
    )


def spread(size: int) -> list[Coordinates]:
    """Conditions of the exact stage, evenly over the whole product."""
    points = list(coordinates())
    return [points[(2 * i + 1) * len(points) // (2 * size)] for i in range(min(size, len(points)))]


def check_reduction(at: Coordinates, budget: int | None) -> str:
    """Reduce one condition; gives what is wrong with what was kept, empty if nothing is."""
    measured = measure(at, base=EXACT_SEED)[REDUCTION]
    if budget is not None and measured.evaluations > budget:
        return (
            f"the budget of {budget} evaluations is too small: {REDUCTION} needs "
            f"{measured.evaluations} on {name_of(at)}"
        )
    if measured.sufficient and measured.least_cost:
        return ""
    return (
        f"{REDUCTION} on {name_of(at)}\n"
        "  expected: a sufficient set of the least cost\n"
        f"  came: {'a dearer' if measured.sufficient else 'no sufficient'} one\n"
        f"  cost: {measured.evaluations} evaluations"
    )


def name_of(at: Coordinates) -> str:
    """A condition's name, for a test."""
    return f"{at.domain}-{at.family}-n{at.n}-s{at.support_size}-h{at.horizon}-b{at.block}"


def _shown(coalition: Coalition) -> str:
    return ", ".join(map(str, members(coalition))) or "none"
