"""Scenario files as tests: ``pytest --assay scenarios/``.

Installed with the package and asleep without ``--assay``. What is a scenario, how it is played and
what a failure says is in ``assay.scenarios.cases``; this file only speaks pytest.

Two fixtures for tests of your own, with or without ``--assay``::

    def test_the_support_desk(assay_scenario):
        assay_scenario("scenarios/support_desk.toml")

    async def test_my_agent(assay_runtime):
        async with assay_runtime() as runtime:
            await runtime.session(user="u1").send("My cat is called Miso.")
"""

# pyright: reportUnknownMemberType=false
# pytest gives the constructors of its nodes no types.

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractAsyncContextManager

    from _pytest._code.code import TerminalRepr, TracebackStyle

    from assay.runtime.facade import Runtime
    from assay.scenarios.cases.files import CaseFile
    from assay.scenarios.cases.playing import Played
    from assay.scenarios.cases.suites import Sample

_SUITE = "suite:"
_SKIPPED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; ``pytest --help`` lists them under *assay*."""
    group = parser.getgroup("assay", "scenarios as tests")
    group.addoption(
        "--assay",
        action="store_true",
        help="collect scenario files (.toml, .jsonl) below the paths given, and suite:NAME",
    )
    group.addoption(
        "--assay-record",
        action="store_true",
        help="ask the models that scenarios name and record their answers beside each scenario",
    )
    group.addoption(
        "--assay-budget",
        type=_count,
        metavar="N",
        help="most evaluations a scenario may cost, all its turns together",
    )
    group.addoption(
        "--assay-size", type=_count, metavar="N", help="scenarios of each suite; by default 8"
    )
    group.addoption(
        "--assay-data",
        metavar="FOLDER",
        help="where the data sets lie that some suites need (--assay-data=FOLDER)",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)  # pytest says which option it is and what came
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Make ``suite:NAME`` a path, so that everything pytest can do with a path works."""
    if not config.getoption("assay"):
        return
    from assay.errors import AssayError  # noqa: PLC0415  # pytest starts fast without --assay
    from assay.scenarios.cases.suites import suite_path  # noqa: PLC0415

    skipped: list[str] = []
    config.stash[_SKIPPED] = skipped
    try:
        config.args[:] = [
            suite_path(arg.removeprefix(_SUITE)) if arg.startswith(_SUITE) else arg
            for arg in config.args
        ]
    except AssayError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take a scenario file, and one that was named even if it does not look like one."""
    if not parent.config.getoption("assay"):
        return None
    from assay.scenarios.cases.files import SUFFIXES, is_scenario  # noqa: PLC0415
    from assay.scenarios.cases.suites import SUFFIX, is_suite  # noqa: PLC0415

    if file_path.suffix == SUFFIX and is_suite(file_path):
        return SuiteFile.from_parent(parent, path=file_path, nodeid=f"{_SUITE}{file_path.stem}")
    if file_path.suffix not in SUFFIXES:
        return None
    if is_scenario(file_path) or parent.session.isinitpath(file_path):
        return ScenarioFile.from_parent(parent, path=file_path)
    # Only below what was asked for: pytest also shows what lies beside it and on the way to it.
    if any(parent.session.isinitpath(folder) for folder in file_path.parents):
        parent.config.stash[_SKIPPED].append(file_path.name)
    return None


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str | None:
    """Say how many scenarios there are, and what was seen that is none."""
    if _SKIPPED not in config.stash:
        return None
    count = sum(isinstance(item, _Item) for item in items)
    seen = config.stash[_SKIPPED]
    skipped = sorted(set(seen))
    if count:
        line = f"assay: {count} scenario{'s' if count > 1 else ''}"
    else:
        line = (
            "assay: no scenario found: a .toml file needs a line `scenario = ...`, a .jsonl file "
            "such objects; `assay scenario new FILE` writes a first one"
        )
    return f"{line}; no `scenario` in {', '.join(skipped)}" if skipped else line


class ScenarioFile(pytest.File):
    """A scenario file; each scenario in it is a test."""

    def collect(self) -> "Iterator[ScenarioItem]":
        from assay.scenarios.cases.files import read  # noqa: PLC0415

        with _collecting():
            files = read(self.path)
        for file in files:
            yield ScenarioItem.from_parent(self, name=file.name, file=file)


class SuiteFile(pytest.File):
    """A benchmark suite; each example of the sample is a test."""

    def collect(self) -> "Iterator[SampleItem]":
        from assay.scenarios.cases.suites import samples  # noqa: PLC0415

        data, size = self.config.getoption("assay_data"), self.config.getoption("assay_size")
        with _collecting():
            found = samples(self.path, size=size, data=Path(data) if data else None)
        for sample in found:
            yield SampleItem.from_parent(self, name=sample.name, sample=sample)


class _Item(pytest.Item):
    """A test whose failure is a text, not a traceback: no line of Python is wrong."""

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: "TracebackStyle | None" = None,
    ) -> "str | TerminalRepr":
        from assay.errors import AssayError  # noqa: PLC0415
        from assay.scenarios.cases.trying import Unmet  # noqa: PLC0415

        if isinstance(excinfo.value, (Unmet, AssayError, _Failed)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class ScenarioItem(_Item):
    """A scenario as a test."""

    def __init__(self, name: str, parent: pytest.Collector, *, file: "CaseFile") -> None:
        super().__init__(name, parent)
        self._file = file

    def runtest(self) -> None:
        _try(self._file, self.config)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._file.line - 1, self.name


class SampleItem(_Item):
    """One example of a benchmark suite as a test."""

    def __init__(self, name: str, parent: pytest.Collector, *, sample: "Sample") -> None:
        super().__init__(name, parent)
        self._sample = sample

    def runtest(self) -> None:
        failed = self._sample.check(self.config.getoption("assay_budget"))
        if failed and failed.missed:
            pytest.xfail(f"nothing harmful came in, but not all that is useful\n{failed.text}")
        if failed:
            raise _Failed(failed.text)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class _Failed(Exception):
    """An example of a suite is not as it should be; the text says how."""


@contextmanager
def _collecting() -> "Generator[None]":
    """What is wrong with a file is one paragraph, not a traceback."""
    from assay.errors import AssayError  # noqa: PLC0415

    try:
        yield
    except AssayError as error:
        raise pytest.Collector.CollectError(str(error)) from error


def _try(file: "CaseFile", config: pytest.Config) -> "Played":
    from assay.scenarios.cases.trying import tried  # noqa: PLC0415

    return tried(
        file, record=bool(config.getoption("assay_record")), budget=config.getoption("assay_budget")
    )


@pytest.fixture
def assay_scenario(request: pytest.FixtureRequest) -> "Callable[..., Played]":
    """Play a scenario file in a test of your own; for tests that are not async.

    Give it the path of a file, relative to the test's own, and the name of the scenario where the
    file holds several. It fails the test as ``pytest --assay`` would, and gives the scenario as it
    went: each turn's reply, decision and cost. ``--assay-record`` and ``--assay-budget`` hold here
    too::

        def test_the_support_desk(assay_scenario):
            played = assay_scenario("scenarios/support_desk.toml")

            assert "tomorrow" in played.taken[-1].reply.text
    """

    def play(path: str | Path, name: str = "") -> "Played":
        from assay.scenarios.cases.files import named, read  # noqa: PLC0415

        file = named(read(request.path.parent / path), name)
        return _try(file, request.config)

    return play


@pytest.fixture
def assay_runtime(
    request: pytest.FixtureRequest,
) -> "Callable[..., AbstractAsyncContextManager[Runtime]]":
    """Open a runtime for a test of your own: in memory, offline, the same on every run.

    Takes what ``assay.open_runtime`` takes; by default the scripted model, the hashing embedder and
    a clock that stands still. Answers of a model given by name, such as ``local`` or
    ``openai:NAME``, come from a cassette beside the test (``FILE.TEST.cassette.jsonl``);
    ``--assay-record`` asks the model and records it::

        async def test_my_agent_keeps_to_what_was_said(assay_runtime):
            async with assay_runtime(guard="panel") as runtime:
                await runtime.session(user="u1").send("My cat is called Miso.")
                reply = await runtime.session(user="u1").send("What is my cat called?")

            assert "Miso" in reply.text
    """

    def opened(**options: object) -> "AbstractAsyncContextManager[Runtime]":
        from assay.scenarios.cases.fixtures import runtime_for  # noqa: PLC0415

        return runtime_for(
            test=request.path,
            name=request.node.name,
            record=bool(request.config.getoption("assay_record")),
            options=options,
        )

    return opened
