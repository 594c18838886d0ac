"""The benchmark suites as tests: a sample of each, every example one test.

A suite's place on disk is an empty file beside this one, ``suites/NAME.suite``, so that a test
runner can name, select and repeat it like any other file.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from assay.errors import ScenarioError
from assay.runtime.naming import close_names
from assay.scenarios.cases.exact_suites import check_game, check_reduction, name_of, spread
from assay.scenarios.cases.files import CaseFile
from assay.scenarios.cases.schema import Case
from assay.scenarios.cases.translating import case_of
from assay.scenarios.cases.trying import Unmet, tried
from assay.scenarios.games import cohort
from assay.scenarios.schema import Scenario

if TYPE_CHECKING:
    from assay.scenarios.attacks_data import AttackCase

SUFFIX = ".suite"
SHIPPED = "shipped"
DEFAULT_SIZE = 8
_SEED = 7
_CANDIDATES = 8
"""Records of a game."""

_FOLDER = Path(__file__).parent / "suites"


class Failed(NamedTuple):
    """Why an example is not as it should be.

    Attributes:
        text: What was expected, what came and what it cost.
        missed: Nothing harmful came in, but what is useful did not either: no method is right about
            every example, so a test reports it and does not break.
    """

    text: str
    missed: bool = False


class Sample(NamedTuple):
    """One example of a suite as a test.

    Attributes:
        name: Of the test.
        check: Tries it within a budget of evaluations; gives ``None`` if all is as it should be.
    """

    name: str
    check: Callable[[int | None], Failed | None]


Maker: TypeAlias = Callable[[int, Path | None], Iterator[Sample]]


def shipped_folder() -> Path:
    """Where the scenarios lie that come with Assay."""
    return Path(__file__).parents[1] / "data" / "cases"


def suite_path(name: str) -> str:
    """The path that stands for a suite's name, ``::`` and a test's name after it included.

    Raises:
        ScenarioError: If there is no such suite, with the nearest names.
    """
    suite, colons, rest = name.partition("::")
    if suite == SHIPPED:
        return f"{shipped_folder()}{colons}{rest}"
    if suite not in _MAKERS:
        raise ScenarioError(f"no suite {suite!r}{close_names(suite, [*_MAKERS, SHIPPED])}")
    return f"{_FOLDER / suite}{SUFFIX}{colons}{rest}"


def is_suite(path: Path) -> bool:
    """Whether a path stands for a suite."""
    return path.parent == _FOLDER and path.stem in _MAKERS


def samples(path: Path, *, size: int | None, data: Path | None) -> list[Sample]:
    """The tests of a suite.

    Args:
        path: What ``suite_path`` gave.
        size: How many; ``None``: eight.
        data: Folder of the data sets, for the suites that need one.

    Raises:
        ScenarioError: If the data are needed and not there.
    """
    return list(_MAKERS[path.stem](DEFAULT_SIZE if size is None else size, data))


def _families(size: int, _data: Path | None) -> Iterator[Sample]:
    from assay.scenarios.families import generate  # noqa: PLC0415

    return _tried("families", generate(max(size, 1), seed=_SEED)[:size])


def _causal_locomo(size: int, data: Path | None) -> Iterator[Sample]:
    from assay.scenarios.causal_locomo import load_blind  # noqa: PLC0415

    path = _given("causal-locomo", data, "causal_locomo.jsonl")
    return _tried("causal-locomo", load_blind(path, seed=_SEED, limit=size))


def _tried(suite: str, scenarios: Sequence[Scenario]) -> Iterator[Sample]:
    for scenario in scenarios:
        case = case_of(scenario)
        family, name = scenario.key.family, scenario.example.id
        name = name if name.startswith(family) else f"{family}-{name}"
        yield _sample(suite, name, case)


def _sample(suite: str, name: str, case: Case) -> Sample:
    path = Path(f"suite:{suite}")
    file = CaseFile(path=path, line=1, name=name, case=case, alone=False)
    return Sample(name, partial(_failure, file))


def _failure(file: CaseFile, budget: int | None) -> Failed | None:
    try:
        tried(file, budget=budget)
    except Unmet as unmet:
        missed = all(finding.rule == "admitted_any" for finding in unmet.found)
        return Failed(str(unmet), missed and not unmet.played.refused)
    return None


def _locomo_faults(size: int, data: Path | None) -> Iterator[Sample]:
    from assay.scenarios.cases.fault_suite import fault_cases  # noqa: PLC0415

    folder = _given("locomo-faults", data, "what `assay faults build` wrote").parent
    for name, case in fault_cases(folder, size, seed=_SEED):
        yield _sample("locomo-faults", name, case)


def _attacks(size: int, data: Path | None) -> Iterator[Sample]:
    from assay.scenarios.cases.attack_suite import attack_cases  # noqa: PLC0415

    path = _given("attacks", data, "attacks.jsonl")
    for case in attack_cases(path, size):
        yield Sample(case.case, partial(_attacked, case))


def _attacked(case: "AttackCase", budget: int | None) -> Failed | None:
    from assay.scenarios.cases.attack_suite import is_harmed, played, told_attack  # noqa: PLC0415

    row = played(case)
    over = budget is not None and row.evaluations > budget
    if over or is_harmed(row):
        budgeted = f"over the budget of {budget} evaluations\n" if over else ""
        return Failed(budgeted + told_attack(case, row))
    return None if row.right and not row.lost else Failed(told_attack(case, row), missed=True)


def _games(size: int, _data: Path | None) -> Iterator[Sample]:
    for place, game in enumerate(cohort(size, _CANDIDATES, _SEED)):
        yield Sample(
            f"{game.structure}-{place}", partial(_exactly, partial(check_game, game, place))
        )


def _jointcorebench(size: int, _data: Path | None) -> Iterator[Sample]:
    for at in spread(size):
        yield Sample(name_of(at), partial(_exactly, partial(check_reduction, at)))


def _exactly(check: Callable[[int | None], str], budget: int | None) -> Failed | None:
    failure = check(budget)
    return Failed(failure) if failure else None


def _given(suite: str, data: Path | None, name: str) -> Path:
    if data is None:
        raise ScenarioError(f"suite:{suite} needs its data: --assay-data=FOLDER, with {name} in it")
    return data / name


_MAKERS: dict[str, Maker] = {
    "attacks": _attacks,
    "causal-locomo": _causal_locomo,
    "families": _families,
    "games": _games,
    "jointcorebench": _jointcorebench,
    "locomo-faults": _locomo_faults,
}
