"""A whole bank in PostgreSQL in one file, and back; what was erased since stays erased."""

import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from assay.errors import StoreError
from assay.stores.backup import Copied
from assay.stores.postgres.backup_file import BackupWriter, Contents, Table, contents
from assay.stores.postgres.burying import buried, bury
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres, in_transaction
from assay.stores.postgres.schema import MIGRATIONS, version_of

# Parents first. Leases and news are of the moment; the format is the program's.
TABLES = tuple(
    "meta namespaces records superseded tombstones record_postings vectors turns turn_postings "
    "erased_turns sessions journal subject_keys erased_entries erased_subjects cache "
    "cache_records".split()
)
"""What a backup holds."""

_NUMBERED = ("namespaces", "turns", "sessions", "cache")
_LONG_SECONDS = 24 * 3600.0
_CHUNK_BYTES = 1 << 20
_UNDO_SECONDS = 5.0
_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02

_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_ALONE = "LOCK TABLE format IN ACCESS EXCLUSIVE MODE"
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'assay' AND pid <> pg_backend_pid()
"""
_EMPTY = f"TRUNCATE {', '.join(TABLES)}, outbox"
_GO_ON_COUNTING = """
SELECT setval(pg_get_serial_sequence('{0}', 'number'), coalesce(max(number), 0) + 1, false) FROM {0}
"""
_RECORDS = "SELECT count(*) FROM records"


async def back_up(url: str, file: Path) -> Copied:
    """Write a bank, as it is at one moment, into one new file; others may go on using it.

    Raises:
        StoreError: If there is no bank, the file is there already, or it cannot be written.
    """
    async with existing_database(url) as database, _new_file(file) as writer:
        async with (
            database.apart() as connection,
            in_transaction(connection, isolation="repeatable_read", readonly=True),
        ):
            version = await version_of(connection, database.name, len(MIGRATIONS))
            tables = [await _copy_out(connection, table, writer) for table in TABLES]
            records = await connection.fetchval(_RECORDS)
        listed = Contents(format=version, tables=tables)
        size = await anyio.to_thread.run_sync(writer.finish, listed)
    return Copied(bytes=size, records=records)


@asynccontextmanager
async def existing_database(url: str) -> AsyncGenerator[Postgres]:
    """The database of a bank that is there; none is made.

    Raises:
        StoreError: If there is none, or the server cannot be used.
    """
    database = Postgres(url)
    async with database.apart() as connection:
        if await version_of(connection, database.name, len(MIGRATIONS)) == 0:
            raise StoreError(f"{database.name} holds no bank; check the URL")
    async with database:
        yield database


async def restore(file: Path, url: str) -> Copied:
    """Make the bank in a database what a backup holds, less what was erased in that bank.

    Leases stay: who held one before gets no lower revision afterwards.

    Raises:
        StoreError: If the backup is missing, somebody has the bank open, or it cannot be written;
            nothing was changed then.
        StoreCorrupt: If the backup is damaged or is none; nothing was changed then.
        NewerFormat: If a newer Assay wrote it; nothing was changed then.
    """
    listed = await anyio.to_thread.run_sync(contents, file)
    size = (await anyio.Path(file).stat()).st_size
    async with Postgres(url) as database:
        pass  # its tables are there now, and its own connections gone
    async with database.apart() as connection, in_transaction(connection):
        await _be_alone(connection, database.name)
        gone = await buried(connection)
        await connection.execute(_EMPTY)
        await _copy_all_in(connection, file, listed)
        before = await connection.fetchval(_RECORDS)
        await bury(connection, gone)
        after = await connection.fetchval(_RECORDS)
    return Copied(bytes=size, records=after, erased=before - after)


@asynccontextmanager
async def _new_file(file: Path) -> AsyncGenerator[BackupWriter]:
    writer = await anyio.to_thread.run_sync(BackupWriter, file)
    try:
        yield writer
    finally:
        with anyio.move_on_after(_UNDO_SECONDS, shield=True):
            await anyio.to_thread.run_sync(writer.close)


async def _be_alone(connection: Connection, name: str) -> None:
    # Who opens the bank from here on waits for the end of the transaction.
    await connection.execute(_ALONE)
    with anyio.move_on_after(_WAIT_SECONDS):
        while await _others(connection):  # noqa: ASYNC110  # other processes set no event
            await anyio.sleep(_PAUSE_SECONDS)
    if await _others(connection):
        raise StoreError(
            f"the bank {name} is open in another program; nothing was restored: end the services, "
            "workers and chats that use it and try again"
        )


async def _others(connection: Connection) -> int:
    # Otherwise a transaction sees who was there when it first looked.
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    count: int = await connection.fetchval(_OTHERS)
    return count


async def _copy_out(connection: Connection, table: str, writer: BackupWriter) -> Table:
    columns = [row[0] for row in await connection.fetch(_COLUMNS, table)]
    waiting = bytearray()

    async def take(content: bytes) -> None:
        waiting.extend(content)
        if len(waiting) >= _CHUNK_BYTES:
            await write()

    async def write() -> None:
        await anyio.to_thread.run_sync(writer.write, bytes(waiting))
        waiting.clear()

    await anyio.to_thread.run_sync(writer.begin, table)
    await connection.copy_from_table(
        table, output=take, columns=columns, format="binary", timeout=_LONG_SECONDS
    )
    await write()
    return Table(table, columns)


async def _copy_all_in(connection: Connection, file: Path, listed: Contents) -> None:
    archive = await anyio.to_thread.run_sync(zipfile.ZipFile, file)
    try:
        for table in listed.tables:
            await connection.copy_to_table(
                table.name,
                source=_chunks(archive, table.name),
                columns=table.columns,
                format="binary",
                timeout=_LONG_SECONDS,
            )
    finally:
        archive.close()
    for name in _NUMBERED:
        await connection.execute(_GO_ON_COUNTING.format(name))


async def _chunks(archive: zipfile.ZipFile, table: str) -> AsyncIterator[bytes]:
    with await anyio.to_thread.run_sync(archive.open, table) as member:
        while content := await anyio.to_thread.run_sync(member.read, _CHUNK_BYTES):
            yield content
