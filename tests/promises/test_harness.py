"""The harness itself: what a promise's test sees, and what the run prints."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


def test_a_kept_promise_prints_its_figure(pytester: pytest.Pytester) -> None:
    _write(pytester, "promise.kept(f'{promise.times(3, 60)} kills survived')")
    run = pytester.runpytest("-p", "no:cacheprovider")
    run.stdout.fnmatch_lines(["P1 *nothing is lost: 3 kills survived"])


def test_the_long_form_is_asked_for_by_an_option(pytester: pytest.Pytester) -> None:
    _write(pytester, "promise.kept(f'{promise.times(3, 60)} kills survived')")
    run = pytester.runpytest("--promises", "-p", "no:cacheprovider")
    run.stdout.fnmatch_lines(["P1 *nothing is lost: 60 kills survived"])


def test_a_broken_promise_prints_no_figure(pytester: pytest.Pytester) -> None:
    _write(pytester, "raise ValueError")
    run = pytester.runpytest("-p", "no:cacheprovider")
    run.assert_outcomes(failed=1)
    run.stdout.no_fnmatch_line("P1 *nothing is lost*")


def _write(pytester: pytest.Pytester, body: str) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.promise('P1', 'nothing is lost')\n"
        f"def test_one(promise):\n    {body}\n"
    )
