"""Reads simulation files; what is wrong with one is said with its line."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from assay.errors import ConfigError, ScenarioError
from assay.guards.methods import guard_named
from assay.runtime.naming import close_names
from assay.runtime.statements import statements
from assay.scenarios.cases.locating import Located, Place, explained, line_of
from assay.scenarios.simulation.schema import Fact, Simulation

PLACEHOLDER = re.compile(r"\{(\w*)\}")
_OWN = ("value", "user")
_SUFFIX = ".toml"


class _Problem(NamedTuple):
    """What is wrong, and with which value."""

    place: Place
    sentence: str


def shipped_simulations() -> list[str]:
    """Names of the simulations that ship with Assay."""
    folder = files("assay.scenarios").joinpath("data", "simulations")
    return sorted(
        item.name.removesuffix(_SUFFIX) for item in folder.iterdir() if item.name.endswith(_SUFFIX)
    )


def read_simulation(given: str) -> tuple[Simulation, bytes]:
    """A simulation by the path of its file or by the name of a shipped one; blocking.

    Args:
        given: A path, or one of ``shipped_simulations``.

    Returns:
        The simulation and the bytes of its file.

    Raises:
        ScenarioError: If there is none of that name, or it is malformed; with the line.
    """
    path = Path(given)
    if path.suffix != _SUFFIX and not path.exists():
        known = shipped_simulations()
        if given not in known:
            raise ScenarioError(
                f"no simulation {given!r}{close_names(given, known)}; expected the path of a "
                f"{_SUFFIX} file or the name of a shipped one"
            )
        source = files("assay.scenarios").joinpath("data", "simulations", given + _SUFFIX)
        data, path = source.read_bytes(), Path(given + _SUFFIX)
    else:
        data = _read(path)
    return parse_simulation(path, data), data


def parse_simulation(path: Path, data: bytes) -> Simulation:
    """A simulation from the bytes of its file; ``path`` is for messages only.

    Raises:
        ScenarioError: On invalid TOML, an unknown or missing field, or names that stand for
            nothing; with the line, and the nearest name where one is near.
    """
    try:
        text = data.decode()
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: expected TOML ({error})") from error
    located = Located(path, text, 1)
    try:
        simulation = msgspec.convert(tables, Simulation)
    except msgspec.ValidationError as error:
        raise explained(error, Simulation, located) from error
    problem = next(_problems(simulation), None)
    if problem is not None:
        line = line_of(located, problem.place)
        raise ScenarioError(f"{path}, line {line}: {problem.sentence}")
    return simulation


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _problems(simulation: Simulation) -> Iterator[_Problem]:
    if simulation.start.tzinfo is None:
        sentence = "expected a start with an offset, like 2026-03-02T18:30:00Z"
        yield _Problem(("start",), f"{sentence}, got {simulation.start}")
    yield from _of_names("agent", [agent.name for agent in simulation.agent])
    yield from _of_names("fact", [fact.name for fact in simulation.fact])
    yield from _of_names("goal", [goal.name for goal in simulation.goal])
    yield from _of_guards(simulation)
    for number, fact in enumerate(simulation.fact):
        yield from _of_a_fact(fact, ("fact", number))
    yield from _of_goals(simulation)
    yield from _of_injections(simulation)
    yield from _placeholders(
        simulation.chatter.says, ("user", *simulation.fill), ("chatter", "says")
    )


def _of_names(kind: str, names: list[str]) -> Iterator[_Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            second = names.index(name, names.index(name) + 1)
            yield _Problem((kind, second, "name"), f"expected distinct names, got {name!r} again")


def _of_guards(simulation: Simulation) -> Iterator[_Problem]:
    for number, agent in enumerate(simulation.agent):
        try:
            guard_named(agent.guard)
        except ConfigError as error:
            yield _Problem(("agent", number, "guard"), str(error))


def _of_a_fact(fact: Fact, place: Place) -> Iterator[_Problem]:
    for field, texts in (("told", [fact.told]), ("changed", [fact.changed] * bool(fact.changes))):
        for text in texts:
            if "{value}" not in text or len(statements(text)) != 1:
                sentence = "expected one statement with {value} in it"
                yield _Problem((*place, field), f"{sentence}, got {text!r}")
    for text in fact.asked:
        if not text.endswith("?") or "{value}" in text:
            sentence = "expected a question that ends with '?' and has no {value} in it"
            yield _Problem((*place, "asked"), f"{sentence}, got {text!r}")
    if fact.poison and "{value}" not in fact.poison:
        yield _Problem((*place, "poison"), f"expected {{value}} in it, got {fact.poison!r}")
    if len(set(fact.values)) < len(fact.values):
        yield _Problem((*place, "values"), "expected distinct values")
    said = [fact.told, fact.changed, fact.poison, *fact.asked]
    yield from _placeholders(said, _OWN, place)


def _of_goals(simulation: Simulation) -> Iterator[_Problem]:
    known = [fact.name for fact in simulation.fact]
    plants = sum(injection.channel == "planted_turn" for injection in simulation.inject)
    room = simulation.turns - plants
    if room < 1:
        sentence = f"expected more turns per session than the {plants} that may be planted"
        yield _Problem(("turns",), f"{sentence}, got {simulation.turns}")
    for number, goal in enumerate(simulation.goal):
        if len(goal.needs) + 1 > room:
            sentence = f"goal {goal.name!r} takes {len(goal.needs) + 1} turns"
            yield _Problem(
                ("goal", number, "needs"),
                f"{sentence}, but a session has {room} beside planted ones",
            )
        for name in goal.needs:
            if name not in known:
                sentence = f"goal {goal.name!r} needs {name!r}, which is no fact"
                yield _Problem(("goal", number, "needs"), f"{sentence}{close_names(name, known)}")
        yield from _placeholders([goal.says], ("user",), ("goal", number, "says"))
        if goal.says.endswith("?"):
            place: Place = ("goal", number, "says")
            yield _Problem(place, f"expected a statement, got the question {goal.says!r}")


def _of_injections(simulation: Simulation) -> Iterator[_Problem]:
    for number, injection in enumerate(simulation.inject):
        place: Place = ("inject", number, "what")
        if injection.what == "noise" and not injection.texts:
            yield _Problem(place, "expected texts of the noise, got none")
        if injection.what == "poison" and injection.texts:
            yield _Problem(place, "poison takes its texts from the facts; expected no texts here")
        if injection.what == "poison" and not any(fact.poison for fact in simulation.fact):
            yield _Problem(place, "expected at least one fact with a poison text, got none")
        known = ("user", *simulation.fill)
        yield from _placeholders(injection.texts, known, ("inject", number, "texts"))


def _placeholders(texts: Iterable[str], known: Iterable[str], place: Place) -> Iterator[_Problem]:
    names = tuple(known)
    for text in texts:
        for name in PLACEHOLDER.findall(text):
            if name not in names:
                sentence = f"unknown placeholder {'{' + name + '}'} in {text!r}"
                yield _Problem(place, f"{sentence}{close_names(name, names)}")
