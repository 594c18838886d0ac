"""Jobs into their stream, and who hands them out: one consumer for each tenant and kind of job."""

from typing import NamedTuple

import anyio
from nats.js import JetStreamContext, api

from assay.runtime.jobs import Job, JobKind
from assay.runtime.nats.connection import Connection, StreamFull
from assay.runtime.nats.messages import body_of, encode
from assay.runtime.nats.streams import (
    Limits,
    consumer_name,
    job_subject,
    kind_named,
    stream_name,
    token,
)

_IDLE_SECONDS = 24 * 3600.0
_PAGE = 256
_FRESH_SECONDS = 1.0


class Share(NamedTuple):
    """The jobs of one kind of one tenant.

    Attributes:
        kind: Of the jobs.
        tenant: Token of the tenant in subjects.
    """

    kind: JobKind
    tenant: str


class _Seen(NamedTuple):
    """How many jobs a share had, those submitted here since included, and when it was looked up."""

    jobs: int
    at: float


def share_of(job: Job) -> Share:
    """Where a job belongs."""
    return Share(job.kind, token(job.tenant))


async def put(connection: Connection, job: Job, *, seconds: float = 0.0) -> bool:
    """Put a job into the stream and tell the workers; gives whether it was not in it.

    Args:
        connection: To the server.
        job: What is to be done.
        seconds: After which nobody begins it any more; 0: it waits as long as it takes.

    Raises:
        StreamFull: If there is no room.
        BusError: If the server stays away.
    """
    where = job_subject(connection.prefix, job)
    try:
        await connection.store(where, encode(body_of(job)), seconds=seconds)
    except StreamFull as full:
        if full.same:
            return False
        raise
    await wake(connection, share_of(job))
    return True


async def wake(connection: Connection, share: Share) -> None:
    """Tell the workers that a share has a job; they find out by themselves in a second or so."""
    await connection.publish(f"{connection.prefix}.wake.{share.kind}.{share.tenant}")


class Consumers:
    """The consumers of the stream of jobs.

    Args:
        connection: To the server.
        limits: Says how long a worker may be silent.
    """

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._stream = stream_name(connection.prefix, "jobs")
        self._seen: dict[Share, _Seen] = {}

    async def has_room(self, share: Share) -> bool:
        """Whether a share may get one more job; makes its consumer if there is none.

        It is looked up once a second while there is much room, and each time while there is little.
        """
        now, limit = anyio.current_time(), self._limits.waiting_of_one
        seen = self._seen.get(share)
        if seen is None or now - seen.at > _FRESH_SECONDS or seen.jobs * 2 >= limit:
            seen = _Seen(await self.jobs_of(share), now)
        self._seen[share] = seen._replace(jobs=seen.jobs + 1)
        return seen.jobs < limit

    async def jobs_of(self, share: Share) -> int:
        """Jobs of a share that wait or are under way; makes its consumer if there is none."""
        name = consumer_name(share.kind, share.tenant)

        async def there(js: JetStreamContext) -> api.ConsumerInfo:
            info: api.ConsumerInfo = await js.consumer_info(self._stream, name)
            return info

        async def made(js: JetStreamContext) -> api.ConsumerInfo:
            add = js.add_consumer  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            info: api.ConsumerInfo = await add(self._stream, self._config(share))
            return info

        info = await self._connection.found("look up a consumer", there)
        if info is None:
            info = await self._connection.stream_api("create a consumer", made)
        return _jobs(info)

    async def waiting(self, kinds: frozenset[JobKind]) -> list[Share]:
        """Every share of these kinds with a job that waits or is under way."""
        shares = list[Share]()
        offset = 0
        while page := await self._page(offset):
            offset += len(page)
            found = (_share(info.config) for info in page if _jobs(info))
            shares += [share for share in found if share and share.kind in kinds]
            if len(page) < _PAGE:
                break
        return shares

    async def _page(self, offset: int) -> list[api.ConsumerInfo]:
        return await self._connection.stream_api(
            "list consumers", lambda js: js.consumers_info(self._stream, offset)
        )

    def _config(self, share: Share) -> api.ConsumerConfig:
        name = consumer_name(share.kind, share.tenant)
        return api.ConsumerConfig(
            name=name,
            durable_name=name,
            filter_subject=f"{self._connection.prefix}.jobs.{share.kind}.{share.tenant}.>",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._limits.silence,
            max_ack_pending=-1,
            inactive_threshold=_IDLE_SECONDS,
        )


def _jobs(info: api.ConsumerInfo) -> int:
    return (info.num_pending or 0) + (info.num_ack_pending or 0)


def _share(config: api.ConsumerConfig) -> Share | None:
    tokens = (config.filter_subject or "").split(".")
    kind = kind_named(tokens[2]) if len(tokens) > 3 else None  # noqa: PLR2004 - PREFIX.jobs.KIND.TENANT
    return Share(kind, tokens[3]) if kind else None
