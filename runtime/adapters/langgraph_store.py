"""A LangGraph store on a bank: items are memory records, found by meaning and by words.

Needs ``pip install assay[langgraph]``. What an agent searches for here is retrieved, not guarded;
``AssayMiddleware`` decides what enters a prompt.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from assay.runtime.facade import Runtime
from assay.runtime.limits import checked_record_text, checked_user
from assay.runtime.remember import record_id
from assay.stores.records import MemoryRecord, Namespace, Origin, TurnId

_PLACES = "langgraph namespaces"
"""The user whose records are the namespaces that were written to."""

_BY_STORE = Origin(writer="operator", channel="store")

Place = tuple[str, ...]


class AssayStore(BaseStore):
    """Items of an agent in a bank.

    A value with one text, such as ``{"text": "..."}``, is remembered as that text; another one as
    its JSON. Putting a key again keeps the old value as history; deleting it erases both. Only the
    asynchronous methods work; times to live are not kept.

    Args:
        runtime: Holds the bank.
        writer: Who an item's statement counts as; ``assistant`` is what an agent writes.
    """

    def __init__(self, runtime: Runtime, *, writer: str = "assistant") -> None:
        self._runtime = runtime
        self._writer: Any = writer

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Refused.

        Raises:
            NotImplementedError: Always, with what to do instead.
        """
        raise NotImplementedError("AssayStore is asynchronous: use aget, aput, asearch, ainvoke")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out, one after the other.

        Raises:
            ValueError: If a value cannot be kept, or a time to live is asked for.
            StoreError: If the bank cannot be read or written.
        """
        return [await self._one(op) for op in ops]

    async def _one(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case PutOp():
                await self._put(op)
                return None
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._places(op)
            case _:
                raise NotImplementedError(f"AssayStore does not know {type(op).__name__}")

    async def _get(self, op: GetOp) -> Item | None:
        kept = await self._kept(op.namespace, op.key)
        return None if kept is None else _item(kept, op.namespace)

    async def _put(self, op: PutOp) -> None:
        if op.ttl is not None:
            raise ValueError("AssayStore keeps items until they are deleted; got a ttl")
        before = await self._kept(op.namespace, op.key)
        if op.value is None:
            if before is not None:
                await self._runtime.forget(_user(op.namespace), before.id)
            return
        value = _Value.of(op.value)
        channel = f"store:{quote(op.key, safe='')}:{quote(value.field, safe='')}"
        if before is not None and (before.text, before.origin.channel) == (value.text, channel):
            return
        namespace = checked_user(_user(op.namespace))
        older = None if before is None else before.id
        name = TurnId("\0".join((channel, value.text, older or "")))
        record = MemoryRecord(
            id=record_id(namespace, name, 0),
            namespace=namespace,
            text=checked_record_text(value.text),
            origin=Origin(writer=self._writer, channel=channel),
            ingested_at=self._runtime.now(),
            supersedes=older,
        )
        await self._runtime.bank.store.write([record])
        await self._runtime.remember(_PLACES, _path(op.namespace), origin=_BY_STORE)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[SearchItem] = []
        for place in await self._below(op.namespace_prefix):
            scored = await self._scored(place, op.query, op.limit + op.offset)
            items = [(_item(record, place), score) for record, score in scored]
            found += [
                SearchItem(place, i.key, i.value, i.created_at, i.updated_at, score)
                for i, score in items
                if _passes(i.value, op.filter)
            ]
        found.sort(key=lambda item: -(item.score or 0.0))
        return found[op.offset : op.offset + op.limit]

    async def _scored(
        self, place: Place, query: str | None, limit: int
    ) -> list[tuple[MemoryRecord, float | None]]:
        user = _user(place)
        if not query:
            return [(r, None) for r in await self._runtime.memories(user) if _is_item(r)]
        candidates = await self._runtime.bank.retriever.retrieve(
            Namespace(user), query, limit=limit, at=self._runtime.now()
        )
        return [(c.record, c.score) for c in candidates if _is_item(c.record)]

    async def _places(self, op: ListNamespacesOp) -> list[Place]:
        places = [
            place[: op.max_depth] if op.max_depth else place
            for place in await self._all()
            if all(_matches(place, condition) for condition in op.match_conditions or ())
        ]
        return sorted(set(places))[op.offset : op.offset + op.limit]

    async def _below(self, prefix: Place) -> list[Place]:
        return [place for place in await self._all() if place[: len(prefix)] == prefix]

    async def _all(self) -> list[Place]:
        records = await self._runtime.memories(_PLACES)
        return [tuple(map(unquote, record.text.split("/"))) for record in records]

    async def _kept(self, place: Place, key: str) -> MemoryRecord | None:
        for record in await self._runtime.memories(_user(place)):
            if _is_item(record) and _key(record) == key:
                return record
        return None


class _Value(NamedTuple):
    """A value as a record's text; ``field`` is the name of its one text, empty for JSON."""

    text: str
    field: str

    @classmethod
    def of(cls, value: Any) -> "_Value":  # noqa: ANN401  # whatever the store was given
        entries = list(dict(value).items())
        if len(entries) == 1 and isinstance(entries[0][1], str) and entries[0][1].strip():
            return cls(entries[0][1], entries[0][0])
        return cls(msgspec.json.encode(value).decode(), "")


def _item(record: MemoryRecord, place: Place) -> Item:
    _, key, field = record.origin.channel.split(":")
    value = {unquote(field): record.text} if field else msgspec.json.decode(record.text)
    return Item(
        value=value,
        key=unquote(key),
        namespace=place,
        created_at=record.ingested_at,
        updated_at=record.ingested_at,
    )


def _is_item(record: MemoryRecord) -> bool:
    return record.origin.channel.startswith("store:")


def _key(record: MemoryRecord) -> str:
    return unquote(record.origin.channel.split(":")[1])


def _path(place: Place) -> str:
    return "/".join(quote(part, safe="") for part in place)


def _user(place: Place) -> str:
    return f"store/{_path(place)}"


def _passes(value: dict[str, Any], wanted: dict[str, Any] | None) -> bool:
    return all(value.get(key) == expected for key, expected in (wanted or {}).items())


def _matches(place: Sequence[str], condition: MatchCondition) -> bool:
    path = list(condition.path)
    part = list(place[: len(path)] if condition.match_type == "prefix" else place[-len(path) :])
    return len(part) == len(path) and all(
        wanted in {"*", given} for wanted, given in zip(path, part, strict=True)
    )
