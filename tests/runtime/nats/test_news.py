"""News of the journals: out of the outbox in PostgreSQL, over the bus, to other processes."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.nats_servers import NatsServer, running_nats

from assay.runtime.nats.connection import Connection
from assay.runtime.nats.news import Watch, relay, tell, watching
from assay.runtime.nats.streams import open_nats, stream_name
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.outbox import PostgresOutbox
from assay.stores.protocols import Appended, JournalEntry, Wait
from assay.stores.records import Namespace, SessionId

ANNA = Namespace("acme\x1fanna")
STREAM = SessionId("acme%1Fanna/s")


class ListedOutbox:
    """An outbox over a list; keeps what it is told to forget out of sight only."""

    def __init__(self, sequences: Sequence[int]) -> None:
        self.rows = [Appended(STREAM, n, ANNA, f"{place:06}") for place, n in enumerate(sequences)]
        self.more = anyio.Event()

    async def read(self, *, after: str = "", limit: int) -> list[Appended]:
        await anyio.lowlevel.checkpoint()
        return [row for row in self.rows if row.cursor > after][:limit]

    async def trim(self, cursor: str) -> int:
        await anyio.lowlevel.checkpoint()
        before = len(self.rows)
        self.rows = [row for row in self.rows if row.cursor > cursor]
        return before - len(self.rows)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Wait]:
        async def wait(seconds: float) -> None:
            with anyio.move_on_after(seconds):
                await self.more.wait()

        yield wait


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with open_nats(nats_url) as opened:
        yield opened


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with running_nats(tmp_path) as server:
        yield server


async def kept(connection: Connection) -> int:
    name = stream_name(connection.prefix, "events")
    info = await connection.stream_api("look", lambda js: js.stream_info(name))
    return info.state.messages


async def first(watch: Watch, count: int) -> list[int]:
    with anyio.fail_after(10):
        return [await anext(watch) for _ in range(count)]


async def test_what_was_told_is_forgotten_in_the_outbox(connection: Connection) -> None:
    outbox = ListedOutbox(range(5))

    told = [await tell(outbox, connection), await tell(outbox, connection)]

    assert told == [5, 0]
    assert outbox.rows == []
    assert await kept(connection) == 5


async def test_two_relays_tell_each_entry_once(connection: Connection, nats_url: str) -> None:
    one, other = ListedOutbox(range(300)), ListedOutbox(range(300))
    seen = list[int]()

    async with (
        open_nats(nats_url) as elsewhere,
        watching(elsewhere, STREAM) as watch,
        anyio.create_task_group() as group,
    ):
        group.start_soon(relay, one, connection)
        group.start_soon(relay, other, elsewhere)
        seen = await first(watch, 300)
        while one.rows or other.rows:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert seen == list(range(300))
    assert await kept(connection) == 300


async def test_a_watch_begins_after_what_is_known_and_sees_what_comes(
    connection: Connection,
) -> None:
    await tell(ListedOutbox(range(4)), connection)

    async with watching(connection, STREAM, after=1) as watch:
        before = await first(watch, 2)
        await tell(ListedOutbox([4, 5]), connection)
        after = await first(watch, 2)

    assert (before, after) == ([2, 3], [4, 5])


async def test_news_lost_told_twice_or_late_makes_no_gap(connection: Connection) -> None:
    async with watching(connection, STREAM) as watch:
        await tell(ListedOutbox([0, 3, 1, 3, 2, 5]), connection)
        seen = await first(watch, 6)

    assert seen == [0, 1, 2, 3, 4, 5]


async def test_a_watch_catches_up_when_the_server_is_back(own_server: NatsServer) -> None:
    async with (
        open_nats(own_server.url) as here,
        open_nats(own_server.url) as there,
        watching(there, STREAM) as watch,
    ):
        await tell(ListedOutbox([0]), here)
        before = await first(watch, 1)
        own_server.kill()
        await anyio.to_thread.run_sync(own_server.start)
        await tell(ListedOutbox([1]), here)
        after = await first(watch, 1)

    assert (before, after) == ([0], [1])


async def test_news_has_no_word_of_what_was_said(connection: Connection) -> None:
    await tell(ListedOutbox([7]), connection)
    name = stream_name(connection.prefix, "events")

    told = await connection.stream_api("look", lambda js: js.get_msg(name, 1))

    assert told.data == b'{"session":"acme%1Fanna/s","sequence":7}'


async def test_what_is_appended_in_postgres_is_seen_in_another_process(
    connection: Connection, nats_url: str, clean_database: str
) -> None:
    seen = list[int]()

    async with (
        Postgres(clean_database) as database,
        open_nats(nats_url) as elsewhere,
        watching(elsewhere, STREAM) as watch,
        anyio.create_task_group() as group,
    ):
        group.start_soon(relay, PostgresOutbox(database), connection)
        journal = PostgresJournal(database)
        for number in range(3):
            await journal.append(STREAM, [JournalEntry(number, b"{}")])
            seen += await first(watch, 1)
        group.cancel_scope.cancel()

    assert seen == [0, 1, 2]
