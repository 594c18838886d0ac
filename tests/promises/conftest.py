"""Promises: each kept promise prints one line with its figure at the end of the run.

`make test` runs the short forms; `make promises` passes ``--promises`` and runs the long ones.
"""

from collections.abc import Iterator

import pytest


class Promise:
    """What one promise's test may ask and has to tell.

    Attributes:
        name: Such as ``P1``.
        statement: The promise in one sentence.
        long: Whether the full numbers are wanted.
        figure: What was counted; empty until ``kept``.
    """

    def __init__(self, name: str, statement: str, *, long: bool) -> None:
        self.name = name
        self.statement = statement
        self.long = long
        self.figure = ""

    def times(self, short: int, long: int) -> int:
        """How often to try."""
        return long if self.long else short

    def kept(self, figure: str) -> None:
        """Say what was counted, such as ``60 kills survived``."""
        self.figure = figure


_KEPT = pytest.StashKey[list[Promise]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promises", action="store_true", help="run the long form of every promise")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(name, statement): what this test proves")
    config.stash[_KEPT] = []


@pytest.fixture
def promise(request: pytest.FixtureRequest) -> Iterator[Promise]:
    """The promise of the test's mark; the test fails if it never says what it counted."""
    mark = request.node.get_closest_marker("promise")
    assert mark is not None, "a test of a promise needs @pytest.mark.promise(name, statement)"
    name, statement = mark.args
    one = Promise(name, statement, long=_long(request.config))
    yield one
    if one.figure:
        request.config.stash[_KEPT].append(one)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long forms may take longer than a unit test."""
    if _long(config):
        for item in items:
            if item.get_closest_marker("promise"):
                item.add_marker(pytest.mark.timeout(300), append=False)


def _long(config: pytest.Config) -> bool:
    # Without the option known: this file is read too late for that when all tests are collected.
    return bool(config.getoption("--promises", default=False))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    kept = terminalreporter.config.stash[_KEPT]
    if not kept:
        return
    terminalreporter.section("promises kept")
    for one in sorted(kept, key=_order):
        terminalreporter.write_line(f"{one.name:4} {one.statement}: {one.figure}")


def _order(one: Promise) -> tuple[int, str]:
    return int("".join(c for c in one.name if c.isdigit()) or 0), one.name
