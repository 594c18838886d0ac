"""``assay bank check`` and ``assay bank salvage``, as their users see them."""

import json
import shutil
from pathlib import Path

import anyio
import pytest
from tests.stores.support import ANN, NOON, NoonClock, memory, turn
from typer.testing import CliRunner, Result

from assay.cli import main
from assay.cli.app import build_app
from assay.stores.bank import FILE_NAME, VECTORS_NAME, open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.watermark import mark_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["bank", *arguments], catch_exceptions=False)


async def fill(path: Path) -> None:
    async with open_bank(path, embedder=HashingEmbedder(16), clock=NoonClock()) as bank:
        await bank.store.write([memory(f"r{n}", f"Rex number {n}") for n in range(4)])
        await bank.archive.append([turn(n) for n in range(2)])
        await bank.retriever.retrieve(ANN, "Rex", limit=3, at=NOON)


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank"
    anyio.run(fill, path)
    return path


def spoil_a_record(bank: Path) -> None:
    path = bank / FILE_NAME
    content = path.read_bytes()
    at = content.rindex(b"Rex number 2")
    path.write_bytes(content[:at] + b"Max" + content[at + 3 :])


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_whole_bank_passes_and_is_not_touched(bank: Path) -> None:
    before = files(bank)

    result = run("check", str(bank), "--json")

    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (told["ok"], told["integrity"], told["damage"]) == (True, "ok", [])
    assert told["namespaces"] == {
        "ann": {"records": 4, "erased": 0, "turns": 2, "cache": 0, "index": "current"}
    }
    assert told["commits"] == told["noted_commits"]
    assert files(bank) == before


def test_a_changed_record_is_named(bank: Path) -> None:
    spoil_a_record(bank)

    result = run("check", str(bank))

    assert result.exit_code == 1
    assert "row 3 of records is not what was written" in result.stdout


def test_a_damaged_index_is_told_from_a_damaged_bank(bank: Path) -> None:
    (index,) = (bank / VECTORS_NAME).iterdir()
    index.write_bytes(index.read_bytes()[:-1])

    result = run("check", str(bank), "--json")

    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["integrity"] == "ok"
    assert told["namespaces"]["ann"]["index"] == "damaged"
    assert "is rebuilt when the bank is next searched" in told["damage"][0]


def test_a_spoilt_mark_is_named_and_made_anew(bank: Path) -> None:
    mark_path(bank / FILE_NAME).write_bytes(b"x" * 16)

    spoilt = run("check", str(bank), "--json")
    anyio.run(fill, bank)
    mended = run("check", str(bank), "--json")

    assert (spoilt.exit_code, mended.exit_code) == (1, 0)
    assert json.loads(spoilt.stdout)["damage"] == ["bank.sqlite3-mark is not what was written"]


def test_a_lost_file_is_damage(bank: Path) -> None:
    (bank / FILE_NAME).unlink()

    result = run("check", str(bank))

    assert result.exit_code == 1
    assert "bank.sqlite3 is missing" in result.stdout


def test_salvage_keeps_the_rest_and_names_what_is_lost(bank: Path, tmp_path: Path) -> None:
    spoil_a_record(bank)
    before = files(bank)

    result = run("salvage", str(bank), "--out", str(tmp_path / "new"), "--json")

    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (told["records"], told["turns"], told["lost_commits"]) == (3, 2, 0)
    assert told["lost"] == ["row 3 of records: not what was written"]
    assert files(bank) == before
    assert run("check", str(tmp_path / "new")).exit_code == 0


def test_a_salvaged_bank_goes_on_where_it_ended(bank: Path, tmp_path: Path) -> None:
    shutil.rmtree(bank / VECTORS_NAME)

    result = run("salvage", str(bank), "--out", str(tmp_path / "new"))
    anyio.run(fill, tmp_path / "new")

    assert "nothing was lost" in result.stdout
    assert run("check", str(tmp_path / "new")).exit_code == 0


@pytest.mark.parametrize("command", [["check"], ["salvage", "--out", "new"]])
def test_a_folder_without_a_bank_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bank", *command, str(tmp_path / "none")])

    assert ended.value.code == 2
    assert "holds no bank (expected bank.sqlite3 in it)" in capsys.readouterr().err


def test_salvage_overwrites_nothing(
    bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bank", "salvage", str(bank), "--out", str(tmp_path)])

    assert ended.value.code == 2
    assert "--out must be a new folder" in capsys.readouterr().err
