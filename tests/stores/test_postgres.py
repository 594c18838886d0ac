"""The database itself: what cannot be opened, servers that go away, several programs at once."""

import socket
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import pytest
from anyio.abc import SocketAttribute, SocketStream

from assay.errors import ConfigError, EmbedderMismatch, StoreClosed, StoreError
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres import database as database_module
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.mapping import shown
from assay.stores.postgres.records import PostgresRecords
from assay.stores.records import RecordId

from ..servers import (  # noqa: TID252 - every room's servers
    PASSWORD,
    FreshDatabase,
    PostgresServer,
    free_port,
    running_postgres,
)
from .support import ANN, NOON, NoonClock, ids, memory


async def opening(url: str) -> str:
    """What opening a database fails with."""
    with pytest.raises(StoreError) as caught:
        async with Postgres(url):
            pass
    return str(caught.value)


async def test_a_server_that_is_down_is_named_with_how_to_start_one() -> None:
    url = f"postgresql://ann:secret@127.0.0.1:{free_port()}/bank"

    said = await opening(url)

    assert shown(url) in said
    assert "start PostgreSQL (`docker compose up -d postgres`" in said
    assert "secret" not in said


async def test_a_server_that_starts_is_waited_for_at_opening() -> None:
    asked: list[bytes] = []

    async def refuse(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            asked.append(b"SSL?")
            await stream.send(b"N")
            await stream.receive()
            error = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
            await stream.send(b"E" + (len(error) + 4).to_bytes(4, "big") + error)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, refuse)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no Django here
        with pytest.raises(StoreError, match="is starting up"):
            async with Postgres(f"postgresql://ann@127.0.0.1:{port}/bank", patience=0.1):
                pass
        group.cancel_scope.cancel()

    assert len(asked) > 1


async def test_wrong_credentials_are_said(postgres_server: PostgresServer) -> None:
    url = postgres_server.url().replace("correct", "wrong")

    said = await opening(url)

    assert "password authentication failed" in said
    assert "check user and password of the URL" in said
    assert "horse" not in said


async def test_a_database_that_is_not_there_is_said(postgres_server: PostgresServer) -> None:
    said = await opening(postgres_server.url("nowhere"))

    assert 'database "nowhere" does not exist; make it with `createdb`' in said


async def test_a_user_who_may_make_nothing_is_told_what_is_needed(
    postgres_server: PostgresServer, fresh_database: FreshDatabase
) -> None:
    name = fresh_database().rpartition("/")[2]
    postgres_server.sql("CREATE ROLE weak LOGIN")
    try:
        said = await opening(postgres_server.socket_url(name).replace("postgres@", "weak@", 1))
    finally:
        postgres_server.sql("DROP ROLE weak")

    assert "the user needs CREATE on the database and its schema" in said
    assert "`CREATE EXTENSION vector`" in said


async def test_an_extension_that_is_not_installed_is_named(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        with pytest.raises(StoreError, match="install pgvector"):
            await database.fetch("CREATE EXTENSION no_such_extension")


async def test_a_database_of_another_program_is_left_alone(
    postgres_server: PostgresServer, fresh_database: FreshDatabase
) -> None:
    url = fresh_database()
    name = url.rpartition("/")[2]
    postgres_server.sql("CREATE TABLE records (song text)", database=name)

    said = await opening(url)

    assert "give Assay a database of its own" in said
    tables = postgres_server.sql("SELECT relname FROM pg_stat_user_tables", database=name)
    assert tables == "records"


async def test_a_server_too_old_is_refused(
    clean_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "OLDEST_SERVER", 99)

    assert "99 or later is needed; upgrade the server" in await opening(clean_database)


async def test_vectors_too_old_are_refused_and_nothing_is_made(
    fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh_database()
    monkeypatch.setattr(database_module, "OLDEST_PGVECTOR", (99, 1))

    assert "99.1 or later is needed; install it and run `ALTER EXTENSION" in await opening(url)

    monkeypatch.undo()
    async with Postgres(url) as database:
        assert await database.meta("embedder") is None


@pytest.mark.parametrize("url", ["bank", "mysql://h/x", "postgresql://h:port/x", ""])
def test_what_is_no_url_is_refused_before_any_effect(url: str) -> None:
    with pytest.raises(ConfigError, match="bank"):
        Postgres(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ann:secret@h:1/x", "postgresql://ann@h:1/x"),
        ("postgresql://ann:p%40ss@h/x?password=secret", "postgresql://ann@h/x"),
        ("postgresql://h/x", "postgresql://h/x"),
        ("postgresql:///x?host=/run", "postgresql:///x"),
    ],
)
def test_no_password_is_shown(url: str, expected: str) -> None:
    assert shown(url) == expected


async def test_a_closed_database_says_so(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        pass

    with pytest.raises(StoreClosed, match="was closed"):
        await database.fetch("SELECT 1")


async def test_many_programs_may_make_one_database_at_once(fresh_database: FreshDatabase) -> None:
    url = fresh_database()

    async def open_and_write(n: int) -> None:
        async with open_postgres_bank(url, embedder=HashingEmbedder(), clock=NoonClock()) as bank:
            await bank.store.write([memory(f"r{n}")])

    async with anyio.create_task_group() as group:
        for n in range(4):
            group.start_soon(open_and_write, n)

    async with Postgres(url) as database:
        current = await PostgresRecords(database).current(ANN, at=NOON)
        assert sorted(ids(current)) == ["r0", "r1", "r2", "r3"]


async def test_a_bank_is_bound_to_its_embedder(fresh_database: FreshDatabase) -> None:
    url = fresh_database()
    async with open_postgres_bank(url, embedder=HashingEmbedder(32), clock=NoonClock()):
        pass

    with pytest.raises(EmbedderMismatch, match="was made with embedder 'hashing-32@1'") as caught:
        async with open_postgres_bank(url, embedder=HashingEmbedder(64), clock=NoonClock()):
            pass

    assert PASSWORD not in str(caught.value)


async def test_an_error_of_the_body_comes_out_as_it_is(clean_database: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_postgres_bank(
            clean_database, embedder=HashingEmbedder(), clock=NoonClock()
        ):
            raise ZeroDivisionError


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux gives up on its own")
async def test_a_network_that_is_cut_is_noticed_by_the_connection(
    postgres_server: PostgresServer,
) -> None:
    async def work(connection: Connection) -> int:
        driver: Any = connection
        wire: socket.socket = driver._transport.get_extra_info("socket")
        return wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    async with Postgres(postgres_server.url()) as database:
        assert await database.read(work) == 10_000


async def test_a_connection_is_durable_and_iterates_whatever_the_server_says(
    postgres_server: PostgresServer, fresh_database: FreshDatabase
) -> None:
    url = fresh_database()
    name = url.rpartition("/")[2]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = serializable"):
        postgres_server.sql(f"ALTER DATABASE {name} SET {setting}")

    async with Postgres(url) as database:
        [row] = await database.fetch(
            "SELECT current_setting('synchronous_commit'), current_setting('hnsw.iterative_scan'), "
            "current_setting('transaction_isolation')"
        )

        assert list(row) == ["on", "strict_order", "read committed"]


async def test_a_name_too_long_for_an_index_is_said(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        name = "".join(map(chr, np.random.default_rng(0).integers(33, 126, 9_000)))
        with pytest.raises(StoreError, match="keep names and ids below"):
            await PostgresRecords(database).write([memory(name)])


async def test_what_fails_within_a_transaction_undoes_all_of_it(clean_database: str) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("INSERT INTO meta VALUES ('half', 'done')")
        raise ZeroDivisionError

    async with Postgres(clean_database) as database:
        with pytest.raises(ZeroDivisionError):
            await database.write(work)

        assert await database.meta("half") is None


@pytest.mark.timeout(60)
async def test_a_server_that_restarts_is_waited_for_and_one_that_stays_away_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    acknowledged: list[str] = []

    async def write(store: PostgresRecords, writer: int) -> None:
        for n in range(40):
            await store.write([memory(f"w{writer}-{n}")])
            acknowledged.append(f"w{writer}-{n}")

    with running_postgres() as server:
        async with (
            Postgres(server.url()) as database,
            Postgres(server.url(), patience=0.1) as impatient,
        ):
            store = PostgresRecords(database)
            async with anyio.create_task_group() as group:
                for writer in range(3):
                    group.start_soon(write, store, writer)
                await anyio.to_thread.run_sync(server.stop)
                with pytest.raises(StoreError, match="start PostgreSQL"):
                    await impatient.fetch("SELECT 1")
                await anyio.to_thread.run_sync(server.start)
            said = caplog.messages

            assert (
                said[0] == f"assay: the bank {database.name} is lost; it is tried until it is back"
            )
            assert said[-1] == f"assay: the bank {database.name} is back"
            assert len(said) < 10
            assert sorted(ids(await store.current(ANN, at=NOON))) == sorted(acknowledged)
            assert len(acknowledged) == 120


@pytest.mark.timeout(60)
async def test_an_older_server_serves_as_well() -> None:
    with running_postgres(16) as server:
        async with open_postgres_bank(
            server.url(), embedder=HashingEmbedder(), clock=NoonClock()
        ) as bank:
            await bank.store.write([memory("r1", "green tea"), memory("r2", "rain in march")])
            first = await bank.retriever.retrieve(ANN, "a cup of tea", limit=1, at=NOON)
            await bank.store.erase(ANN, [RecordId("r1")])
            second = await bank.retriever.retrieve(ANN, "a cup of tea", limit=9, at=NOON)

    assert ids([candidate.record for candidate in first]) == ["r1"]
    assert ids([candidate.record for candidate in second]) == ["r2"]
