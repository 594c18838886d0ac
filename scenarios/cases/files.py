"""Scenario files: which files are some, what is in them, and where a mistake in one stands."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from assay.errors import ScenarioError
from assay.runtime.naming import close_names
from assay.scenarios.cases.locating import Located, explained, line_of
from assay.scenarios.cases.names import problem_of
from assay.scenarios.cases.schema import Case

SUFFIXES = (".toml", ".jsonl")
CASSETTE_SUFFIX = ".cassette.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A scenario with where it came from.

    Attributes:
        path: The file.
        line: Where the scenario begins, from 1.
        name: Of the test; unique within the file.
        case: The scenario.
        alone: Whether the file holds one scenario only.
    """

    path: Path
    line: int
    name: str
    case: Case
    alone: bool

    @property
    def cassette(self) -> Path:
        """Where recorded answers lie: beside the file, one cassette for each scenario."""
        stem = self.path.stem if self.alone else f"{self.path.stem}.{self.name}"
        return self.path.with_name(stem + CASSETTE_SUFFIX)


def is_scenario(path: Path) -> bool:
    """Whether a file says that it is a scenario: by ``scenario = ...``, or ``{"scenario": ...`` .

    So that cassettes, settings and scripts may lie in the same folder. Blocking.
    """
    if path.suffix not in SUFFIXES or path.name.endswith(CASSETTE_SUFFIX):
        return False
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return False
    if path.suffix == ".jsonl":
        return any(b'"scenario"' in line for line in lines)
    return any(line.split(b"=")[0].strip() == b"scenario" for line in lines)


def find(paths: Sequence[Path]) -> list[Path]:
    """The scenario files that were named, or that lie below a folder that was. Blocking.

    Raises:
        ScenarioError: If a path is not there, or none of them leads to a scenario.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ScenarioError(f"no scenario file or folder {str(path)!r}")
        found += sorted(filter(is_scenario, path.rglob("*"))) if path.is_dir() else [path]
    if not found:
        shown = ", ".join(repr(str(path)) for path in paths)
        raise ScenarioError(
            f"no scenario in {shown}: expected a .toml file with a line `scenario = ...`, or a "
            ".jsonl file with such objects; `assay scenario new FILE` writes a first one"
        )
    return list(dict.fromkeys(found))


def read(path: Path) -> list[CaseFile]:
    """Every scenario of a file, in order. Blocking.

    Raises:
        ScenarioError: If the file cannot be read or is malformed, a field is not known, a value does
            not fit, or a name stands for nothing; with the line, and the nearest name.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: expected UTF-8 ({error})") from error
    found = list(_lines(path, text) if path.suffix == ".jsonl" else _toml(path, text))
    if not found:
        raise ScenarioError(f"{path}: expected at least one scenario, got an empty file")
    names = Counter(file.name for file in found)
    return [
        replace(file, name=f"{file.name}-line-{file.line}") if names[file.name] > 1 else file
        for file in found
    ]


def named(files: Sequence[CaseFile], name: str) -> CaseFile:
    """The scenario of this name; without a name the only one.

    Raises:
        ScenarioError: If there is none, with the nearest names, or no name was given for several.
    """
    if not name and len(files) == 1:
        return files[0]
    known = [file.name for file in files]
    if name not in known:
        problem = f"no scenario {name!r}" if name else f"expected a name for {len(files)} scenarios"
        raise ScenarioError(f"{files[0].path}: {problem}{close_names(name, known)}")
    return files[known.index(name)]


def _toml(path: Path, text: str) -> Iterator[CaseFile]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path} is not valid TOML: {error}") from error
    yield _case(path, data, Located(path, text, 1), alone=True)


def _lines(path: Path, text: str) -> Iterator[CaseFile]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = msgspec.json.decode(line, type=dict[str, object])
        except msgspec.DecodeError as error:
            raise ScenarioError(f"{path}, line {number}: expected a scenario ({error})") from error
        yield _case(path, data, Located(path, "", number), alone=False)


def _case(path: Path, data: dict[str, object], located: Located, *, alone: bool) -> CaseFile:
    try:
        case = msgspec.convert(data, Case)
    except msgspec.ValidationError as error:
        raise explained(error, Case, located) from error
    problem = problem_of(case)
    if problem is not None:
        where = line_of(located, problem.path)
        raise ScenarioError(f"{path}, line {where}: {problem.sentence}")
    line = line_of(located, ("scenario",))
    return CaseFile(path=path, line=line, name=case.name, case=case, alone=alone)
