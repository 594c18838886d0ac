"""Where every question to a model is asked, once: cached, single-flight, limited, counted."""

from collections.abc import Sequence

import anyio

from assay.guards.accounting import Accounts
from assay.guards.budget import Budget, Hold, Price
from assay.guards.coalitions import members
from assay.guards.keys import Question, encode_question, key_of_encoded
from assay.guards.outcomes import (
    FAILURES,
    Answer,
    Failure,
    decode_answer,
    encode_answer,
    outcome_of,
)
from assay.guards.protocols import (
    Ask,
    ChatModel,
    Completion,
    DeltaSink,
    Ledger,
    LikelihoodModel,
    Outcome,
    Renderer,
    Request,
)
from assay.guards.sending import Asked, Sender
from assay.guards.trace import Intervention
from assay.stores.protocols import Cache, CacheRow
from assay.stores.records import Namespace, RecordId

_FREE = Price(prompt=0.0, completion=0.0)


class _Flight:
    """A question on its way; ``result`` stays ``None`` when whoever asked it gave up."""

    __slots__ = ("landed", "result")

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.result: Answer | Failure | None = None


class Laboratory:
    """From coalitions to outcomes, for one question in one namespace.

    Questions are identical when namespace, model identity, rendered request, kind of ask, rendering
    and draw are; identical ones are paid for once, within a batch, across concurrent callers, and
    through the cache across laboratories and runs. Only completed answers are cached: those cut by
    ``max_tokens`` are (the limit is in the key, so asking again would cut it again), failures never.

    When a caller is cancelled, its calls in flight count as sent and their whole reservation as
    spent, those still waiting count nowhere, and other callers who waited for them ask themselves.

    Args:
        model: What is asked.
        render: From an ask to a request; pure. It gives a redraw another ``parameters.seed``.
        cache: Answers already paid for.
        namespace: Whose questions these are; no answer crosses it.
        budget: Charged one call, and the tokens and money it cost, per live call.
        concurrency: Calls that may run at once, over all callers of this laboratory.
        record_ids: The record of each candidate, by bit, so that erasure reaches cached answers;
            empty when the candidates are not records.
        likelihood: Answers the asks that carry an ``answer``; the same model as ``model``.
        sources: What every question shows beside the candidates, listed with the answers too: the
            past turns of the prompt (``assay.stores.protocols.turn_source``).
        price: What tokens cost; the ledger's money is 0 without.

    Raises:
        ValueError: If ``concurrency`` is below 1.
    """

    def __init__(  # noqa: PLR0913  # one name per collaborator
        self,
        *,
        model: ChatModel,
        render: Renderer,
        cache: Cache,
        namespace: Namespace,
        budget: Budget,
        concurrency: int,
        record_ids: Sequence[RecordId] = (),
        sources: Sequence[RecordId] = (),
        likelihood: LikelihoodModel | None = None,
        price: Price | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, got {concurrency!r}")
        self._model = model
        self._render = render
        self._cache = cache
        self._namespace = namespace
        self._record_ids = tuple(record_ids)
        self._sources = tuple(sources)
        self._likelihood = likelihood
        self._accounts = Accounts(concurrency=concurrency, now=anyio.current_time)
        self._sender = Sender(
            model=model,
            likelihood=likelihood,
            budget=budget,
            limiter=anyio.CapacityLimiter(concurrency),
            accounts=self._accounts,
            price=price or _FREE,
        )
        self._prepared: dict[Ask, Asked] = {}
        self._known: dict[str, Answer] = {}
        self._flights: dict[str, _Flight] = {}

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        """One outcome per ask, in order; identical asks are paid for once.

        Raises:
            BudgetExceeded: If the new questions of this batch do not fit; none of them has run.
            CassetteMiss: If a replay does not know a question.
            ValueError: If an ask names a candidate beyond ``record_ids``, or asks for a likelihood
                where there is no likelihood model.
        """
        batch = [self._prepare(ask) for ask in asks]
        results = await self._results({asked.key: asked for asked in batch}, sink=None)
        return [outcome_of(results[asked.key]) for asked in batch]

    async def outcome(self, ask: Ask) -> Outcome:
        """The outcome of one ask; raises as ``outcomes`` does."""
        [outcome] = await self.outcomes([ask])
        return outcome

    async def answer(
        self,
        request: Request,
        *,
        record_ids: Sequence[RecordId] = (),
        sink: DeltaSink | None = None,
    ) -> Completion:
        """The model's own reply, through the same cache, limiter and budget.

        Args:
            request: What is asked.
            record_ids: Records whose text is in it.
            sink: Takes the text as it streams; an answer already known comes in one piece.

        Raises:
            BudgetExceeded: If it is new and does not fit; nothing was sent.
            ModelError: As the model raised it; nothing is cached then.
        """
        question = Question(request=request)
        encoded = encode_question(question)
        key = key_of_encoded(self._namespace, self._model.identity, encoded)
        streamed = _Streamed(sink) if sink else None
        asked = Asked(key, question, encoded, tuple(record_ids))
        result = (await self._results({key: asked}, sink=streamed))[key]
        if isinstance(result, FAILURES):
            raise result
        assert isinstance(result, Completion)  # noqa: S101  # a question without an answer gives one
        if streamed:
            streamed.finish(result.text)
        return result

    def ledger(self) -> Ledger:
        """What has been spent so far; calls in flight are not in it.

        ``rounds`` sums ``ceil(new distinct questions / concurrency)`` over the batches, cached or
        not. ``live`` counts calls made to the model, failed ones too. ``seconds`` is wall time
        during which at least one caller was inside.
        """
        return self._accounts.ledger()

    def interventions(self) -> tuple[Intervention, ...]:
        """Every ask so far, in order; not all have an answer: some failed or did not fit the budget."""
        return tuple(
            Intervention(
                key=asked.key,
                shown=self._records_of(ask),
                rendering=ask.rendering,
                draw=ask.draw,
            )
            for ask, asked in self._prepared.items()
        )

    def _prepare(self, ask: Ask) -> Asked:
        asked = self._prepared.get(ask)
        if asked is None:
            asked = self._prepared[ask] = self._make(ask)
        return asked

    def _make(self, ask: Ask) -> Asked:
        if ask.answer is not None and self._likelihood is None:
            raise ValueError("this model gives no likelihoods; ask without an answer")
        question = Question(
            request=self._render(ask), answer=ask.answer, rendering=ask.rendering, draw=ask.draw
        )
        encoded = encode_question(question)
        key = key_of_encoded(self._namespace, self._model.identity, encoded)
        return Asked(key, question, encoded, self._records_of(ask))

    def _records_of(self, ask: Ask) -> tuple[RecordId, ...]:
        if not self._record_ids:
            return ()
        shown = members(ask.coalition)
        if shown and shown[-1] >= len(self._record_ids):
            raise ValueError(
                f"candidate {shown[-1]} was asked about; there are {len(self._record_ids)}"
            )
        return tuple(self._record_ids[i] for i in shown)

    async def _results(
        self, batch: dict[str, Asked], *, sink: DeltaSink | None
    ) -> dict[str, Answer | Failure]:
        results: dict[str, Answer | Failure] = {}
        with self._accounts.inside():
            # Twice or more only when another caller, whose answer this one awaited, gave up.
            while missing := [asked for key, asked in batch.items() if key not in results]:
                results.update(await self._attempt(missing, sink))
        return results

    async def _attempt(
        self, batch: Sequence[Asked], sink: DeltaSink | None
    ) -> dict[str, Answer | Failure]:
        known = {a.key: self._known[a.key] for a in batch if a.key in self._known}
        others = {a.key: self._flights[a.key] for a in batch if a.key in self._flights}
        own = [a for a in batch if a.key not in known and a.key not in others]
        flights = await self._lead(own, sink) if own else {}
        for flight in others.values():
            await flight.landed.wait()
        results = {k: f.result for k, f in (flights | others).items() if f.result is not None}
        return known | results

    async def _lead(self, own: Sequence[Asked], sink: DeltaSink | None) -> dict[str, _Flight]:
        flights = {asked.key: _Flight() for asked in own}
        self._flights.update(flights)
        holds: list[Hold] = []
        try:
            with self._accounts.batch(list(flights)):
                found = await self._look_up(own)
                missing = sorted((a for a in own if a.key not in found), key=_text)
                holds = self._sender.reserve(missing)
                for key, answer in found.items():
                    self._accounts.hit(key)
                    self._land(key, answer)
                await self._send_all(missing, holds, sink)
        finally:
            for hold in holds:
                hold.release()
            for key, flight in flights.items():
                del self._flights[key]
                flight.landed.set()
        return flights

    async def _look_up(self, batch: Sequence[Asked]) -> dict[str, Answer]:
        values = await self._cache.get(self._namespace, [asked.key for asked in batch])
        return {
            asked.key: decode_answer(
                values[asked.key], likelihood=asked.question.answer is not None
            )
            for asked in batch
            if asked.key in values
        }

    async def _send_all(
        self, batch: Sequence[Asked], holds: Sequence[Hold], sink: DeltaSink | None
    ) -> None:
        if len(batch) == 1:
            await self._send(batch[0], holds[0], sink)
            return
        try:
            async with anyio.create_task_group() as group:
                for asked, hold in zip(batch, holds, strict=True):
                    group.start_soon(self._send, asked, hold, sink)
        except ExceptionGroup as errors:
            # A caller awaits answers, not tasks: the first error is the one that stopped the batch.
            raise errors.exceptions[0] from None

    async def _send(self, asked: Asked, hold: Hold, sink: DeltaSink | None) -> None:
        """The answer is given to all who wait before it is kept."""
        result = await self._sender.send(asked, hold, sink)
        self._land(asked.key, result)
        if not isinstance(result, FAILURES):
            listed = (*asked.record_ids, *self._sources)
            row = CacheRow(asked.key, encode_answer(result), asked.encoded, listed)
            await self._cache.put(self._namespace, [row])

    def _land(self, key: str, result: Answer | Failure) -> None:
        self._flights[key].result = result
        self._flights[key].landed.set()
        if not isinstance(result, FAILURES):
            self._known[key] = result


def _text(asked: Asked) -> bytes:
    """What to sort by: neighbours share the longest beginnings, which a model reads only once."""
    return asked.encoded


class _Streamed:
    """Passes pieces on, and the whole text at the end when none came."""

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink
        self._any = False

    def __call__(self, piece: str) -> None:
        self._any = True
        self._sink(piece)

    def finish(self, text: str) -> None:
        if text and not self._any:
            self._sink(text)
