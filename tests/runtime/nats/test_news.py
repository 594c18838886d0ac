"""News of the journals: out of the outbox in PostgreSQL, over the bus, to other processes."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg
from tests.nats_servers import NatsServer, running_nats
from tests.received import Received

from assay.runtime.nats.connection import Connection
from assay.runtime.nats.news import hearing, relay, tell
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


async def told(connection: Connection) -> list[int]:
    name = stream_name(connection.prefix, "events")
    messages = [
        await connection.stream_api("look", partial(_message, name, number))
        for number in range(1, await kept(connection) + 1)
    ]
    return [json.loads(message.data or b"")["sequence"] for message in messages]


def _message(name: str, number: int, js: JetStreamContext) -> Awaitable[RawStreamMsg]:
    return js.get_msg(name, number)


async def test_what_was_told_is_forgotten_in_the_outbox(connection: Connection) -> None:
    outbox = ListedOutbox(range(5))

    counts = [await tell(outbox, connection), await tell(outbox, connection)]

    assert counts == [5, 0]
    assert outbox.rows == []
    assert await kept(connection) == 5


async def test_two_relays_tell_each_entry_once(connection: Connection, nats_url: str) -> None:
    one, other = ListedOutbox(range(300)), ListedOutbox(range(300))

    async with open_nats(nats_url) as elsewhere, anyio.create_task_group() as group:
        group.start_soon(relay, one, connection)
        group.start_soon(relay, other, elsewhere)
        while one.rows or other.rows:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert await told(connection) == list(range(300))


async def test_who_listens_hears_of_every_session(connection: Connection, nats_url: str) -> None:
    heard = Received[SessionId]()

    async with open_nats(nats_url) as elsewhere, hearing(elsewhere, heard):
        await tell(ListedOutbox([0]), connection)
        await heard.next()

    assert heard.items == [STREAM]


async def test_who_listens_goes_on_when_the_server_is_back(own_server: NatsServer) -> None:
    heard = Received[SessionId]()

    async with (
        open_nats(own_server.url) as here,
        open_nats(own_server.url) as there,
        hearing(there, heard),
    ):
        own_server.kill()
        own_server.start()
        with anyio.fail_after(15):
            await there.reconnected()
        await tell(ListedOutbox([0]), here)
        await heard.next()

    assert heard.items == [STREAM]


async def test_news_has_no_word_of_what_was_said(connection: Connection) -> None:
    await tell(ListedOutbox([7]), connection)
    name = stream_name(connection.prefix, "events")

    message = await connection.stream_api("look", lambda js: js.get_msg(name, 1))

    assert message.data == b'{"session":"acme%1Fanna/s","sequence":7}'


async def test_what_is_appended_in_postgres_is_heard_of_in_another_process(
    connection: Connection, nats_url: str, clean_database: str
) -> None:
    heard = Received[SessionId]()

    async with (
        Postgres(clean_database) as database,
        open_nats(nats_url) as elsewhere,
        hearing(elsewhere, heard),
        anyio.create_task_group() as group,
    ):
        group.start_soon(relay, PostgresOutbox(database), connection)
        journal = PostgresJournal(database)
        for number in range(3):
            await journal.append(STREAM, [JournalEntry(number, b"{}")])
            await heard.next()
        group.cancel_scope.cancel()

    assert heard.items == [STREAM] * 3
    assert await told(connection) == [0, 1, 2]
