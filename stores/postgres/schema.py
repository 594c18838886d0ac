"""The bank's PostgreSQL format: numbered migrations, made while other programs go on.

A change is made in two releases. One *expands*: it adds tables, columns with defaults or indexes,
and writes both the old and the new; programs of the format before may go on beside it. A later one
*contracts*: it removes what only older programs read, and says so by its ``readable_from``. So a
program refuses a bank only when its own format is below ``readable_from``, not whenever the bank
is newer, and two releases can run side by side while hosts are upgraded one by one.

A released migration is never edited; a change is a new one at the end.
"""

from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import NewerFormat
from assay.stores.postgres.connection import Connection

_LOCK = 0x4153534159
"""Advisory lock under which one program at a time migrates (``ASSAY``)."""


class Migration(NamedTuple):
    """One step from a format to the next.

    Attributes:
        sql: Statements, run in one transaction.
        readable_from: The oldest format whose programs may use the bank afterwards.
    """

    sql: str
    readable_from: int


_RECORDS = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE format (version integer NOT NULL, readable_from integer NOT NULL);
INSERT INTO format VALUES (0, 0);
CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);

-- Whoever writes to a namespace holds its row until the commit, so versions are in order of
-- commit. embedded: every record up to this version has its vector.
CREATE TABLE namespaces (
  number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  version bigint NOT NULL DEFAULT 0,
  embedded bigint NOT NULL DEFAULT 0,
  records bigint NOT NULL DEFAULT 0,
  record_words bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  turn_words bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE records (
  namespace integer NOT NULL REFERENCES namespaces,
  version bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  valid_from bigint,
  valid_to bigint,
  body bytea NOT NULL,
  PRIMARY KEY (namespace, version),
  UNIQUE (namespace, id)
);

-- apart from the records: a successor may come before, and stays in force when erased
CREATE TABLE superseded (
  namespace integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (namespace, id)
);

CREATE TABLE tombstones (
  namespace integer NOT NULL,
  version bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, version),
  UNIQUE (namespace, id)
);

-- number: the record's version; length: words of its text and one more
CREATE TABLE record_postings (
  namespace integer NOT NULL,
  word text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  count integer NOT NULL,
  length integer NOT NULL,
  PRIMARY KEY (namespace, word, number) INCLUDE (count, length)
);

-- no dimension: the bank is bound to its embedder elsewhere; erased with its record
CREATE TABLE vectors (
  namespace integer NOT NULL,
  version bigint NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (namespace, version),
  FOREIGN KEY (namespace, version) REFERENCES records ON DELETE CASCADE
);
"""

_SESSIONS = """
CREATE TABLE turns (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  namespace integer NOT NULL REFERENCES namespaces,
  id text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  at bigint NOT NULL,
  body bytea NOT NULL,
  UNIQUE (namespace, id)
);
CREATE INDEX turns_by_position ON turns (namespace, session, position, number);
CREATE INDEX turns_by_time ON turns (namespace, at, position, number);
CREATE TABLE turn_postings (
  namespace integer NOT NULL,
  word text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  count integer NOT NULL,
  length integer NOT NULL,
  PRIMARY KEY (namespace, word, number) INCLUDE (count, length)
);
CREATE TABLE erased_turns (
  namespace integer NOT NULL REFERENCES namespaces,
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, id)
);

-- key_id: of the key the payload is encrypted with; empty: erased with its subject
CREATE TABLE sessions (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE journal (
  session bigint NOT NULL REFERENCES sessions,
  sequence bigint NOT NULL,
  payload bytea STORAGE EXTERNAL NOT NULL,
  key_id bytea NOT NULL,
  PRIMARY KEY (session, sequence)
);
CREATE TABLE subject_keys (owner text COLLATE "C" PRIMARY KEY, id bytea NOT NULL, key bytea NOT NULL);

-- what stands in the place of an erased entry, so that a restored backup is mended too
CREATE TABLE erased_entries (
  session text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  payload bytea NOT NULL,
  PRIMARY KEY (session, sequence)
);
CREATE TABLE erased_subjects (id bytea PRIMARY KEY, namespace text COLLATE "C" NOT NULL);

CREATE TABLE cache (
  number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value bytea NOT NULL,
  request bytea NOT NULL,
  record_ids text NOT NULL,
  UNIQUE (namespace, key)
);
CREATE INDEX cache_by_number ON cache (namespace, number);
CREATE TABLE cache_records (
  namespace text COLLATE "C" NOT NULL,
  record_id text COLLATE "C" NOT NULL,
  cache_number bigint NOT NULL REFERENCES cache ON DELETE CASCADE,
  PRIMARY KEY (namespace, record_id, cache_number)
);
CREATE INDEX cache_records_by_row ON cache_records (cache_number);

-- revision: the fencing token; expires: by this server's clock, the only one that counts
CREATE TABLE leases (
  session text COLLATE "C" PRIMARY KEY,
  owner text NOT NULL,
  revision bigint NOT NULL,
  expires timestamptz NOT NULL
) WITH (fillfactor = 50);

-- which entries were appended, to be told others; transaction: that appended them
CREATE TABLE outbox (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
  session text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL
);
CREATE INDEX outbox_by_transaction ON outbox (transaction, number);
CREATE INDEX outbox_by_namespace ON outbox (namespace);
"""

MIGRATIONS = (Migration(_RECORDS + _SESSIONS, readable_from=1),)

FORMAT = len(MIGRATIONS)
"""The format this release writes."""


async def prepare(
    connection: Connection, name: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring the bank to the format of ``migrations``, all steps or none, in the open transaction.

    A bank that is newer but still readable is left as it is.

    Args:
        connection: In a transaction.
        name: The bank's name in errors.
        migrations: What this program knows.

    Raises:
        NewerFormat: If the bank is no longer readable by this program; nothing was written.
    """
    if await _version(connection, name, len(migrations)) >= len(migrations):
        return
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    version = await _version(connection, name, len(migrations))
    for migration in migrations[version:]:
        await connection.execute(migration.sql)
    await connection.execute(
        "UPDATE format SET version = greatest(version, $1), "
        "readable_from = greatest(readable_from, $2)",
        len(migrations),
        migrations[-1].readable_from,
    )


async def _version(connection: Connection, name: str, known: int) -> int:
    """The bank's format; 0 for an empty database, which gets its table of formats."""
    if await connection.fetchval("SELECT to_regclass('format')") is None:
        return 0
    version, readable_from = await connection.fetchrow("SELECT version, readable_from FROM format")
    if known < readable_from:
        raise NewerFormat(
            f"{name} has format {version} and is readable from format {readable_from}, this Assay "
            f"knows {known}; upgrade Assay on this host"
        )
    return int(version)
