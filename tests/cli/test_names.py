"""The version, help where a command is missing, and names that are not known."""

from importlib.metadata import version

import pytest

from assay.cli import main
from assay.cli.naming import nearest
from assay.errors import ConfigError
from assay.guards.methods import METHODS, guard_named


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return exit_.value.code


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"{version('assay')}\n"


@pytest.mark.parametrize("group", ["replay", "faults", "model", "explain"])
def test_a_group_without_a_command_shows_help_and_fails(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(group) == 2
    assert f"{group} [OPTIONS] COMMAND" in capsys.readouterr().out


def test_a_near_name_is_offered_without_the_list() -> None:
    assert str(nearest("stage", "exakt", ["exact", "model"])) == (
        "unknown stage 'exakt'; did you mean 'exact'?"
    )


def test_where_no_name_is_near_all_are_listed() -> None:
    assert str(nearest("stage", "zzz", ["model", "exact"])) == (
        "unknown stage 'zzz' (known: exact, model)"
    )


def test_where_no_method_is_near_all_are_listed() -> None:
    with pytest.raises(ConfigError) as error:
        guard_named("zzz")

    assert "did you mean" not in str(error.value)
    assert all(name in str(error.value) for name in METHODS)
