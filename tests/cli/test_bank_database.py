"""Looking after a bank in PostgreSQL, as its keepers do: check, backup, restore, erase, export."""

import json
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner, Result

from assay.cli import main
from assay.cli.app import build_app
from assay.runtime.wiring import open_runtime

PRIVATE = "Ann's locker opens with 4711."


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), [*map(str, arguments)], catch_exceptions=False)


async def _talk(url: str | Path) -> None:
    async with open_runtime(model="scripted", embedder="hashing", bank=url) as runtime:
        await runtime.session(user="ann", session_id="s1").send(PRIVATE)
        await runtime.session(user="ben", session_id="s2").send("Rex likes carrots.")


@pytest.fixture
def bank(clean_database: str) -> str:
    anyio.run(_talk, clean_database)
    return clean_database


def test_a_bank_in_a_database_is_checked(bank: str) -> None:
    told = json.loads(run("bank", "check", bank, "--json").stdout)
    shown = run("bank", "check", bank).stdout

    assert (told["ok"], told["commits"], sorted(told["namespaces"])) == (True, None, ["ann", "ben"])
    assert "Tables of postgresql://" in shown
    assert "as written" in shown
    assert "correct" not in shown  # the password


def test_what_was_erased_does_not_come_back_with_a_backup(bank: str, tmp_path: Path) -> None:
    saved = json.loads(run("bank", "backup", bank, tmp_path / "copy", "--json").stdout)
    erased = run("erase", "--bank", bank, "--subject", "ann", "--yes", "--json")

    restored = json.loads(run("bank", "restore", tmp_path / "copy", bank, "--json").stdout)

    records = json.loads(erased.stdout)["records"]
    assert records > 0
    assert (restored["records"], restored["erased"]) == (saved["records"] - records, records)
    ann, ben = (run("export", "--bank", bank, "--subject", name).stdout for name in ("ann", "ben"))
    assert "4711" not in ann
    assert "carrots" in ben


def test_a_backup_of_one_kind_of_bank_is_not_restored_as_the_other(
    bank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("bank", "backup", bank, tmp_path / "of database")
    anyio.run(_talk, tmp_path / "bank")
    run("bank", "backup", tmp_path / "bank", tmp_path / "of folder")

    for copy, place, said in (
        ("of database", str(tmp_path / "folder"), "is a backup of a bank in PostgreSQL"),
        ("of folder", bank, "is a backup of a bank in a folder"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["bank", "restore", str(tmp_path / copy), place])

        told = capsys.readouterr().err
        assert ended.value.code == 2
        assert said in told
        assert "restore it there" in told
    assert not (tmp_path / "folder").exists()


def test_a_server_that_is_down_is_named_without_its_password(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bank", "backup", "postgresql://ann:hush@127.0.0.1:1/bank", str(tmp_path / "copy")])

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "start PostgreSQL" in said
    assert "postgresql://ann@127.0.0.1:1/bank" in said
    assert "hush" not in said
    assert not (tmp_path / "copy").exists()
