"""The connection refuses clearly, and comes back by itself."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from tests.nats_servers import NatsServer, running_nats
from tests.received import Received

from assay.errors import BusError, ConfigError
from assay.runtime.nats.address import address_of, masked
from assay.runtime.nats.connection import Connection, Message
from assay.runtime.nats.opening import connected
from assay.runtime.nats.streams import KEPT, open_nats, purge, remove, stream_name, subject, token
from assay.stores.records import Namespace


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with running_nats(tmp_path) as server:
        yield server


@pytest.mark.parametrize(
    "url", ["", "localhost:4222", "http://localhost", "nats://", "nats://h/a.b", "nats://h:port"]
)
def test_an_address_of_a_bus_is_checked(url: str) -> None:
    with pytest.raises(ConfigError):
        address_of(url)


def test_an_address_has_servers_and_a_prefix() -> None:
    address = address_of("nats://u:secret@one:4223,two/staging")

    assert address.servers == ["nats://u:secret@one:4223", "nats://two"]
    assert address.prefix == "staging"
    assert address.shown == "nats://one:4223, nats://two:4222"


def test_a_password_is_never_shown() -> None:
    assert masked("nats://u:secret@one,v:secret@two/x") == "nats://one,two/x"


async def test_a_server_that_is_down_is_named_with_what_starts_one() -> None:
    with pytest.raises(BusError, match=r"127\.0\.0\.1:9 .*`nats-server -js`"):
        async with open_nats("nats://127.0.0.1:9"):
            pass


async def test_a_server_without_jetstream_is_refused(tmp_path: Path) -> None:
    with (
        running_nats(tmp_path, jetstream="") as server,
        pytest.raises(BusError, match=r"without JetStream.*nats-server -js"),
    ):
        async with open_nats(server.url):
            pass


async def test_a_server_with_too_little_space_says_how_much_is_needed(tmp_path: Path) -> None:
    with (
        running_nats(tmp_path, jetstream="max_file_store: 500MB") as server,
        pytest.raises(BusError, match=r"reserve 704 MiB.*max_file_store"),
    ):
        async with open_nats(server.url):
            pass


async def test_a_server_of_an_older_version_is_refused() -> None:
    served = anyio.Event()

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b'INFO {"version":"2.9.3","max_payload":1048576}\r\n')
            while b"PING" not in await stream.receive():
                pass
            await stream.send(b"PONG\r\n")
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()
        served.set()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no database here
        with pytest.raises(BusError, match=r"version 2\.9\.3; at least 2\.11 is needed"):
            async with open_nats(f"nats://127.0.0.1:{port}"):
                pass
        await served.wait()
        group.cancel_scope.cancel()


async def test_wrong_credentials_are_refused_without_showing_them(tmp_path: Path) -> None:
    config = "authorization { user: anna, password: right }"

    with running_nats(tmp_path, config=config) as server:
        wrong = server.url.replace("nats://", "nats://anna:hidden@")
        with pytest.raises(BusError, match="refused the user or password") as refused:
            async with open_nats(wrong):
                pass
        async with open_nats(server.url.replace("nats://", "nats://anna:right@")) as connection:
            shown = connection.shown

    assert "hidden" not in str(refused.value)
    assert shown == server.url


async def test_a_server_without_tls_is_refused_where_tls_is_asked_for(
    nats_server: NatsServer,
) -> None:
    with pytest.raises(BusError, match="expected TLS of the bus at tls://127"):
        async with open_nats(nats_server.url.replace("nats://", "tls://")):
            pass


async def test_a_server_without_tls_is_told_no_password() -> None:
    told = bytearray()

    async def plain(client: SocketStream) -> None:
        async with client:
            await client.send(b'INFO {"version":"2.11.0","max_payload":1048576}\r\n')
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    told.extend(await client.receive())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no database here
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, plain)
        with pytest.raises(BusError, match="expected TLS"):
            async with open_nats(f"tls://anna:hidden@127.0.0.1:{port}"):
                pass
        group.cancel_scope.cancel()

    assert bytes(told) == b""


async def test_a_server_that_goes_and_comes_is_told_of_in_the_log(
    own_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_nats(own_server.url) as connection:
        own_server.kill()
        with anyio.fail_after(15):
            while not caplog.messages:
                await anyio.wait_all_tasks_blocked()
        own_server.start()
        with anyio.fail_after(15):
            await connection.reconnected()

    assert caplog.messages == [
        f"assay: the bus at {own_server.url} is lost; it is tried until it is back",
        f"assay: the bus at {own_server.url} is back",
    ]


async def test_opening_twice_keeps_what_is_there(nats_url: str) -> None:
    where = subject("x", "events", Namespace("u"), "s").partition(".")[2]

    async with open_nats(nats_url) as connection:
        await connection.store(f"{connection.prefix}.{where}", b"1")
    async with open_nats(nats_url) as connection:
        number = await connection.store(f"{connection.prefix}.{where}", b"2")

    assert number == 2


async def test_the_same_message_id_is_kept_once(nats_url: str) -> None:
    async with open_nats(nats_url) as connection:
        where = subject(connection.prefix, "events", Namespace("u"), "s")
        numbers = [await connection.store(where, b"1", message_id="m") for _ in range(3)]

    assert numbers == [1, 1, 1]


async def test_a_connection_outlives_its_server(own_server: NatsServer) -> None:
    got = list[bytes]()

    async with open_nats(own_server.url) as connection:
        where = subject(connection.prefix, "events", Namespace("u"), "s")
        async with connection.receiving(where, lambda message: got.append(message.data)):
            first = await connection.store(where, b"before")
            own_server.kill()
            await anyio.to_thread.run_sync(own_server.start)
            second = await connection.store(where, b"after")

    assert (first, second) == (1, 2)
    assert got == [b"before", b"after"]


async def test_what_is_sent_once_one_listens_is_never_missed(nats_server: NatsServer) -> None:
    """Sent before this process does anything else: what listening needs is on the server already."""
    received = Received[Message]()

    async with (
        connected(nats_server.fresh()) as connection,
        connection.receiving(f"{connection.prefix}.news", received),
    ):
        nats_server.send(f"{connection.prefix}.news", "now")
        await received.next(within=5)

    assert [message.data for message in received.items] == [b"now"]


async def test_one_may_listen_while_the_server_is_away(own_server: NatsServer) -> None:
    received = Received[Message]()

    async with connected(own_server.url) as connection:
        own_server.kill()
        async with connection.receiving(f"{connection.prefix}.news", received):
            own_server.start()
            with anyio.fail_after(15):
                await connection.reconnected()
            own_server.send(f"{connection.prefix}.news", "later")
            await received.next(within=5)

    assert [message.data for message in received.items] == [b"later"]


async def test_a_server_that_stays_away_is_an_error_after_the_patience(
    own_server: NatsServer,
) -> None:
    async with open_nats(own_server.url) as connection:
        where = subject(connection.prefix, "events", Namespace("u"), "s")
        own_server.kill()

        with pytest.raises(BusError, match="could not store"):
            await connection.store(where, b"1", patience=0.1)


async def test_a_message_above_the_limit_says_which_setting_helps(nats_url: str) -> None:
    async with open_nats(nats_url) as connection:
        where = subject(connection.prefix, "events", Namespace("u"), "s")

        with pytest.raises(BusError, match="max_payload"):
            await connection.store(where, bytes(2_000_000))


@pytest.mark.parametrize("name", ["", "a b", "a.b", "*", ">", "ü\x1fé", "=x", "x" * 500])
def test_a_token_is_legal_for_any_name(name: str) -> None:
    made = token(name)

    assert made
    assert len(made) <= 65
    assert not set(made) & set(". *>\r\n\t")


def test_tokens_keep_names_apart() -> None:
    names = ["", "_", "a.b", "a%2Eb", "A", "a", "x" * 500, "x" * 501]

    assert len({token(name) for name in names}) == len(names)


async def test_a_purge_reaches_every_stream_and_no_other_namespace(nats_url: str) -> None:
    async with open_nats(nats_url) as connection:
        for user in ("acme\x1fanna", "acme\x1fbert"):
            for where in _everywhere(connection, Namespace(user)):
                await connection.store(where, b"text")

        await purge(connection, Namespace("acme\x1fanna"))
        left = [await _subjects(connection, index) for index in range(len(KEPT))]

    assert all(len(subjects) == 1 and "bert" in subjects[0] for subjects in left)


async def test_an_installation_can_be_removed(nats_url: str) -> None:
    async with open_nats(nats_url) as connection:
        await remove(connection)
        await remove(connection)
        name = stream_name(connection.prefix, "jobs")
        info = await connection.found("look", lambda js: js.stream_info(name))

    assert info is None


async def test_two_installations_on_one_server_do_not_meet(nats_server: NatsServer) -> None:
    received = Received[Message]()

    async with (
        connected(nats_server.fresh()) as one,
        connected(nats_server.fresh()) as other,
        one.receiving(f"{one.prefix}.>", received),
    ):
        await other.publish(f"{other.prefix}.news", b"not for you")
        await other.request(f"{other.prefix}.nobody", b"")
        await one.publish(f"{one.prefix}.news", b"yes")
        await received.next(within=5)

    assert [message.data for message in received.items] == [b"yes"]


def _everywhere(connection: Connection, namespace: Namespace) -> list[str]:
    prefix = connection.prefix
    jobs = f"{prefix}.jobs.turn.{token('acme')}.{token(namespace)}.{token('j')}"
    answers = f"{subject(prefix, 'answers', namespace, 'j')}.result"
    others = [subject(prefix, what, namespace, "j") for what in ("dead", "events", "session")]
    return [jobs, answers, *others]


async def _subjects(connection: Connection, index: int) -> list[str]:
    name = stream_name(connection.prefix, KEPT[index])
    info = await connection.stream_api("look", lambda js: js.stream_info(name, subjects_filter=">"))
    return list(info.state.subjects or {})
