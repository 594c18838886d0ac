"""Plays cohorts of games with many methods on every core; the same seed gives the same figures."""

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed

import msgspec
import numpy as np

from assay.errors import ConfigError
from assay.guards.clearing.answers import AnswerKind, Answers
from assay.guards.clearing.probes import drive
from assay.guards.coalitions import Utilities
from assay.scenarios.games import Answerer, Game, Mix, cohort
from assay.scenarios.games_methods import Method, own_methods, too_large
from assay.scenarios.games_peers import peer_methods
from assay.scenarios.games_scoring import GameScore, score
from assay.scenarios.workers import worker_pool

CHUNK = 60
"""Games that one worker plays at a time with one method."""

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is played.

    Attributes:
        size: Games of a cohort.
        k: Candidates per game.
        seed: Of the games and of every method's own choices.
        answers: How answers scatter.
        sd: Of gaussian answers, in units of utility.
        mix: Which faults and values.
        limit: Most evaluations per game; ``None``: as many as a method wants.
    """

    size: int
    k: int
    seed: int
    answers: AnswerKind = "deterministic"
    sd: float = 0.1
    mix: Mix = "paper"
    limit: int | None = None


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A cohort played.

    Attributes:
        plan: What was played.
        scores: One score per game, by method.
        not_run: Why a method was not run, by method.
    """

    plan: Plan
    scores: Mapping[str, Sequence[GameScore]]
    not_run: Mapping[str, str]


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    method: str
    start: int


def all_methods() -> Mapping[str, Method]:
    """Our methods and the outside peers, by name."""
    return {**own_methods(), **peer_methods()}


def play(
    plan: Plan,
    names: Sequence[str],
    *,
    workers: int,
    on_progress: Callable[[int], None] = lambda _games: None,
) -> Played:
    """Play one cohort with each method.

    Args:
        plan: What to play.
        names: Methods, known names only.
        workers: Processes; 1 plays in this one.
        on_progress: Told how many games were just finished.

    Raises:
        ConfigError: If a named peer is not installed.
        ScenarioError: If the faults do not fit ``k`` candidates.
    """
    cohort(1, plan.k, plan.seed, plan.mix)
    not_run = {name: reason for name in names if (reason := too_large(name, plan.k))}
    tasks = [
        _Task(plan=plan, method=name, start=start)
        for name in names
        if name not in not_run
        for start in range(0, plan.size, CHUNK)
    ]
    chunks: dict[tuple[str, int], list[GameScore]] = {}
    for task, scores in _finished(tasks, workers):
        chunks[task.method, task.start] = scores
        on_progress(len(scores))
    scores_of = {
        name: [s for (one, _), chunk in sorted(chunks.items()) if one == name for s in chunk]
        for name in names
        if name not in not_run
    }
    return Played(plan=plan, scores=scores_of, not_run=not_run)


def planned_games(plan: Plan, names: Sequence[str]) -> int:
    """Games that ``play`` will play in all, for a progress bar."""
    return plan.size * sum(not too_large(name, plan.k) for name in names)


def peers_missing() -> str:
    """Why the outside peers cannot run; empty if they can."""
    try:
        drive(peer_methods()["shapiq_svarm"](3, Answers(), np.random.default_rng(0)), _nothing)
    except ConfigError as error:
        return str(error)
    return ""


def _nothing(probes: Sequence[object]) -> Utilities:
    return np.zeros(len(probes), dtype=np.float64)


def _finished(tasks: Sequence[_Task], workers: int) -> Iterator[tuple[_Task, list[GameScore]]]:
    if workers <= 1:
        for task in tasks:
            yield task, _play(task)
        return
    # Two processes with two BLAS threads each are slower than two with one; read at their start.
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    with worker_pool(workers) as pool:
        pending = {pool.submit(_play, task): task for task in tasks}
        for future in as_completed(pending):
            yield pending[future], future.result()


def _play(task: _Task) -> list[GameScore]:
    plan = task.plan
    games = cohort(plan.size, plan.k, plan.seed, plan.mix)[task.start : task.start + CHUNK]
    method = all_methods()[task.method]
    return [
        _play_one(plan, game, task.start + place, task.method, method)
        for place, game in enumerate(games)
    ]


def _play_one(plan: Plan, game: Game, place: int, name: str, method: Method) -> GameScore:
    answerer = Answerer(game, plan.answers, plan.sd)
    answers = Answers(kind=plan.answers, sd=plan.sd)
    rng = np.random.default_rng([plan.seed, plan.k, place, zlib.crc32(name.encode())])
    found, spending = drive(method(plan.k, answers, rng), answerer, limit=plan.limit)
    return score(found, spending, answerer)
