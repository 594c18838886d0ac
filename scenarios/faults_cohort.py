"""The fault benchmark as ``assay faults build`` wrote it: cases, turns, and a stratified choice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from assay.errors import ScenarioError
from assay.guards.coalitions import Coalition, coalition_of
from assay.runtime.prompts import canonical_order
from assay.scenarios.locomo_build import TURNS_FILE, TurnsOf
from assay.scenarios.locomo_data import Turn
from assay.scenarios.locomo_faults import STRUCTURES, FaultCase
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

NATURAL_FILE = "natural.jsonl"
SUITE = "locomo-faults"
T = TypeVar("T")
_IMPORTED = Origin(writer="external", channel="import:locomo")


class Cohort(NamedTuple):
    """The benchmark's natural cases and what they are made of.

    Attributes:
        cases: In the order of the file.
        turns: By conversation, then by turn id.
        digest: SHA-256 over both files, so that a run never goes on over others.
    """

    cases: Sequence[FaultCase]
    turns: Mapping[str, Mapping[str, Turn]]
    digest: str


class Posed(NamedTuple):
    """One case as records in prompt order, and which of them are the faults.

    Attributes:
        case: The case.
        candidates: The retrieved records, evidence, background and faults alike; their ids are
            numbers, which tell nothing.
        faults: The wrong ones, in the order the case lists them.
    """

    case: FaultCase
    candidates: tuple[Candidate, ...]
    faults: tuple[int, ...]

    @property
    def harmful(self) -> Coalition:
        """The faults as a coalition."""
        return coalition_of(self.faults)

    @property
    def namespace(self) -> Namespace:
        """Whose questions the case's are; no answer of another case is shared."""
        return Namespace(f"{SUITE}/{self.case.id}")


def read_cohort(folder: Path) -> Cohort:
    """Read the natural cases and the turns.

    Raises:
        ScenarioError: If a file is missing or is not what the build writes, or a case names a turn
            that is not there.
    """
    cases_bytes = _bytes(folder / NATURAL_FILE)
    turns_bytes = _bytes(folder / TURNS_FILE)
    cases = _decoded(cases_bytes, FaultCase, folder / NATURAL_FILE)
    turns = {
        one.conversation: {turn.id: turn for turn in one.turns}
        for one in _decoded(turns_bytes, TurnsOf, folder / TURNS_FILE)
    }
    for case in cases:
        known = {*turns.get(case.conversation, {}), *(fault.id for fault in case.faults)}
        if missing := {*case.retrieved, *case.evidence} - known:
            raise ScenarioError(
                f"case {case.id!r} names {sorted(missing)[0]!r}, which is not in {TURNS_FILE}; "
                "build the benchmark again"
            )
    return Cohort(cases, turns, sha256(cases_bytes + b"\0" + turns_bytes).hexdigest())


def chosen(
    cases: Sequence[FaultCase], *, limit: int | None, structures: Sequence[str], seed: int
) -> list[FaultCase]:
    """At most ``limit`` cases, each structure in its share, picked by a hash of seed and id.

    A smaller limit's cases are among a larger one's of the same seed, as far as rounding allows.
    """
    groups = {
        structure: sorted(
            (case for case in cases if case.structure == structure),
            key=lambda case: sha256(f"{seed}:{case.id}".encode()).digest(),
        )
        for structure in STRUCTURES
        if structure in structures
    }
    total = sum(map(len, groups.values()))
    counts = _shares(
        {name: len(group) for name, group in groups.items()}, min(limit or total, total)
    )
    picked = {case.id for name, group in groups.items() for case in group[: counts[name]]}
    return [case for case in cases if case.id in picked]


def pose(case: FaultCase, turns: Mapping[str, Turn], *, seed: int) -> Posed:
    """A case's retrieved records in the order of the prompt, their ids without meaning."""
    wrong = {fault.id: fault for fault in case.faults}
    found: list[Candidate] = []
    for rank, name in enumerate(case.retrieved):
        text, at = (
            (wrong[name].text, wrong[name].at)
            if name in wrong
            else (turns[name].shown, turns[name].at)
        )
        record = MemoryRecord(
            id=RecordId(name),
            namespace=Namespace(f"{SUITE}/{case.id}"),
            text=text,
            origin=_IMPORTED,
            ingested_at=at,
        )
        found.append(Candidate(record=record, score=1.0 / (rank + 1)))
    ordered = canonical_order(found, seed=seed)
    places = {candidate.record.id: place for place, candidate in enumerate(ordered)}
    return Posed(
        case=case,
        candidates=tuple(_numbered(candidate, place) for place, candidate in enumerate(ordered)),
        faults=tuple(places[RecordId(fault.id)] for fault in case.faults),
    )


def archive_of(turns: Mapping[str, Turn], namespace: Namespace) -> list[ArchiveTurn]:
    """A conversation as past turns: what was truly said. No fault is in it."""
    return [
        ArchiveTurn(
            id=TurnId(turn.id),
            namespace=namespace,
            session=SessionId(turn.id.partition(":")[0]),
            position=place,
            speaker=turn.speaker,
            text=turn.shown,
            at=turn.at,
        )
        for place, turn in enumerate(turns.values())
    ]


def _numbered(candidate: Candidate, place: int) -> Candidate:
    record = msgspec.structs.replace(candidate.record, id=RecordId(f"r{place}"))
    return msgspec.structs.replace(candidate, record=record)


def _shares(sizes: Mapping[str, int], limit: int) -> Counter[str]:
    """Largest remainders: whole numbers that add up to ``limit``."""
    total = max(sum(sizes.values()), 1)
    exact = {name: limit * size / total for name, size in sizes.items()}
    counts = Counter({name: int(share) for name, share in exact.items()})
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    counts.update(by_remainder[: limit - counts.total()])
    return counts


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(
            f"cannot read {str(path)!r}: {error.strerror}; `assay faults build --out DIR` writes it"
        ) from error


def _decoded(data: bytes, kind: type[T], path: Path) -> list[T]:
    decoder = msgspec.json.Decoder(kind)
    try:
        return [decoder.decode(line) for line in data.splitlines()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(
            f"{path}: expected what `assay faults build` writes ({error})"
        ) from error
