"""What is kept on the bus, under which names, for how long, and how a namespace is erased from it.

A subject says the kind, the tenant and the namespace of what is under it, and never a word of text:
``PREFIX.jobs.KIND.TENANT.NAMESPACE.JOB`` and ``PREFIX.WHAT.TENANT.NAMESPACE.NAME`` for all else.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from nats.js import JetStreamContext, api

from assay.runtime.jobs import Job, JobKind
from assay.runtime.limits import tenant_user_of
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.opening import connected
from assay.stores.records import Namespace

Kept: TypeAlias = Literal["jobs", "answers", "dead", "events", "session"]
"""The streams: work that waits, its results, what failed for good, news of the journal, a turn's bus."""

KEPT: tuple[Kept, ...] = ("jobs", "answers", "dead", "events", "session")

_MIB = 1 << 20
_HOUR = 3600.0
_DAY = 24 * _HOUR
_TOKEN_LENGTH = 64


class Limits(NamedTuple):
    """Bounds of the queue; they hold for streams that do not exist yet.

    Attributes:
        waiting: Jobs that wait or are under way, of all tenants.
        waiting_of_one: Of one tenant and kind; exceeded by at most one job per submitter at once.
        silence: Seconds without a sign of life after which a job is given to another worker.
        tries: Times a job is tried before it is a dead letter.
        pause: Seconds before the second try; doubled before each further one.
    """

    waiting: int = 100_000
    waiting_of_one: int = 1_000
    silence: float = 10.0
    tries: int = 5
    pause: float = 0.25


DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def open_nats(url: str, *, limits: Limits = DEFAULT_LIMITS) -> AsyncGenerator[Connection]:
    """The bus at a URL, its streams made where they are missing; one that is there is left as it is.

    Args:
        url: ``nats://[user:password@]host[:port][/prefix]``; the prefix keeps installations apart.
        limits: Bounds of the streams that are made.

    Raises:
        ConfigError: If the URL is none.
        BusError: If the server is down, refuses the credentials, is too old or lacks JetStream.
    """
    async with connected(url) as connection:

        async def prepare() -> None:
            for kept in KEPT:
                await _ensure(connection, _config(connection.prefix, kept, limits))

        await prepare()
        connection.prepare = prepare
        yield connection


def token(name: str) -> str:
    """One token of a subject for a name of any characters; no two names share one.

    A long one becomes its SHA-256, so that a subject stays within what the server takes.
    """
    encoded = quote(name, safe="").replace(".", "%2E")
    if len(encoded) > _TOKEN_LENGTH:
        return f"={hashlib.sha256(name.encode()).hexdigest()}"
    return f"_{encoded}"


def stream_name(prefix: str, kept: Kept) -> str:
    """Name of a stream of an installation."""
    return f"{prefix}-{kept}"


def job_subject(prefix: str, job: Job) -> str:
    """Where a job waits; at most one message is kept under it."""
    return f"{prefix}.jobs.{job.kind}.{token(job.tenant)}.{token(job.namespace)}.{token(job.id)}"


def subject(prefix: str, what: Kept, namespace: Namespace, name: str) -> str:
    """Where all else about a namespace goes; ``name`` tells apart what is under it."""
    tenant = tenant_user_of(namespace).tenant
    return f"{prefix}.{what}.{token(tenant)}.{token(namespace)}.{token(name)}"


def consumer_name(kind: JobKind, tenant_token: str) -> str:
    """Name of the consumer that hands out a tenant's jobs of a kind."""
    return f"{kind}-{hashlib.sha256(tenant_token.encode()).hexdigest()[:32]}"


def kind_named(name: str) -> JobKind | None:
    """The kind of job of this name, as subjects have it."""
    match name:
        case "turn" | "evaluation" | "replay":
            return name
        case _:
            return None


async def purge(connection: Connection, namespace: Namespace) -> None:
    """Erase all of a namespace from the bus: jobs, results, dead letters, news.

    Raises:
        BusError: If a stream cannot be purged; erase again then.
    """
    for kept in KEPT:
        tokens = "*.*" if kept == "jobs" else "*"
        await purge_subject(
            connection, kept, f"{connection.prefix}.{kept}.{tokens}.{token(namespace)}.>"
        )


async def purge_subject(connection: Connection, kept: Kept, pattern: str) -> None:
    """Drop what a stream keeps under a subject, which may have wildcards."""
    name = stream_name(connection.prefix, kept)
    await connection.stream_api("purge", lambda js: js.purge_stream(name, subject=pattern))


async def remove(connection: Connection) -> None:
    """Delete the streams of this installation and all that is in them."""
    for kept in KEPT:
        await _delete(connection, stream_name(connection.prefix, kept))


async def _delete(connection: Connection, name: str) -> None:
    await connection.found("delete a stream", lambda js: js.delete_stream(name))


async def _ensure(connection: Connection, config: api.StreamConfig) -> None:
    name = str(config.name)

    async def there(js: JetStreamContext) -> api.StreamInfo:
        return await js.stream_info(name)

    async def made(js: JetStreamContext) -> api.StreamInfo:
        return await js.add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # untyped rest

    if await connection.found("look up a stream", there) is None:
        await connection.stream_api("create a stream", made)


def _config(prefix: str, kept: Kept, limits: Limits) -> api.StreamConfig:
    config = api.StreamConfig(
        name=stream_name(prefix, kept),
        description="Assay: may be lost, the bank is the truth",
        subjects=[f"{prefix}.{kept}.>"],
        retention=api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        discard=api.DiscardPolicy.OLD,
        max_bytes=64 * _MIB,
    )
    match kept:
        case "jobs":
            return replace(
                config,
                retention=api.RetentionPolicy.WORK_QUEUE,
                discard=api.DiscardPolicy.NEW,
                discard_new_per_subject=True,
                max_msgs=limits.waiting,
                max_bytes=256 * _MIB,
                max_msgs_per_subject=1,
                allow_msg_ttl=True,
            )
        case "answers":
            return replace(
                config,
                subjects=[f"{prefix}.answers.*.*.*.result"],
                max_msgs_per_subject=1,
                max_age=_HOUR / 6,
                max_bytes=256 * _MIB,
                allow_direct=True,
            )
        case "dead":
            return replace(config, max_age=30 * _DAY)
        case "events":
            return replace(config, max_age=7 * _DAY, duplicate_window=_HOUR / 6, allow_direct=True)
        case "session":
            return replace(config, max_age=_HOUR / 6)
