"""``assay serve`` and ``assay worker`` past one process: one bank, one bus, one conversation."""

import json
import signal
from pathlib import Path

import anyio
import pytest
from tests.nats_servers import NatsServer
from tests.servers import FreshDatabase, free_port

from assay.cli import main
from assay.runtime.clock import SystemClock
from assay.runtime.streams import stream_of
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.records import Namespace, SessionId

from .distributed import KEY, PATH, asking, client, process, serve, worker


def events_of(database: str) -> list[str]:
    """The kinds of event of ann's conversation, in order."""

    async def read() -> list[str]:
        async with open_postgres_bank(
            database, embedder=HashingEmbedder(), clock=SystemClock()
        ) as bank:
            entries = await bank.journal.read(stream_of(Namespace("ann"), SessionId("one")))
        return [json.loads(entry.payload)["event"] for entry in entries]

    return anyio.run(read)


@pytest.mark.timeout(120)
def test_two_services_and_a_worker_have_one_conversation(
    tmp_path: Path, fresh_database: FreshDatabase, nats_url: str
) -> None:
    database = fresh_database()
    places = ("--bank", database, "--bus", nats_url)
    with (
        process(tmp_path, *serve(*places, "--no-work")) as one,
        process(tmp_path, *serve(*places, "--no-work")) as two,
        process(tmp_path, *worker(*places)) as working,
    ):
        told = [door.says() for door in (one, two)]
        doors = [client(door["address"]) for door in told]
        started = working.says()

        first = doors[0].post(PATH, json=asking("My cat is called Miso."))
        history = ("My cat is called Miso.", "Good to know.", "What is my cat called?")
        second = doors[1].post(PATH, json=asking(*history, stream=True))
        signed_in = doors[0].post("/inspect/sign-in", data={"key": KEY})
        inspected = doors[0].get("/inspect/conversation?u=ann&s=one")
        turns = [working.says(), working.says()]
        ended = working.stop()
        said_last = working.says(), working.says()
        codes = (one.stop(), two.stop(signal.SIGINT))
        for door in doors:
            door.close()

    assert [door["bus"] for door in told] == [nats_url, nats_url]
    assert started["event"] == "worker.started"
    assert "correct" not in json.dumps(started)  # horse: a password is never shown
    assert (first.status_code, second.status_code) == (200, 200)
    pieces = [
        json.loads(line[6:])["choices"][0]["delta"].get("content", "")
        for line in second.text.splitlines()
        if line.startswith("data: {")
    ]
    assert "".join(pieces) == "My cat is called Miso."
    assert len(pieces) > 2
    assert (signed_in.status_code, inspected.status_code) == (303, 200)
    assert "What is my cat called?" in inspected.text
    assert [(turn["kind"], turn["failure"]) for turn in turns] == [("turn", ""), ("turn", "")]
    assert [told["event"] for told in said_last] == ["worker.stopping", "worker.stopped"]
    assert (ended, *codes) == (0, 0, 130)
    kinds = events_of(database)
    assert len(kinds) == 10
    assert kinds == kinds[:5] * 2


@pytest.mark.timeout(120)
def test_two_services_over_one_database_need_no_bus(
    tmp_path: Path, fresh_database: FreshDatabase
) -> None:
    database = fresh_database()
    with (
        process(tmp_path, *serve("--bank", database)) as one,
        process(tmp_path, *serve("--bank", database)) as two,
    ):
        doors = [client(door.says()["address"]) for door in (one, two)]
        first = doors[0].post(PATH, json=asking("My cat is called Miso."))
        second = doors[1].post(PATH, json=asking("What is my cat called?"))
        third = doors[0].post(PATH, json=asking("And what was that?"))
        for door in doors:
            door.close()

    assert [reply.status_code for reply in (first, second, third)] == [200, 200, 200]
    assert "Miso" in second.text
    kinds = events_of(database)
    assert kinds == kinds[:5] * 3


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that ends with exit code 2, in one line."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert said.count("\n") == 1
    return said


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_a_bus_needs_a_bank_that_others_reach(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bank = str(tmp_path / "bank")

    said = refused(capsys, *serve("--bank", bank, "--bus", "nats://127.0.0.1:4222"))

    assert "give --bank postgresql://... beside --bus" in said
    assert not (tmp_path / "bank").exists()


def test_a_queue_of_experiments_needs_a_bus(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, *serve("--evaluations", "queue"))

    assert "--evaluations queue needs a bus" in said


def test_an_unknown_place_of_experiments_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, *serve("--evaluations", "nowhere"))

    assert "--evaluations: expected here or queue, got 'nowhere'" in said


def test_a_worker_needs_a_bus(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, *worker("--bank", "postgresql://127.0.0.1/x"))

    assert "give --bus nats://..." in said


def test_a_worker_takes_known_kinds_only(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, *worker("--bus", "nats://127.0.0.1:4222", "--kinds", "everything"))

    assert "got 'everything'" in said


def test_a_url_of_something_else_is_no_bank(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, *serve("--bank", "mysql://root:secret@127.0.0.1/assay"))

    assert "postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in said
    assert "secret" not in said


def test_a_database_that_is_down_says_what_was_tried_and_how_to_start_one(
    capsys: pytest.CaptureFixture[str], nats_url: str
) -> None:
    bank = f"postgresql://ann:secret@127.0.0.1:{free_port()}/assay"

    said = refused(capsys, *worker("--bank", bank, "--bus", nats_url))

    assert "postgresql://ann@127.0.0.1" in said
    assert "start PostgreSQL" in said
    assert "secret" not in said


def test_a_bus_that_is_down_says_what_was_tried_and_how_to_start_one(
    capsys: pytest.CaptureFixture[str], clean_database: str
) -> None:
    bus = f"nats://ann:secret@127.0.0.1:{free_port()}"

    said = refused(capsys, *worker("--bank", clean_database, "--bus", bus))

    assert "nats-server -js" in said
    assert "secret" not in said


def test_wrong_credentials_of_the_database_are_said(
    capsys: pytest.CaptureFixture[str], fresh_database: FreshDatabase, nats_url: str
) -> None:
    bank = fresh_database().replace("correct", "wrong")

    said = refused(capsys, *worker("--bank", bank, "--bus", nats_url))

    assert "check user and password" in said
    assert "horse" not in said


def test_checking_the_settings_shows_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    places = ("--bank", "postgresql://ann:secret@db/assay", "--bus", "nats://ann:hidden@bus:4222")

    with pytest.raises(SystemExit) as ended:
        main([*serve(*places), "--check"])

    said = capsys.readouterr()
    assert ended.value.code == 0
    assert "secret" not in said.out + said.err
    assert "hidden" not in said.out + said.err


def test_dead_letters_of_a_quiet_bus_are_none(
    capsys: pytest.CaptureFixture[str], nats_server: NatsServer
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["worker", "dead-letters", "list", "--bus", nats_server.fresh(), "--json"])

    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == {"dead_letters": []}


def test_a_dead_letter_that_is_not_there_is_said(
    capsys: pytest.CaptureFixture[str], nats_server: NatsServer
) -> None:
    said = refused(capsys, "worker", "dead-letters", "drop", "7", "--bus", nats_server.fresh())

    assert "there is no dead letter 7" in said
