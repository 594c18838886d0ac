"""Cassettes: what a run asked and was answered, in one file, so that it replays offline.

JSONL. The first line is the header ``{"format": 1, "identity": ..., "context_tokens": ...}``, each
further one an entry ``{"request": ..., "answer": ..., "completion": ... | "log_likelihood": ...}``.
A line is written whole or counts as not written: a last line without an end, left by a kill, is cut
off when recording goes on. Keys, headers and URLs with secrets never reach a request, so neither a
cassette.
"""

import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from assay.errors import CassetteMiss, ConfigError
from assay.guards.calls import call_under_way
from assay.guards.keys import decode_question
from assay.guards.protocols import ChatModel, Completion, DeltaSink, Message, Request
from assay.runtime.models.counting import bound_tokens, require_room
from assay.runtime.models.misses import Difference, describe_miss, differences_of
from assay.stores.protocols import Cache, CacheRow
from assay.stores.records import Namespace, RecordId

FORMAT = 1
"""Of the file; a cassette of another one is refused."""


UNKNOWN_CONTEXT = 1 << 20
"""Context of a recording that does not tell it."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line.

    Attributes:
        format: Version of the file format.
        identity: Of the model that was recorded.
        context_tokens: Its context; 0 where it is not known.
    """

    format: int
    identity: str
    context_tokens: int


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question with its answer.

    Attributes:
        request: What was asked.
        answer: Set when the likelihood of this answer was asked for.
        completion: What was answered.
        log_likelihood: What was measured for ``answer``.
        counted: Tokens of the prompt as the recorded model counts them, so that a replay reserves
            what the recording reserved; 0 where it is not known.
    """

    request: Request
    answer: str | None = None
    completion: Completion | None = None
    log_likelihood: float | None = None
    counted: int = 0


class Cassette(msgspec.Struct, frozen=True):
    """A read cassette.

    Attributes:
        header: Its first line.
        entries: The rest, in order.
        whole_bytes: Length of the file up to the end of its last whole line.
    """

    header: Header
    entries: tuple[Entry, ...]
    whole_bytes: int


def request_key(request: Request, answer: str | None) -> str:
    """SHA-256 hex of what was asked."""
    return hashlib.sha256(msgspec.json.encode((request, answer))).hexdigest()


def read_cassette(path: Path) -> Cassette:
    """Read a cassette; blocking.

    Raises:
        ConfigError: If it cannot be read, is of another format or has a malformed line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the cassette {str(path)!r}: {error.strerror}") from error
    whole = content[: content.rfind(b"\n") + 1]
    first, *lines = whole.split(b"\n")
    header = _header(path, first)
    entries = tuple(
        _entry(path, number, line) for number, line in enumerate(lines, start=2) if line.strip()
    )
    return Cassette(header, entries, len(whole))


class CassetteModel:
    """Answers what was recorded and nothing else; it never calls anyone.

    Args:
        cassette: What was recorded.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._header = cassette.header
        self._entries = {
            request_key(entry.request, entry.answer): entry for entry in reversed(cassette.entries)
        }
        self._counted = {
            _told(e.request, e.answer): e.counted for e in cassette.entries if e.counted
        }

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Read a cassette off the loop.

        Raises:
            ConfigError: See :func:`read_cassette`.
        """
        return cls(await anyio.to_thread.run_sync(read_cassette, path))

    @property
    def identity(self) -> str:
        """Of the recorded model, so that prompts and cache keys are those of the recording."""
        return self._header.identity

    @property
    def context_tokens(self) -> int:
        """Of the recorded model; so large that nothing recorded overflows where it is not known."""
        return self._header.context_tokens or UNKNOWN_CONTEXT

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """As recorded; for other prompts a bound from above, in the order of the text's bytes."""
        return self._counted.get(tuple(messages)) or bound_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        completion = self._find(request, None).completion
        if completion is None:
            raise CassetteMiss("the entry of this request holds no completion")
        if sink is not None and completion.text:
            sink(completion.text)
        return completion

    async def log_likelihood(self, request: Request, answer: str) -> float:
        """As recorded.

        Raises:
            CassetteMiss: If this was not recorded.
        """
        value = self._find(request, answer).log_likelihood
        if value is None:
            raise CassetteMiss("the entry of this request holds no log-likelihood")
        return value

    def differences(self, request: Request) -> list[Difference]:
        """Each part in which the nearest entry differs from a request; none where it is recorded."""
        if request_key(request, None) in self._entries:
            return []
        asked = [(entry.request, entry.answer) for entry in self._entries.values()]
        return differences_of(request, None, asked)

    def explain_miss(self, request: Request, answer: str | None = None) -> str:
        """Which part of a request differs from the nearest entry; says so when it is recorded."""
        if request_key(request, answer) in self._entries:
            return "the request is in the cassette"
        asked = [(entry.request, entry.answer) for entry in self._entries.values()]
        return describe_miss(request, answer, asked)

    def _find(self, request: Request, answer: str | None) -> Entry:
        found = self._entries.get(request_key(request, answer))
        if found is None:
            # A prompt that never fitted was no answer and so was not recorded: say that instead.
            require_room(self, request)
            raise CassetteMiss(self.explain_miss(request, answer))
        call_under_way().recorded()
        return found


class RecordingCache:
    """A cache that writes each answer that is found or put to a cassette as well.

    The file is created, or continued if it is of the same model, when the first answer comes.

    Args:
        cache: The cache behind it.
        path: The cassette.
        model: The model recorded; with it a replay knows its context and counts tokens as it does.
    """

    def __init__(self, cache: Cache, path: Path, *, model: ChatModel | None = None) -> None:
        self._cache = cache
        self._path = path
        self._model = model
        self._identity = ""
        self._known: set[str] = set()
        self._done: set[str] = set()
        self._rows: dict[Namespace, dict[str, CacheRow]] = {}
        self._lock = anyio.Lock()

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        found = await self._cache.get(namespace, keys)
        if found:
            await self._record_found(namespace, found)
        return found

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        await self._cache.put(namespace, rows)
        await self._record(rows)

    def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        return self._cache.rows(namespace)

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        """From the cache; a cassette is a file of its owner and keeps what it holds."""
        return await self._cache.forget(namespace, record_ids)

    async def _record_found(self, namespace: Namespace, found: dict[str, bytes]) -> None:
        wanted = found.keys() - self._done
        if not wanted:
            return
        # A hit comes without its question; the rows behind it have both. They are read once.
        known = self._rows.setdefault(namespace, {})
        if not known.keys() >= wanted:
            known.update([(row.key, row) async for row in self._cache.rows(namespace)])
        await self._record([known.pop(key) for key in sorted(wanted & known.keys())])

    async def _record(self, rows: Sequence[CacheRow]) -> None:
        async with self._lock:
            fresh = [row for row in rows if row.key not in self._done]
            if fresh:
                await anyio.to_thread.run_sync(self._append, fresh)
                self._done.update(row.key for row in fresh)

    def _append(self, rows: Sequence[CacheRow]) -> None:
        entries = [self._entry_of(row) for row in rows]
        if not self._identity:
            self._begin(entries[0].request.model)
        new = {request_key(e.request, e.answer): e for e in entries}
        fresh = [entry for key, entry in new.items() if key not in self._known]
        for entry in fresh:
            _require_same_model(self._path, entry.request.model, self._identity)
        _write(self._path, (msgspec.json.encode(entry) for entry in fresh))
        self._known |= new.keys()

    def _entry_of(self, row: CacheRow) -> Entry:
        entry = _entry_of(row)
        counted = self._count(_told(entry.request, entry.answer))
        return msgspec.structs.replace(entry, counted=counted)

    def _count(self, messages: Sequence[Message]) -> int:
        return self._model.count_tokens(messages) if self._model else 0

    def _begin(self, identity: str) -> None:
        context_tokens = self._model.context_tokens if self._model else 0
        header = Header(format=FORMAT, identity=identity, context_tokens=context_tokens)
        self._known = _prepare(self._path, header)
        self._identity = identity


async def cassette_of(cache: Cache, namespace: Namespace) -> Cassette:
    """What a bank's cache keeps of one namespace, as a cassette.

    Raises:
        ConfigError: If nothing is kept.
    """
    entries = tuple([_entry_of(row) async for row in cache.rows(namespace)])
    if not entries:
        raise ConfigError("the bank keeps no answers of this user; nothing can be replayed")
    header = Header(format=FORMAT, identity=entries[-1].request.model, context_tokens=0)
    return Cassette(header, entries, 0)


def explain_miss(cassette: Cassette, request: Request, answer: str | None = None) -> str:
    """Which part of a request differs from the nearest entry; says so when it is recorded."""
    return CassetteModel(cassette).explain_miss(request, answer)


def _entry_of(row: CacheRow) -> Entry:
    question = decode_question(row.request)
    if question.answer is None:
        completion = msgspec.json.decode(row.value, type=Completion)
        return Entry(request=question.request, completion=completion)
    return Entry(
        request=question.request,
        answer=question.answer,
        log_likelihood=msgspec.json.decode(row.value, type=float),
    )


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}, line 1: expected the header of a cassette (format, identity, "
            f"context_tokens): {error}"
        ) from error
    if header.format != FORMAT:
        raise ConfigError(
            f"{path} is a cassette of format {header.format}, this Assay reads {FORMAT}; "
            "record it again"
        )
    return header


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        return msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}, line {number}: expected an entry: {error}") from error


def _told(request: Request, answer: str | None) -> tuple[Message, ...]:
    """What a question costs to read: the prompt, and a given answer after it."""
    if answer is None:
        return request.messages
    return (*request.messages, Message(role="assistant", content=answer))


def _prepare(path: Path, header: Header) -> set[str]:
    """Make the file ready to append to; gives the keys it holds already."""
    first = msgspec.json.encode(header) + b"\n"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise ConfigError(f"cannot record to {str(path)!r}: {error.strerror}") from error
    if first.startswith(content):
        _replace(path, first)
        return set()
    cassette = read_cassette(path)
    _require_same_model(path, header.identity, cassette.header.identity)
    os.truncate(path, cassette.whole_bytes)
    return {request_key(entry.request, entry.answer) for entry in cassette.entries}


def _require_same_model(path: Path, asked: str, recorded: str) -> None:
    if asked != recorded:
        raise ConfigError(
            f"{path} holds recordings of {recorded}, not of {asked}; name another file"
        )


def _replace(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"cannot record to {str(path)!r}: {error.strerror}") from error


def _write(path: Path, lines: Iterable[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    try:
        with path.open("ab", buffering=0) as file:
            while data:
                data = data[file.write(data) :]
    except OSError as error:
        raise ConfigError(f"cannot record to {str(path)!r}: {error.strerror}") from error
