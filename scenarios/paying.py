"""A cache that notes, for one example and one method, which answers reached the model."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from assay.guards.keys import decode_question
from assay.guards.outcomes import decode_answer
from assay.guards.protocols import ChatModel, Completion, Message
from assay.scenarios.runs import Paid, Unit
from assay.stores.protocols import Cache, CacheRow
from assay.stores.records import Namespace, RecordId


class NotedCache:
    """The cache it is given, noting every new answer before it is kept (``Cache``).

    A run that is killed after an answer finds it in the cache when it goes on; the note lets it
    still count that answer as one this run paid for.

    Args:
        cache: Where answers are kept.
        unit: Whose answers these are.
        model: Counts the tokens of likelihood questions.
        note: Keeps notes durably.
    """

    def __init__(
        self,
        cache: Cache,
        unit: Unit,
        *,
        model: ChatModel,
        note: Callable[[Sequence[Paid]], Awaitable[None]],
    ) -> None:
        self._cache = cache
        self._unit = unit
        self._model = model
        self._note = note
        self.noted: set[str] = set()
        """Keys noted so far."""

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._cache.get(namespace, keys)

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        example, method = self._unit
        new = [
            Paid(example=example, method=method, key=row.key, tokens=self._tokens(row))
            for row in rows
        ]
        self.noted.update(paid.key for paid in new)
        await self._note(new)
        await self._cache.put(namespace, rows)

    def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        return self._cache.rows(namespace)

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        return await self._cache.forget(namespace, record_ids)

    def _tokens(self, row: CacheRow) -> int:
        question = decode_question(row.request)
        answer = decode_answer(row.value, likelihood=question.answer is not None)
        if isinstance(answer, Completion):
            return answer.usage.total
        given = Message(role="assistant", content=question.answer or "")
        return self._model.count_tokens((*question.request.messages, given))
