"""``assay doctor`` over the servers that services and workers share, and servers that cannot be used."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.nats_servers import running_nats
from tests.servers import FreshDatabase, PostgresServer, free_port

from assay.cli import main
from assay.cli.examining_servers import Server, servers
from assay.runtime.clock import StoppedClock, SystemClock
from assay.stores.postgres.examining import look_at

from .distributed import worker
from .test_worker import refused


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_both_servers_are_looked_at(
    capsys: pytest.CaptureFixture[str], clean_database: str, nats_url: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--bank", clean_database, "--bus", nats_url, "--json"])

    found = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert [(s["holds"], s["usable"], s["warning"]) for s in found["servers"]] == [
        ("bank", True, ""),
        ("bus", True, ""),
    ]
    assert found["servers"][0]["told"].startswith("PostgreSQL 18")


def test_servers_of_the_settings_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, nats_url: str
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BUS", nats_url)

    [found] = servers("", "")

    assert found == Server(holds="bus", place=nats_url, usable=True, told="NATS with JetStream")


def test_a_bus_without_a_bank_in_a_database_is_not_ready(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, nats_url: str
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BUS", nats_url)

    with pytest.raises(SystemExit) as ended:
        main(["doctor"])

    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "a bus needs a bank that every process reaches" in said
    assert said.rstrip().endswith("not ready: see what is missing above")


def test_a_folder_and_a_database_have_names_apart(
    capsys: pytest.CaptureFixture[str], clean_database: str
) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--bank", clean_database])

    rows = [
        line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if "│" in line
    ]
    assert {"bank folder", "bank server"} <= set(rows)
    assert "bank" not in rows


def test_a_server_that_is_down_makes_an_installation_unready(
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = free_port()
    places = ("--bank", f"postgresql://ann:secret@127.0.0.1:{port}/assay")
    bus = ("--bus", f"nats://ann:hidden@127.0.0.1:{port}")

    with pytest.raises(SystemExit) as ended:
        main(["doctor", *places, *bus])

    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "NOT usable" in said
    assert "start PostgreSQL" in said
    assert "nats-server -js" in said
    assert "secret" not in said
    assert "hidden" not in said


async def test_a_clock_that_is_off_is_seen(clean_database: str) -> None:
    skewed = StoppedClock(SystemClock().now() + timedelta(hours=1))

    right = await look_at(clean_database, clock=SystemClock())
    wrong = await look_at(clean_database, clock=skewed)

    assert abs(right.ahead) < 5
    assert 3590 < wrong.ahead < 3610


def test_a_schema_newer_than_the_program_is_refused(
    capsys: pytest.CaptureFixture[str],
    fresh_database: FreshDatabase,
    postgres_server: PostgresServer,
    nats_url: str,
) -> None:
    database = fresh_database()
    servers(database, nats_url)  # makes the tables
    postgres_server.sql(
        "UPDATE format SET version = version + 7, readable_from = readable_from + 7",
        database=database.rpartition("/")[2],
    )

    said = refused(capsys, *worker("--bank", database, "--bus", nats_url))

    assert "upgrade Assay on this host" in said
    assert "horse" not in said


def test_nats_without_jetstream_is_refused(
    capsys: pytest.CaptureFixture[str], clean_database: str, tmp_path: Path
) -> None:
    with running_nats(tmp_path, jetstream="") as plain:
        said = refused(capsys, *worker("--bank", clean_database, "--bus", plain.url))

    assert "without JetStream" in said
    assert "nats-server -js" in said
    assert "code=" not in said


def test_wrong_credentials_of_the_bus_are_said(
    capsys: pytest.CaptureFixture[str], clean_database: str, tmp_path: Path
) -> None:
    config = 'authorization { user: ann, password: "correct" }'
    with running_nats(tmp_path, config=config) as guarded:
        bus = guarded.url.replace("nats://", "nats://ann:wrong@")
        said = refused(capsys, *worker("--bank", clean_database, "--bus", bus))

    assert "refused the user or password" in said
    assert "wrong" not in said
