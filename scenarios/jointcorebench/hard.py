"""Running the harder tracks: one table, one row per variant and method."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from assay.guards.coalitions import Coalition, members
from assay.guards.reduction.core import core
from assay.guards.reduction.noisy import Looks, Trust, checked, core_robust, looks_at
from assay.guards.reduction.published import jointcore
from assay.guards.reduction.rivals import ddmin
from assay.guards.reduction.search import Problem, Reduction, Search, drive
from assay.scenarios.jointcorebench.conditions import Coordinates
from assay.scenarios.jointcorebench.methods import OURS, PUBLISHED, RIVALS, Setting, Start
from assay.scenarios.jointcorebench.parallel import in_processes
from assay.scenarios.jointcorebench.peer import picire_ddmin
from assay.scenarios.jointcorebench.tracks import NOISY, Trial, tracks, trial_of

RENDERINGS = ("plain", "reordered", "relabelled", "retyped", "reworded")
"""Ways to show the same records in the simulation; each draws its own persistent errors."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One method on one variant.

    Attributes:
        track: Track.
        variant: What was made harder.
        method: Method.
        conditions: How many conditions it ran on.
        evaluations: Mean number of questions.
        most: Most questions on one condition.
        sufficiency: Share whose kept set gives the same decision.
        min_cost: Share that kept a cheapest such set.
        one_minimal: Share where, besides, no single record can go.
    """

    track: str
    variant: str
    method: str
    conditions: int
    evaluations: float
    most: int
    sufficiency: float
    min_cost: float
    one_minimal: float


class Place(NamedTuple):
    """One condition under one variant of a track, by its number there."""

    track: str
    variant: int
    point: Coordinates


class _Judged(msgspec.Struct, frozen=True):
    evaluations: int
    sufficient: bool
    least_cost: bool
    one_minimal: bool


Runner = Callable[[Trial], Reduction]


def points_of(names: Sequence[str]) -> int:
    """How many conditions the named tracks have together."""
    return sum(len(variant.points()) for name in names for variant in tracks()[name])


def run_tracks(
    names: Sequence[str],
    *,
    base: int,
    processes: int,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Run the named tracks with every method; the result does not depend on ``processes``.

    Raises:
        KeyError: For an unknown track; names are checked at the border.
    """
    known = tracks()
    places = [
        Place(name, at, point)
        for name in names
        for at, variant in enumerate(known[name])
        for point in variant.points()
    ]
    judge = partial(judge_all, base=base)
    judged = in_processes(judge, places, processes=processes, advance=advance)
    groups: dict[tuple[str, int], list[dict[str, _Judged]]] = {}
    for place, one in zip(places, judged, strict=True):
        groups.setdefault((place.track, place.variant), []).append(one)
    return [
        _row(track, known[track][at].label, method, [one[method] for one in group])
        for (track, at), group in groups.items()
        for method in runners(track)
    ]


def judge_all(place: Place, *, base: int) -> dict[str, _Judged]:
    """Every method of a track at one place."""
    trial = trial_of(tracks()[place.track][place.variant], place.point, base=base)
    return {name: _judge(run(trial), trial) for name, run in runners(place.track).items()}


def runners(track: str) -> dict[str, Runner]:
    """The methods compared on a track."""
    if track not in NOISY:
        chosen = ("jointcore", "singleton", *RIVALS, *OURS)
        searches = PUBLISHED | RIVALS | OURS
        return {name: _plain(searches[name]) for name in chosen} | {"picire": _peer}
    looks = looks_at(RENDERINGS if track == "persistent" else RENDERINGS[:1])
    plain = {name: _plain((PUBLISHED | RIVALS | OURS)[name]) for name in _UNPROTECTED}
    return plain | {
        "jointcore, check": _checked(lambda p: jointcore(p.cost_order()), looks, votes=1),
        "jointcore, 3 votes, check": _checked(lambda p: jointcore(p.cost_order()), looks, votes=3),
        "ddmin, 3 votes, check": _checked(lambda p: ddmin(p.cost_order()), looks, votes=3),
        "core, check": _checked(core, looks, votes=1),
        "core, 3 votes, check": _checked(core, looks, votes=3),
        "core_robust": _robust(looks),
    }


_UNPROTECTED = ("jointcore", "singleton", *RIVALS, "core")


def _plain(start: Start) -> Runner:
    def run(trial: Trial) -> Reduction:
        setting = Setting(trial.problem, Coalition(0), Coalition(0))
        return drive(start(setting, {}), trial.evaluator(), problem=trial.problem)

    return run


def _peer(trial: Trial) -> Reduction:
    return picire_ddmin(trial.problem, trial.evaluator())


def _checked(search: Callable[[Problem], Search], looks: Looks, *, votes: int) -> Runner:
    def run(trial: Trial) -> Reduction:
        start = partial(search, trial.problem)
        guarded = checked(start, trial.problem, looks, votes=votes)
        return drive(guarded, trial.evaluator(), problem=trial.problem)

    return run


def _robust(looks: Looks) -> Runner:
    def run(trial: Trial) -> Reduction:
        search = core_robust(trial.problem, looks, Trust(error=trial.error))
        return drive(search, trial.evaluator(), problem=trial.problem)

    return run


def _judge(reduction: Reduction, trial: Trial) -> _Judged:
    kept = reduction.kept
    sufficient = trial.same(kept)
    cheap = trial.least is not None and trial.problem.cost(kept) <= trial.least * (1 + 1e-12)
    fewer = (Coalition(kept & ~(1 << i)) for i in members(kept))
    return _Judged(
        evaluations=reduction.evaluations,
        sufficient=sufficient,
        least_cost=sufficient and cheap,
        one_minimal=sufficient and not any(map(trial.same, fewer)),
    )


def _row(track: str, variant: str, method: str, judged: Sequence[_Judged]) -> Row:
    return Row(
        track=track,
        variant=variant,
        method=method,
        conditions=len(judged),
        evaluations=float(np.mean([one.evaluations for one in judged])),
        most=max(one.evaluations for one in judged),
        sufficiency=float(np.mean([one.sufficient for one in judged])),
        min_cost=float(np.mean([one.least_cost for one in judged])),
        one_minimal=float(np.mean([one.one_minimal for one in judged])),
    )
