"""Pieces of a reply that come twice, or not at all, reach whoever asked once."""

from collections.abc import Sequence

import anyio
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.distributed.test_turns import process, shared_bank
from tests.runtime.rooms import SESSION, USER

from assay.guards.protocols import Decision
from assay.runtime.distributed.wire import Delta, Replied, encode
from assay.runtime.jobs import Job, JobHandler, JobKind, Piece, PieceSink
from assay.runtime.reply import Reply
from assay.stores.records import TurnId

TEXT = "Your cat is called Miso, and it is grey."


class Unreliable:
    """A queue whose worker sends these pieces of the reply, and then all of it."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    async def submit(self, job: Job, *, deadline: float, sink: PieceSink | None = None) -> bytes:
        assert sink is not None
        for piece in self._pieces:
            sink(piece)
        reply = Reply(
            text=TEXT, decision=Decision(method="word", judgements=()), turn_id=TurnId("t")
        )
        return encode(Replied(reply))

    async def work(
        self,
        kinds: Sequence[JobKind],
        handler: JobHandler,
        *,
        concurrency: int = 1,
        stopping: anyio.Event | None = None,
    ) -> None:
        raise AssertionError("unreachable")


@st.composite
def tries(draw: st.DrawFn) -> list[Piece]:
    """The reply cut into pieces, some of them lost, by one try after another."""
    sent: list[Piece] = []
    for attempt in range(1, draw(st.integers(1, 3)) + 1):
        cuts = sorted(draw(st.sets(st.integers(1, len(TEXT) - 1), max_size=6)))
        for at, end in zip([0, *cuts], [*cuts, len(TEXT)], strict=True):
            if draw(st.booleans()):
                sent.append(Piece(attempt, encode(Delta(at, TEXT[at:end]))))
    return sent


@given(pieces=tries())
async def test_the_pieces_that_arrive_are_the_reply(pieces: list[Piece]) -> None:
    got: list[str] = []
    session = process(shared_bank(), "door", queue=Unreliable(pieces)).session(
        user=USER, session_id=SESSION
    )

    reply = await session.send("What is my cat called?", sink=got.append)

    assert "".join(got) == reply.text == TEXT
