"""How other systems write memories down. Pure: bytes to statements and messages, and back."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from assay.errors import ConfigError
from assay.stores.records import MemoryRecord

Format: TypeAlias = Literal["jsonl", "mem0", "langgraph", "chat"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement to be remembered; a line of the ``jsonl`` format.

    Attributes:
        text: What is remembered.
        claimed_at: When it was said, as its source claims.
        user: Whose memory the source says it is; the importer may name another.
        id: The source's name for it.
        channel: The channel it came to the source by.
        writer: Who wrote it there.
    """

    text: str
    claimed_at: datetime | None = None
    user: str = ""
    id: str = ""
    channel: str = ""
    writer: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a chat log.

    Attributes:
        role: ``user`` or ``assistant``; others are passed over.
        content: What was said.
        at: When, if the log says.
    """

    role: str
    content: str
    at: datetime | None = None


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: statements, or the messages of one conversation."""

    format: Format
    statements: tuple[Statement, ...] = ()
    messages: tuple[Message, ...] = ()


def read(raw: bytes, name: str, wanted: Format | None = None) -> Contents:
    """What a file holds.

    Args:
        raw: Its bytes: one JSON value, or one per line.
        name: For messages about it.
        wanted: Its format; ``None``: by what the first entry looks like.

    Raises:
        ConfigError: If it is none of the formats, or an entry is not of the file's format.
    """
    entries = _entries(raw, name)
    kind = wanted or _kind(entries, name)
    if kind == "chat":
        return Contents(
            format=kind,
            messages=tuple(_message(e, i, name) for i, e in enumerate(entries, start=1)),
        )
    take = {"jsonl": _plain, "mem0": _mem0, "langgraph": _langgraph}[kind]
    return Contents(
        format=kind,
        statements=tuple(_taken(take, e, i, name, kind) for i, e in enumerate(entries, start=1)),
    )


def written(records: Iterable[MemoryRecord], kind: Format, *, user: str) -> bytes:
    """Records as another system reads them.

    Args:
        records: In order of writing.
        kind: ``jsonl``, ``mem0`` or ``langgraph``; a chat log cannot be made of records.
        user: Whose they are.

    Raises:
        ConfigError: For ``chat``.
    """
    if kind == "jsonl":
        lines = [msgspec.json.encode(_statement(record, user)) for record in records]
        return b"".join(line + b"\n" for line in lines)
    if kind == "mem0":
        return _pretty({"results": [_as_mem0(record, user) for record in records]})
    if kind == "langgraph":
        return _pretty([_as_item(record, user) for record in records])
    raise ConfigError("records are no chat log; expected jsonl, mem0 or langgraph, got chat")


# ---- reading


def _entries(raw: bytes, name: str) -> list[dict[str, Any]]:
    try:
        whole: Any = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return [_line(line, i, name) for i, line in enumerate(raw.splitlines(), 1) if line.strip()]
    for key in ("results", "memories", "items", "messages"):
        if isinstance(whole, dict) and key in whole:
            whole = cast("Any", whole[key])
    try:
        return msgspec.convert(whole if isinstance(whole, list) else [whole], list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: expected JSON objects, got something else: {error}") from error


def _line(line: bytes, number: int, name: str) -> dict[str, Any]:
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{name}, line {number}: expected a JSON object, got {line[:40]!r} ({error})"
        ) from error
    if not isinstance(entry, dict):
        raise ConfigError(f"{name}, line {number}: expected a JSON object, got {line[:40]!r}")
    return cast("dict[str, Any]", entry)


def _kind(entries: Sequence[Mapping[str, Any]], name: str) -> Format:
    if not entries:
        raise ConfigError(f"{name}: nothing is in it")
    first = entries[0]
    marks: tuple[tuple[set[str], Format], ...] = (
        ({"role", "content"}, "chat"),
        ({"memory"}, "mem0"),
        ({"namespace", "key", "value"}, "langgraph"),
        ({"text"}, "jsonl"),
    )
    for keys, kind in marks:
        if keys <= set(first):
            return kind
    raise ConfigError(
        f"{name}: none of the formats {', '.join(FORMATS)}: the first entry has the keys "
        f"{', '.join(sorted(first))}"
    )


def _taken(
    take: Any,  # noqa: ANN401  # one of three functions of one shape
    entry: Mapping[str, Any],
    number: int,
    name: str,
    kind: Format,
) -> Statement:
    try:
        return cast("Statement", take(entry))
    except (KeyError, msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"{name}, entry {number}: no entry of {kind}: {error}") from error


def _plain(entry: Mapping[str, Any]) -> Statement:
    return msgspec.convert(dict(entry), Statement)


def _mem0(entry: Mapping[str, Any]) -> Statement:
    return Statement(
        text=str(entry["memory"]),
        claimed_at=_time(entry.get("updated_at") or entry.get("created_at")),
        user=str(entry.get("user_id") or ""),
        id=str(entry.get("id") or ""),
        **_origin_of(entry.get("metadata") or {}),
    )


def _langgraph(entry: Mapping[str, Any]) -> Statement:
    place = [str(part) for part in entry["namespace"]]
    return Statement(
        text=_text_of(entry["value"]),
        claimed_at=_time(entry.get("updated_at") or entry.get("created_at")),
        user=place[-1] if place else "",
        id=str(entry["key"]),
        channel=str(entry.get("channel") or "/".join(place)),
        writer=str(entry.get("writer") or ""),
    )


def _origin_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(metadata[key]) for key in ("writer", "channel") if metadata.get(key)}


def _text_of(value: Any) -> str:  # noqa: ANN401  # whatever a store was given
    """A value's one text, else its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        texts = [part for part in cast("dict[str, Any]", value).values() if isinstance(part, str)]
        if len(texts) == 1 and len(cast("dict[str, Any]", value)) == 1:
            return texts[0]
    return msgspec.json.encode(value).decode()


def _message(entry: Mapping[str, Any], number: int, name: str) -> Message:
    try:
        return Message(
            role=str(entry["role"]),
            content=_content(entry["content"]),
            at=_time(entry.get("at") or entry.get("timestamp") or entry.get("created_at")),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{name}, entry {number}: no message of a chat: {error}") from error


def _content(content: Any) -> str:  # noqa: ANN401  # text, or the parts of a message
    if not isinstance(content, list):
        return str(content or "")
    parts = cast("list[dict[str, Any]]", content)
    return "\n".join(str(part["text"]) for part in parts if part.get("text"))


def _time(value: Any) -> datetime | None:  # noqa: ANN401  # seconds or ISO 8601
    if value is None or value == "":
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, tz=UTC)
    found = datetime.fromisoformat(str(value))
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


# ---- writing


def _statement(record: MemoryRecord, user: str) -> Statement:
    return Statement(
        text=record.text,
        claimed_at=record.claimed_at or record.ingested_at,
        user=user,
        id=record.id,
        channel=record.origin.channel,
        writer=record.origin.writer,
    )


def _as_mem0(record: MemoryRecord, user: str) -> dict[str, Any]:
    return {
        "id": record.id,
        "memory": record.text,
        "user_id": user,
        "created_at": record.ingested_at.isoformat(),
        "updated_at": (record.claimed_at or record.ingested_at).isoformat(),
        "metadata": {"writer": record.origin.writer, "channel": record.origin.channel},
    }


def _as_item(record: MemoryRecord, user: str) -> dict[str, Any]:
    return {
        "namespace": ["memories", user],
        "key": record.id,
        "value": {"text": record.text},
        "writer": record.origin.writer,
        "channel": record.origin.channel,
        "created_at": record.ingested_at.isoformat(),
        "updated_at": (record.claimed_at or record.ingested_at).isoformat(),
    }


def _pretty(value: Any) -> bytes:  # noqa: ANN401  # plain data
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
