"""Fakes with behaviour for guards and their laboratory."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio.lowlevel

from assay.guards.budget import Budget, Limits, Price
from assay.guards.coalitions import members
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import (
    Ask,
    Case,
    Completion,
    DeltaSink,
    LikelihoodModel,
    Message,
    Parameters,
    Renderer,
    Request,
    Usage,
)
from assay.stores.protocols import CacheRow
from assay.stores.records import (
    ArchiveTurn,
    Candidate,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

ANN = Namespace("ann")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROMPT_TOKENS = 10
ANSWER_TOKENS = 4


def render(ask: Ask) -> Request:
    """Lists the coalition's members; a redraw changes the seed."""
    shown = " ".join(str(i) for i in members(ask.coalition))
    message = Message(role="user", content=f"{ask.rendering}:{shown}")
    return Request(
        model="table",
        messages=(message,),
        parameters=Parameters(max_tokens=ANSWER_TOKENS, seed=ask.draw),
    )


def prompt_of(ask: Ask) -> str:
    """What the model is shown for an ask."""
    return render(ask).messages[-1].content


Answerer = Callable[[str], Completion | Exception]


def say(text: str) -> Completion:
    """A whole answer of the stated cost."""
    return Completion(
        text=text,
        usage=Usage(prompt_tokens=PROMPT_TOKENS, completion_tokens=ANSWER_TOKENS),
    )


def echo(prompt: str) -> Completion:
    """Answers with the prompt."""
    return say(f"re {prompt}")


@dataclass
class TableModel:
    """Answers by a rule after a number of turns of the event loop; counts what reaches it.

    Attributes:
        answer: From the last message to a completion, or an error to raise.
        turns: From the last message to the turns of the loop it takes.
        gate: When set, every call waits for it.
    """

    answer: Answerer = echo
    turns: Callable[[str], int] = lambda _: 0
    gate: anyio.Event | None = None
    identity: str = "table-1"
    context_tokens: int = 4096
    prompts: list[str] = field(default_factory=list[str])
    answered: list[str] = field(default_factory=list[str])
    billed_tokens: int = 0
    running: int = 0
    most_running: int = 0

    @property
    def calls(self) -> int:
        return len(self.prompts)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return PROMPT_TOKENS

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        prompt = request.messages[-1].content
        result = await self._asked(prompt)
        assert isinstance(result, Completion)
        if sink:
            sink(result.text)
        return result

    async def _asked(self, prompt: str) -> Completion:
        self.prompts.append(prompt)
        self.billed_tokens += PROMPT_TOKENS
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self._take_time(prompt)
            result = self.answer(prompt)
            if isinstance(result, Exception):
                raise result
            self.answered.append(prompt)
            self.billed_tokens += result.usage.completion_tokens
            return result
        finally:
            self.running -= 1

    async def _take_time(self, prompt: str) -> None:
        for _ in range(self.turns(prompt)):
            await anyio.lowlevel.checkpoint()
        if self.gate:
            await self.gate.wait()


@dataclass
class TableLikelihoods:
    """Log-likelihoods by the last message; counts what reaches it."""

    table: Mapping[str, float | None]
    calls: int = 0

    async def log_likelihood(self, request: Request, answer: str) -> float:
        self.calls += 1
        await anyio.lowlevel.checkpoint()
        return self.table[request.messages[-1].content]  # type: ignore[return-value]  # or null


class DictCache:
    """Rows in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Namespace, str], CacheRow] = {}

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        await anyio.lowlevel.checkpoint()
        return {k: self.kept[namespace, k].value for k in keys if (namespace, k) in self.kept}

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        await anyio.lowlevel.checkpoint()
        for row in rows:
            self.kept.setdefault((namespace, row.key), row)

    async def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        for (owner, _), row in list(self.kept.items()):
            if owner == namespace:
                yield row

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        gone = [key for key, row in self.kept.items() if {*row.record_ids} & {*record_ids}]
        for key in gone:
            del self.kept[key]
        return len(gone)


def laboratory(  # noqa: PLR0913  # one name per part of the bench
    model: TableModel,
    *,
    cache: DictCache | None = None,
    limits: Limits | None = None,
    budget: Budget | None = None,
    concurrency: int = 4,
    records: int = 0,
    likelihood: LikelihoodModel | None = None,
    price: Price | None = None,
    renderer: Renderer = render,
) -> Laboratory:
    """A laboratory over the fakes."""
    return Laboratory(
        model=model,
        render=renderer,
        cache=cache if cache is not None else DictCache(),
        namespace=ANN,
        budget=budget or Budget(limits or Limits()),
        concurrency=concurrency,
        record_ids=[RecordId(f"r{i}") for i in range(records)],
        likelihood=likelihood,
        price=price,
    )


def candidate(text: str, *, score: float = 0.5, record_id: str | None = None) -> Candidate:
    """A candidate of this text."""
    record = MemoryRecord(
        id=RecordId(record_id or f"id {text}"),
        namespace=ANN,
        text=text,
        origin=Origin(writer="user", channel="chat"),
        ingested_at=NOON,
    )
    return Candidate(record=record, score=score)


def turn(text: str, number: int = 0) -> ArchiveTurn:
    """An archived turn of this text."""
    return ArchiveTurn(
        id=TurnId(f"t{number}"),
        namespace=ANN,
        session=SessionId("s1"),
        position=number,
        speaker="user",
        text=text,
        at=NOON,
    )


@dataclass
class FixedEvidence:
    """Gives the same turns for every text."""

    turns: Sequence[ArchiveTurn] = ()
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        self.asked.extend(texts)
        return [list(self.turns[:limit]) for _ in texts]


def case(question: str, *texts: str, archive: Sequence[str] = ()) -> Case:
    """A case over candidates of these texts and an archive of these turns."""
    turns = [turn(text, number) for number, text in enumerate(archive)]
    return Case(
        question=question,
        candidates=tuple(candidate(text) for text in texts),
        evidence=FixedEvidence(turns),
    )
