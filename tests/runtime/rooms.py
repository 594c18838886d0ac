"""A runtime for tests: scripted model, stopped clock, and a guard that decides by a word."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import msgspec

from assay.guards.coalitions import grand
from assay.guards.protocols import (
    Ask,
    Case,
    ChatModel,
    Decision,
    Experimenter,
    Guard,
    Judgement,
)
from assay.runtime.clock import StoppedClock
from assay.runtime.equipment import Equipment
from assay.runtime.events import AnyEvent, decode
from assay.runtime.facade import Runtime
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import Settings
from assay.runtime.streams import stream_of
from assay.runtime.wiring import open_runtime
from assay.stores.bank import memory_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank
from assay.stores.records import Namespace, SessionId

from .support import NOW

USER = Namespace("u1")
SESSION = SessionId("s1")


class WordGuard:
    """Asks the laboratory once and withholds what says ``rumour``."""

    name = "word"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        await laboratory.outcomes([Ask(grand(len(case.candidates)))])
        return Decision(
            method=self.name,
            judgements=tuple(
                Judgement(
                    record_id=candidate.record.id,
                    admitted="rumour" not in candidate.record.text,
                    reason="by its words",
                    method=self.name,
                )
                for candidate in case.candidates
            ),
        )


def runtime(
    *,
    model: ChatModel | None = None,
    bank: Path | None = None,
    guard: str | Guard | None = None,
    settings: Settings | None = None,
) -> AbstractAsyncContextManager[Runtime]:
    return open_runtime(
        model=model or ScriptedModel(),
        bank=bank,
        guard=guard or WordGuard(),
        settings=settings,
        embedder="hashing",
        clock=StoppedClock(NOW),
    )


def fresh_bank(now: datetime = NOW) -> Bank:
    return memory_bank(embedder=HashingEmbedder(), clock=StoppedClock(now))


def over(
    bank: Bank,
    *,
    model: ChatModel | None = None,
    guard: Guard | None = None,
    settings: Settings | None = None,
    owner: str = "this process",
) -> Runtime:
    """A runtime over a bank the test holds itself; each owner is a process of its own."""
    return Runtime(
        Equipment(
            bank=bank,
            model=model or ScriptedModel(),
            guard=guard or WordGuard(),
            settings=settings or Settings(),
            clock=StoppedClock(NOW),
            seed=7,
            new_session=lambda: "new",
            owner=owner,
        )
    )


async def journal_of(bank: Bank) -> list[AnyEvent]:
    entries = await bank.journal.read(stream_of(USER, SESSION))
    return [decode(entry.payload) for entry in entries]


def with_settings(**sections: dict[str, object]) -> Settings:
    return msgspec.convert(sections, Settings)
