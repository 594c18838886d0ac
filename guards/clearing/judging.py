"""From a live clearing to judgements that say why, and to the trace a person can be shown."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from assay.guards.clearance import pair_kind
from assay.guards.clearing.live import LiveGame
from assay.guards.clearing.measured import Measured, measured
from assay.guards.clearing.probes import Certificate
from assay.guards.coalitions import EMPTY, Coalition, contains, grand, members, without
from assay.guards.protocols import Case, Judgement, OnUndecided
from assay.guards.trace import Interaction, Tested, Trace
from assay.guards.undecided import undecided

NEGLIGIBLE = 1e-6
"""An interaction up to this strength is rounding, in units of utility."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What was found and verified.

    Attributes:
        certificate: As of a search, but ``recovered`` only after independent draws.
        cleared: Candidates to withhold; empty unless ``recovered``.
        blamed: Candidates held harmful, the cleared ones among them.
        tested: Withholdings tried, in order.
        stopped: The budget ended it.
    """

    certificate: Certificate
    cleared: Coalition = EMPTY
    blamed: Coalition = EMPTY
    tested: tuple[Coalition, ...] = ()
    stopped: bool = False

    @property
    def words(self) -> str:
        """The certificate as a decision names it."""
        return f"{self.certificate}, stopped by the budget" if self.stopped else self.certificate


def judgements(
    case: Case, game: LiveGame, found: Cleared, *, method: str, policy: OnUndecided
) -> tuple[Judgement, ...]:
    """One judgement per candidate, in the case's order."""
    effects = measured(game.known, game.n, found.blamed).effects
    judged: list[Judgement] = []
    for i, candidate in enumerate(case.candidates):
        record_id = candidate.record.id
        effect = float(effects[i]) if np.isfinite(effects[i]) else None
        if found.certificate == "none" and effect is None:
            judged.append(undecided(record_id, policy, reason=_unmeasured(found), method=method))
            continue
        judged.append(
            Judgement(
                record_id=record_id,
                admitted=not contains(found.cleared, i),
                reason=_reason(found, i, game),
                method=method,
                effect=effect,
            )
        )
    return tuple(judged)


def traced(case: Case, game: LiveGame, found: Cleared) -> Trace:
    """What was tried, with record ids for candidate numbers."""
    return Trace(
        before=_finite(game.before),
        bar=game.height,
        tested=tuple(_tested(case, game, found, withheld) for withheld in found.tested),
        interactions=_interactions(case, measured(game.known, game.n, found.blamed)),
    )


def _tested(case: Case, game: LiveGame, found: Cleared, withheld: Coalition) -> Tested:
    context = without(grand(game.n), withheld)
    return Tested(
        withheld=tuple(case.candidates[i].record.id for i in members(withheld)),
        utility=_finite(game.known.get(context, float("nan"))),
        recovered=game.reaches(context),
        verified=withheld == found.cleared and found.certificate == "recovered",
    )


def _interactions(case: Case, found: Measured) -> tuple[Interaction, ...]:
    pairs: list[Interaction] = []
    for i, j in combinations(range(len(case.candidates)), 2):
        strength = float(found.pairs[i, j])
        if not abs(strength) > NEGLIGIBLE:
            continue
        meaning = pair_kind(found.effects, found.pairs, i, j)
        if meaning != "none":
            pairs.append(
                Interaction(
                    first=case.candidates[i].record.id,
                    second=case.candidates[j].record.id,
                    strength=strength,
                    meaning=meaning,
                )
            )
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.strength)))


def _reason(found: Cleared, i: int, game: LiveGame) -> str:
    if found.certificate == "clean":
        return f"the answer with all records reaches the bar already (at {game.before:.2f})"
    if found.certificate == "none":
        return "no withholding was verified to bring the answer up to the bar"
    if contains(found.cleared, i):
        return f"{_without(found)} the answer is verified to reach the bar ({_change(found, game)})"
    if contains(found.blamed, i):
        return "it harms only beside a record that is withheld"
    return "the answer reaches the bar with it, once what harms is withheld"


def _without(found: Cleared) -> str:
    count = len(members(found.cleared))
    return "without it" if count == 1 else f"without it and {count - 1} more"


def _change(found: Cleared, game: LiveGame) -> str:
    after = game.known.get(without(grand(game.n), found.cleared), float("nan"))
    return f"{game.before:.2f} before, {after:.2f} after"


def _unmeasured(found: Cleared) -> str:
    if found.stopped:
        return "the budget ended before its effect was measured"
    return "its effect on the answer could not be measured"


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
