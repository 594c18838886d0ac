"""Settings: defaults, a file, the environment, in this order; a wrong name is told with its place."""

from pathlib import Path

import msgspec
import pytest

from assay.errors import ConfigError
from assay.runtime import paths
from assay.runtime.settings import Settings


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def written(folder: Path, text: str) -> Path:
    file = folder / "settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_without_anything_the_defaults_hold() -> None:
    assert Settings.load(env={}) == Settings()


def test_the_environment_overrides_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, "[guard]\nk = 7\nseconds = 3\n[budget]\ncalls = 9\n")

    settings = Settings.load(file, env={"ASSAY_GUARD_K": "8", "ASSAY_BUDGET_MONEY": "0.5"})

    assert (settings.guard.k, settings.guard.seconds) == (8, 3.0)
    assert (settings.budget.calls, settings.budget.money) == (9, 0.5)
    assert settings.guard.method == Settings().guard.method


def test_a_budget_of_nothing_is_not_no_limit() -> None:
    settings = Settings.load(env={"ASSAY_BUDGET_CALLS": "0"})

    assert settings.budget.calls == 0
    assert settings.budget.tokens is None


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = written(tmp_path, "[guard]\nk = 7\n")

    assert Settings.load(env={"ASSAY_SETTINGS": str(file)}).guard.k == 7


def test_the_user_s_own_file_is_read_where_it_is(homes: Path) -> None:
    written(homes / "config" / "assay", "[guard]\nk = 6\n")

    assert Settings.load(env={}).guard.k == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n[guardd]\nk = 1\n", r"unknown section 'guardd'; did you mean 'guard'.*line 2"),
        ("[guard]\nk = 1\nmetod = 'x'\n", r"\[guard\] 'metod'; did you mean 'method'.*line 3"),
        ("[guard]\n# k\nk = 'five'\n", r"guard\.k: Expected int, got str, got 'five' .*line 3"),
        ("[guard]\nk = 0\n", r"guard\.k: Expected int >= 1, got 0"),
        ("[guard]\non_undecided = 'aks'\n", "'aks'; did you mean 'ask'"),
        ("[model]\ntimeout = inf\n", r"model\.timeout"),
        ("[model]\ntimeout = nan\n", r"model\.timeout"),
        ("[budget]\ncalls = -1\n", r"budget\.calls"),
        ("guard = 3\n", r"expected a table \[guard\]"),
        ("[guard\n", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)

    with pytest.raises(ConfigError, match=said) as raised:
        Settings.load(file, env={})

    assert str(file) in str(raised.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Settings.load(tmp_path / "none.toml", env={})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ASSAY_GUARD_KK", "5", "did you mean 'ASSAY_GUARD_K'"),
        ("ASSAY_NONSENSE", "5", "unknown environment variable"),
        ("ASSAY_GUARD_K", "five", "environment variable ASSAY_GUARD_K"),
        ("ASSAY_TURN_SECONDS", "nan", "environment variable ASSAY_TURN_SECONDS"),
        ("ASSAY_BUDGET_SECONDS", "inf", "finite"),
    ],
)
def test_a_wrong_variable_is_told(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Settings.load(env={name: value})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().guard.k = 3  # type: ignore[misc]


def test_every_field_has_a_variable() -> None:
    flat = {
        f"ASSAY_{section}_{field}".upper(): value
        for section, values in msgspec.to_builtins(Settings()).items()
        for field, value in values.items()
        if value is not None
    }

    assert Settings.load(env={name: str(value) for name, value in flat.items()}) == Settings()


def test_all_of_a_user_s_data_lives_in_one_folder(homes: Path) -> None:
    folder = homes / "data" / "assay"

    assert paths.data_folder() == folder
    assert {paths.bank_path().parent, paths.cache_path().parent} == {folder}
    assert paths.models_folder().parent == folder
    assert not folder.exists()
