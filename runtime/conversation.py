"""A conversation that its caller keeps, as clients of the OpenAI API do: it is shown, never remembered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from assay.guards.protocols import Parameters
from assay.stores.records import ArchiveTurn, Namespace, SessionId, TurnId


class Spoken(msgspec.Struct, frozen=True):
    """One earlier message; ``speaker`` is ``user``, ``assistant`` or ``tool``."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What the caller says of the conversation this turn belongs to.

    It takes the place of the session's own past turns in every prompt of the turn, experiments
    included. It is not journalled: a turn that a crash interrupted is finished without it.

    Attributes:
        history: The messages before this turn's, oldest first.
        history_tokens: Most estimated tokens of it that a prompt shows; the latest stay.
        instructions: The caller's system message; empty: the one of the settings.
        is_repeated: Whether this message was taken before: it is answered, and leaves nothing behind.
        max_tokens: Most tokens of the reply; ``None``: as set.
        temperature: Of the reply; ``None``: as set.
        stop: Texts that end the reply.
    """

    history: Sequence[Spoken] = ()
    history_tokens: int = 4096
    instructions: str = ""
    is_repeated: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = field(default=())

    def turns(self, namespace: Namespace, session: SessionId, at: datetime) -> list[ArchiveTurn]:
        """The history as past turns are shown; none of them is in the archive."""
        return [
            ArchiveTurn(
                id=TurnId(f"history/{position}"),
                namespace=namespace,
                session=session,
                position=position,
                speaker=said.speaker,
                text=said.text,
                at=at,
            )
            for position, said in enumerate(self.history)
        ]

    def reply_parameters(self, default: Parameters) -> Parameters:
        """How the reply is generated, where the caller says so."""
        return msgspec.structs.replace(
            default,
            max_tokens=default.max_tokens if self.max_tokens is None else self.max_tokens,
            temperature=default.temperature if self.temperature is None else self.temperature,
            stop=self.stop or default.stop,
        )
