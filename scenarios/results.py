"""From decisions and keys to the figures of a run: the one place where the two meet."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from assay.scenarios.metrics import METRICS, Observations, Score, observations, score
from assay.scenarios.runs import Row, RunConfig
from assay.scenarios.schema import Key, Scenario
from assay.scenarios.statistics import Interval, bootstrap_interval, holm, mcnemar, sign_flip

COSTS: tuple[str, ...] = ("evaluations", "live", "rounds", "tokens", "seconds")
"""``live`` is a total of the run; the others are means per example."""


class MethodResult(NamedTuple):
    """One method over all examples.

    Attributes:
        metrics: By name of ``METRICS``, with intervals by conversation.
        costs: By name of ``COSTS``.
        scores: One per example.
        rows: One per example.
        families: ``useful_f1`` and ``poison_adoption`` by family of questions.
    """

    metrics: Mapping[str, Interval]
    costs: Mapping[str, float]
    scores: Sequence[Score]
    rows: Sequence[Row]
    families: Mapping[str, tuple[Interval, Interval]]


class Comparison(NamedTuple):
    """A method against a reference, over the same examples.

    Attributes:
        method: The other method.
        difference: Mean ``useful_f1`` of the reference minus that of the method, with interval.
        p_f1: Sign-flip test by conversation, adjusted by Holm over all methods compared.
        p_poison: Exact McNemar test on poison adopted, adjusted likewise.
    """

    method: str
    difference: Interval
    p_f1: float
    p_poison: float


def method_results(
    scenarios: Sequence[Scenario], rows: Sequence[Row], config: RunConfig
) -> dict[str, MethodResult]:
    """The figures of every method, in the order of the configuration.

    Args:
        scenarios: The examples of the run, in order.
        rows: One per example and method.
        config: Names the methods and the seed of the intervals.
    """
    by_unit = {row.unit: row for row in rows}
    keys = [scenario.key for scenario in scenarios]
    results: dict[str, MethodResult] = {}
    for method in config.methods:
        own = [by_unit[scenario.example.id, method] for scenario in scenarios]
        scores = [score(row.admitted, key) for row, key in zip(own, keys, strict=True)]
        results[method] = MethodResult(
            metrics=_intervals(observations(scores, keys), config.seed),
            costs=_costs(own),
            scores=scores,
            rows=own,
            families=_families(scores, keys, config.seed),
        )
    return results


def summary(
    scenarios: Sequence[Scenario], results: Mapping[str, MethodResult], config: RunConfig
) -> dict[str, object]:
    """The result as one JSON object; bounds of intervals stand under ``intervals``."""
    return {
        "suite": config.suite,
        "protocol": config.protocol,
        "model": config.model,
        "seed": config.seed,
        "examples": len(scenarios),
        "methods": {
            name: {metric: result.metrics[metric].mean for metric in METRICS} | dict(result.costs)
            for name, result in results.items()
        },
        "intervals": {
            name: {
                metric: [result.metrics[metric].low, result.metrics[metric].high]
                for metric in METRICS
            }
            for name, result in results.items()
        },
    }


def comparisons(
    results: Mapping[str, MethodResult], keys: Sequence[Key], *, reference: str, seed: int
) -> list[Comparison]:
    """Every other method against ``reference``, paired by example."""
    others = [name for name in results if name != reference]
    clusters = [key.cluster for key in keys]
    base = results[reference].scores
    differences = {
        name: [a.useful_f1 - b.useful_f1 for a, b in zip(base, results[name].scores, strict=True)]
        for name in others
    }
    flips = holm([sign_flip(differences[name], clusters, seed=seed) for name in others])
    poisons = holm([_poison_test(base, results[name].scores) for name in others])
    return [
        Comparison(
            method=name,
            difference=bootstrap_interval(differences[name], clusters, seed=seed),
            p_f1=p_f1,
            p_poison=p_poison,
        )
        for name, p_f1, p_poison in zip(others, flips, poisons, strict=True)
    ]


def _intervals(observed: Mapping[str, Observations], seed: int) -> dict[str, Interval]:
    return {
        name: bootstrap_interval(values, clusters, seed=seed)
        for name, (values, clusters) in observed.items()
    }


def _costs(rows: Sequence[Row]) -> dict[str, float]:
    return {
        "evaluations": fmean(row.spent.evaluations for row in rows),
        "live": sum(row.spent.live for row in rows),
        "rounds": fmean(row.spent.rounds for row in rows),
        "tokens": fmean(row.spent.tokens for row in rows),
        "seconds": round(fmean(row.seconds for row in rows), 3),
    }


def _families(
    scores: Sequence[Score], keys: Sequence[Key], seed: int
) -> dict[str, tuple[Interval, Interval]]:
    found: dict[str, tuple[Interval, Interval]] = {}
    for family in sorted({key.family for key in keys}):
        at = [i for i, key in enumerate(keys) if key.family == family]
        observed = _intervals(observations([scores[i] for i in at], [keys[i] for i in at]), seed)
        found[family] = (observed["useful_f1"], observed["poison_adoption_poisoned"])
    return found


def _poison_test(base: Sequence[Score], other: Sequence[Score]) -> float:
    pairs = list(zip(base, other, strict=True))
    return mcnemar(
        sum(a.poison < b.poison for a, b in pairs), sum(a.poison > b.poison for a, b in pairs)
    )
