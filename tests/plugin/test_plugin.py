"""``pytest --assay`` in a project of its own, as a user runs it."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from .support import CONTESTED, INI, TOLD, UNMET, write

pytest_plugins = ["pytester"]

# What the plugin loads when it is used, loaded here: a library in C cannot be loaded twice, and
# pytester forgets what a run inside it has loaded.
for _used in (
    "runtime.wiring",
    "scenarios.causal_locomo",
    "scenarios.families",
    "scenarios.attacks",
    "scenarios.cases.fixtures",
    "scenarios.cases.suites",
):
    import_module(f"assay.{_used}")


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("XDG_DATA_HOME", str(pytester.path / "home"))
    write(pytester.path / "pytest.ini", INI)
    return pytester


def test_a_folder_of_scenarios_is_collected_and_passes(pytester: pytest.Pytester) -> None:
    write(pytester.path / "scenarios/told.toml", TOLD)
    lines = [json.dumps({"scenario": name, "turn": [{"say": "Hi."}]}) for name in ("One", "Two")]
    write(pytester.path / "scenarios/deep/small.jsonl", "\n".join(lines))
    write(pytester.path / "scenarios/settings.toml", "[guard]\nk = 3\n")

    result = pytester.runpytest("--assay", "-v", "scenarios/")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["assay: 3 scenarios; no `scenario` in settings.toml"])
    result.stdout.fnmatch_lines(["*told.toml::a-told-fact-is-admitted PASSED*"])


def test_without_the_option_nothing_is_collected(pytester: pytest.Pytester) -> None:
    write(pytester.path / "scenarios/told.toml", TOLD)

    result = pytester.runpytest("scenarios/")

    result.assert_outcomes()
    result.stdout.no_fnmatch_line("*assay: *")


def test_a_failure_names_record_decision_expectation_and_cost(pytester: pytest.Pytester) -> None:
    write(pytester.path / "told.toml", UNMET)

    result = pytester.runpytest("--assay", "told.toml")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "turn 1: record 'doctor' expected withheld, came admitted",
            "told.toml:2: A told fact is admitted",
            "turn 1: record 'doctor': expected withheld",
            "  came: admitted",
            "  because: *bears on the question*",
            "    admitted  doctor: My doctor is Dr. Okafor on Mill Street.",
            "  answer: My doctor is Dr. Okafor on Mill Street.",
            "cost of the scenario: 3 evaluations*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_unknown_field_is_an_error_with_its_line_and_the_nearest_name(
    pytester: pytest.Pytester,
) -> None:
    write(pytester.path / "told.toml", TOLD.replace("admitted =", "admited ="))

    result = pytester.runpytest("--assay", "told.toml")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*told.toml, line 18: unknown field 'admited' in turn 1, expect; did you mean 'admitted'*"]
    )


def test_an_empty_folder_says_how_to_write_a_first_scenario(pytester: pytest.Pytester) -> None:
    write(pytester.path / "scenarios/other.toml", "x = 1\n")

    result = pytester.runpytest("--assay", "scenarios/")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["assay: no scenario found: *assay scenario new FILE*other.toml"])


def test_a_budget_too_small_to_decide_is_said_first(pytester: pytest.Pytester) -> None:
    write(pytester.path / "rent.toml", 'guard = "cmi"\n' + CONTESTED)

    result = pytester.runpytest("--assay", "--assay-budget", "2", "rent.toml")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the budget of 2 evaluations is too small: *needed, 2 left*"])


def test_a_budget_that_is_no_count_is_refused(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--assay", "--assay-budget", "few")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--assay-budget*few*"])


def test_two_workers_pass_what_one_does(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three processes start: without the plugins of other packages that happen to be installed.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    write(pytester.path / "pytest.ini", "[pytest]\nfilterwarnings = error\n")
    for number in range(4):
        write(pytester.path / f"scenarios/told_{number}.toml", TOLD)

    result = pytester.runpytest_subprocess(
        "-p", "xdist", "-p", "assay.pytest_plugin", "--assay", "-n", "2", "scenarios/"
    )

    result.assert_outcomes(passed=4)


def test_a_suite_is_a_sample_of_tests_and_one_of_them_can_be_named(
    pytester: pytest.Pytester,
) -> None:
    all_of_them = pytester.runpytest("--assay", "suite:families", "suite:jointcorebench")

    assert all_of_them.ret == 0
    all_of_them.stdout.fnmatch_lines(["assay: 16 scenarios"])
    one = pytester.runpytest("--assay", "-v", "suite:families::abstention-7-00007")
    one.assert_outcomes(passed=1)
    one.stdout.fnmatch_lines(["*suite:families::abstention-7-00007 PASSED*"])


def test_the_size_of_a_suite_is_chosen(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--assay", "--assay-size", "2", "suite:games")

    result.assert_outcomes(passed=2)


def test_a_suite_that_needs_data_says_which(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--assay", "suite:causal-locomo")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs its data: --assay-data=FOLDER*causal_locomo.jsonl*"])


def test_causal_locomo_is_sampled_where_its_data_is(
    pytester: pytest.Pytester, shared_data: Path
) -> None:
    result = pytester.runpytest(
        "--assay", "--assay-size", "4", f"--assay-data={shared_data}", "suite:causal-locomo"
    )

    assert result.ret == 0
    result.stdout.fnmatch_lines(["assay: 4 scenarios"])


def test_an_unknown_suite_gets_the_nearest_name(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--assay", "suite:familys")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no suite 'familys'; did you mean 'families'*"])


def test_every_shipped_scenario_passes(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--assay", "suite:shipped")

    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 20


def test_the_fixtures_serve_a_users_own_tests(pytester: pytest.Pytester) -> None:
    write(pytester.path / "scenarios/told.toml", TOLD)
    pytester.makepyfile(
        """
        def test_scenario(assay_scenario):
            played = assay_scenario("scenarios/told.toml")

            assert "Okafor" in played.taken[0].reply.text

        async def test_runtime(assay_runtime):
            async with assay_runtime(guard="panel") as runtime:
                await runtime.session(user="u1").send("My cat is called Miso.")
                reply = await runtime.session(user="u1").send("What is my cat called?")

            assert "Miso" in reply.text

        async def test_not_recorded(assay_runtime):
            async with assay_runtime(model="local"):
                pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*no recorded answers of 'local'*--assay-record*"])


def test_the_plugin_costs_a_run_that_does_not_use_it_no_import() -> None:
    code = (
        "import sys, pytest, assay.pytest_plugin\n"
        "heavy = {'numpy', 'anyio', 'msgspec', 'typer', 'faiss', 'assay.runtime'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"
