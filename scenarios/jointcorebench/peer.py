"""``picire``, an independent ddmin, as an outside peer. In the ``benchmark`` extra only."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from assay.errors import ConfigError
from assay.guards.coalitions import Coalition, coalition_of
from assay.guards.protocols import Ask
from assay.guards.reduction.search import Oracle, Problem, Reduction, Step


def picire_ddmin(problem: Problem, oracle: Oracle) -> Reduction:
    """Run picire's ddmin, complements first, with its cache; it decides, so it is not a search.

    Raises:
        ConfigError: If picire is not installed.
    """
    require_picire()
    picire = import_module("picire")
    steps: list[Step] = []

    def test(configuration: list[int], _: object) -> object:
        asked = Ask(coalition_of(configuration))
        if asked.coalition == problem.everything:
            return picire.Outcome.FAIL
        same = oracle(asked)
        steps.append(Step(asked, same))
        return picire.Outcome.FAIL if same else picire.Outcome.PASS

    reduce: Callable[[list[int]], list[int]] = picire.DD(
        test, cache=picire.ConfigCache(), subset_first=False
    )
    kept = coalition_of(reduce(problem.cost_order()))
    return Reduction(Coalition(kept), "sufficient", finished=True, steps=tuple(steps))


def require_picire() -> None:
    """Raise before any work if picire is missing.

    Raises:
        ConfigError: With how to install it.
    """
    if find_spec("picire") is None:
        raise ConfigError(
            "the tracks compare with picire; install it with pip install 'assay[benchmark]'"
        )
