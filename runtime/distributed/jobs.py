"""Work handed to another process, as whoever hands it out and whoever does it see it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

JobKind: TypeAlias = Literal["turn", "evaluation", "replay"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work.

    Attributes:
        id: Its name; work under one id is done at least once, and answered once.
        kind: Who can do it.
        tenant: Whose turn it is to be served; tenants are served in turn.
        namespace: Whose words are in it, so that erasure reaches it while it waits.
        payload: What is to be done.
    """

    id: str
    kind: JobKind
    tenant: str
    namespace: str
    payload: bytes


Piece: TypeAlias = Callable[[bytes], None]
"""Takes a part of an answer that is under way; must not block. Parts may get lost, never reordered."""

SendPiece: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Sends a part of the answer to whoever waits for it; may get lost."""

JobHandler: TypeAlias = Callable[[Job, SendPiece], Awaitable[bytes]]
"""Does a job and gives its answer; may be called again for the same job, here or elsewhere.

What it raises hands the job back: it is tried again, and put aside once it was tried too often.
Cancelled because the worker stops, it hands the job back too.
"""


class JobQueue(Protocol):
    """Work that waits until somebody has time for it."""

    async def submit(self, job: Job, *, deadline: float, piece: Piece | None = None) -> bytes:
        """Hand a job out and wait for its answer.

        On cancel the job is taken back; where it runs already, its handler is cancelled.

        Args:
            job: What is to be done.
            deadline: Seconds to wait for the answer.
            piece: Takes the parts of the answer as they come.

        Raises:
            BusError: If too many jobs wait already, nobody answered in time, or it was put aside.
        """
        ...

    async def work(
        self, kinds: Sequence[JobKind], handler: JobHandler, *, concurrency: int
    ) -> None:
        """Do jobs until cancelled, ``concurrency`` at once; cancelled, it hands open ones back."""
        ...
