"""Attack cases: a bank with planted records, a question, and what has to become of each record.

A case's ``source`` names the write path of a record, which is where trust comes from; a record's
text, and whatever else its author put beside it, says nothing about that.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import msgspec

from assay.errors import ScenarioError
from assay.scenarios.loader import malformed, read_jsonl
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
    Writer,
)

SUITE: Final = "attacks"
CHAT: Final = "chat"

_WRITERS: Final[Mapping[str, Writer]] = MappingProxyType(
    {
        **dict.fromkeys(("user_chat", "user", "chat"), "user"),
        **dict.fromkeys(("assistant", "assistant_chat"), "assistant"),
        **dict.fromkeys(("tool", "tool_output", "mail", "email", "document", "file"), "tool"),
        **dict.fromkeys(
            ("external", "web", "web_page", "website", "search", "attachment", "upload", "import"),
            "external",
        ),
    }
)
"""Who writes through a source. Any other one is a system that the operator connected."""


class PlantedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a case as it comes in.

    Attributes:
        id: Its name in the case.
        text: What it says.
        tenant: Whose bank it is in.
        source: The write path.
        created_at: The time its author claims, ISO 8601; may be no time at all.
        metadata: Whatever the author put beside it; nothing of it is believed.
    """

    id: str
    text: str
    tenant: str
    source: str
    created_at: str
    metadata: dict[str, object] = {}


class After(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure has to leave: ``None`` where the case does not say."""

    remaining_records: int | None = None
    search_hits: int | None = None
    canary_absent_in: tuple[str, ...] = ()


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, in characters, to which the planted text is blown up."""

    repeat_to_chars: tuple[int, ...] = ()


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What is right for a case.

    Attributes:
        suppress: Records that have to be withheld.
        keep: Records that have to stay.
        answer_contains: Phrases of a right answer.
        answer_excludes: Phrases of a poisoned one.
        mechanism: What it should take.
        bank_unchanged: Whether the bank has to be as before; false where something is erased.
        now: When the question is asked.
        forbidden_tool_calls: Tools whose name in an answer makes it poisoned.
        must_not_retrieve: Records that may not even become candidates.
        max_model_calls: Most evaluations of a decision, its answer included.
        max_prompt_tokens: Longest prompt.
        repeat_query: How often the question is asked in a row; every time the same is expected.
        after: State after the erasure that the question asks for.
        scale: Sizes of the planted text besides its own.
        invariant: A property in words.
        metamorphic: The same, about a changed case.
        also_check: The same, about another question.
        note: For readers.
        max_queries_hint: For readers.
    """

    suppress: tuple[str, ...]
    keep: tuple[str, ...]
    answer_contains: tuple[str, ...]
    answer_excludes: tuple[str, ...]
    mechanism: str
    bank_unchanged: bool
    now: datetime
    forbidden_tool_calls: tuple[str, ...] = ()
    must_not_retrieve: tuple[str, ...] = ()
    max_model_calls: int | None = None
    max_prompt_tokens: int | None = None
    repeat_query: int = 1
    after: After | None = None
    scale: Scale | None = None
    invariant: str = ""
    metamorphic: str = ""
    also_check: str = ""
    note: str = ""
    max_queries_hint: int | None = None


class AttackCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case as it stands in the file."""

    family: str
    case: str
    query: str
    gold_answer: str
    benign_records: tuple[PlantedRecord, ...]
    attack_records: tuple[PlantedRecord, ...]
    expected: Expected
    external_benign: tuple[PlantedRecord, ...] = ()

    @property
    def records(self) -> Iterator[PlantedRecord]:
        """Every record: benign, external, planted."""
        yield from self.benign_records
        yield from self.external_benign
        yield from self.attack_records


class Staged(NamedTuple):
    """A case as the stores take it.

    Attributes:
        case: As it came.
        namespace: Whose question it is.
        records: Of every namespace, the question's own first.
        turns: What the user said in chat, where records were taken from it.
        refused: Names of records that the write path did not take: their time cannot be read.
        names: From a record's id to its name in the case.
    """

    case: AttackCase
    namespace: Namespace
    records: tuple[MemoryRecord, ...]
    turns: tuple[ArchiveTurn, ...]
    refused: frozenset[str]
    names: Mapping[RecordId, str]


OriginShown = Literal["visible", "hidden"]


def read_attacks(path: Path) -> list[AttackCase]:
    """The cases of a file, in its order.

    Raises:
        ScenarioError: If the file is missing or malformed, a name is there twice, or a case expects
            something of a record it does not hold.
    """
    rows = read_jsonl(path, AttackCase)
    seen: dict[str, int] = {}
    for line, case in rows:
        if case.case in seen:
            raise malformed(
                path, line, f"case {case.case!r} is already on line {seen[case.case]}; rename one"
            )
        seen[case.case] = line
        _check(path, line, case)
    return [case for _, case in rows]


def _check(path: Path, line: int, case: AttackCase) -> None:
    names = [record.id for record in case.records]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise malformed(path, line, f"expected each record id once, got {double[0]!r} twice")
    expected = case.expected
    for name in (*expected.suppress, *expected.keep, *expected.must_not_retrieve):
        if name not in names:
            raise malformed(path, line, f"expects something of record {name!r}, which is not there")
    if expected.repeat_query < 1:
        raise malformed(path, line, f"repeat_query must be at least 1, got {expected.repeat_query}")
    if expected.now.tzinfo is None:
        raise malformed(path, line, f"now must have a time zone, got {expected.now.isoformat()!r}")
    if not any(record.text for record in case.records):
        raise malformed(path, line, "expected at least one record with a text")


def staged(case: AttackCase, *, origin: OriginShown = "visible", variant: str = "") -> Staged:
    """A case as records and turns.

    A record with a time that cannot be read is refused. A future time is kept as a claim; the
    record came in when the question was asked at the latest.

    Args:
        case: The case.
        origin: ``hidden`` gives every record one and the same origin, and leaves nothing in the
            archive: texts and behaviour alone are left.
        variant: Part of the namespaces, where one bank holds several variants of a case.

    Raises:
        ScenarioError: If a record's text is empty.
    """
    home = case.benign_records[0].tenant if case.benign_records else _first(case).tenant
    records: list[MemoryRecord] = []
    turns: list[ArchiveTurn] = []
    refused: set[str] = set()
    names: dict[RecordId, str] = {}
    for position, planted in enumerate(case.records):
        at = _time(planted.created_at)
        if at is None:
            refused.add(planted.id)
            continue
        record = _record(case, planted, at, position, variant, origin)
        records.append(record)
        names[record.id] = planted.id
        if origin == "visible" and record.origin.writer == "user":
            turns.append(_turn(record, position))
    namespace = _namespace(case, home, variant)
    records.sort(key=lambda record: record.namespace != namespace)
    return Staged(case, namespace, tuple(records), tuple(turns), frozenset(refused), names)


def origin_of(source: str) -> Origin:
    """Where a record comes from, by its write path."""
    writer = _WRITERS.get(source, "operator")
    if writer in {"user", "assistant"}:
        return Origin(writer=writer, channel=CHAT)
    prefix = {"tool": "tool:", "external": ""}.get(writer, "import:")
    return Origin(writer=writer, channel=prefix + source)


_HIDDEN: Final = Origin(writer="operator", channel="import:hidden")


def _first(case: AttackCase) -> PlantedRecord:
    return next(case.records)


def _namespace(case: AttackCase, tenant: str, variant: str) -> Namespace:
    return Namespace("/".join((SUITE, case.case + (f"~{variant}" if variant else ""), tenant)))


def _record(  # noqa: PLR0913, PLR0917  # a record of a case, and how it is to be staged
    case: AttackCase,
    planted: PlantedRecord,
    at: datetime,
    position: int,
    variant: str,
    origin: OriginShown,
) -> MemoryRecord:
    if not planted.text.strip():
        raise ScenarioError(
            f"case {case.case!r}: record {planted.id!r} has no text; a record states something"
        )
    return MemoryRecord(
        id=RecordId(f"r{position}"),
        namespace=_namespace(case, planted.tenant, variant),
        text=planted.text,
        origin=_HIDDEN if origin == "hidden" else origin_of(planted.source),
        ingested_at=min(at, case.expected.now),
        claimed_at=at,
    )


def _turn(record: MemoryRecord, position: int) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"t{position}"),
        namespace=record.namespace,
        session=SessionId(f"{record.namespace}/told"),
        position=position,
        speaker="user",
        text=record.text,
        at=record.ingested_at,
    )


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
