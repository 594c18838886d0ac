"""A small fault benchmark of our own words, and a reader that its faults mislead."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from assay.guards.protocols import Completion, Request
from assay.runtime.clock import StoppedClock
from assay.runtime.models.reader import question_of, shown_records
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import Settings
from assay.scenarios.faults_replay import Bench, FaultsConfig
from assay.scenarios.locomo_build import TurnsOf
from assay.scenarios.locomo_data import Turn
from assay.scenarios.locomo_faults import Fault, FaultCase, FaultStructure
from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory import InMemoryCache

FaultRole: TypeAlias = Literal["contradiction", "pointer", "payload"]

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
FACTS = (("Ada", "harp", "lute"), ("Bea", "kayak", "canoe"), ("Cal", "barley", "wheat"))


def turns_of(number: int) -> TurnsOf:
    """What person ``number`` said: the fact, and three things beside it."""
    name, right, _ = FACTS[number]
    texts = (
        f"I bought a {right} at the market.",
        "The market opens early.",
        "It rained on the way.",
        "We had soup.",
    )
    return TurnsOf(
        conversation=f"conv-{number}",
        turns=tuple(
            Turn(id=f"D1:{place}", speaker=name, text=text, caption="", at=MAY)
            for place, text in enumerate(texts, start=1)
        ),
    )


def fault_case(number: int, structure: FaultStructure) -> FaultCase:
    """A case about person ``number``; its faults fill the five places up."""
    name, right, wrong = FACTS[number]
    texts = {
        "direct": [f"As for the market, {name} bought a {wrong}."],
        "redundant": [
            f"As for the market, {name} bought a {wrong}.",
            f"What {name} bought at the market: a {wrong}.",
        ],
        "joint": [f"{name} wrote it on note amber-7.", f"Note amber-7 says: a {wrong}."],
    }[structure]
    case_id = f"{structure}-{number}"
    roles: dict[str, tuple[FaultRole, FaultRole]] = {
        "direct": ("contradiction", "contradiction"),
        "redundant": ("contradiction", "contradiction"),
        "joint": ("pointer", "payload"),
    }
    faults = tuple(
        Fault(
            id=f"{case_id}.{place}",
            text=text,
            at=MAY + timedelta(days=place + 1),
            role=roles[structure][place],
            wording=place,
        )
        for place, text in enumerate(texts)
    )
    background = tuple(f"D1:{place}" for place in range(2, 6 - len(faults)))
    return FaultCase(
        id=case_id,
        conversation=f"conv-{number}",
        question=f"What did {name} buy at the market?",
        answer=right,
        category=4,
        evidence=("D1:1",),
        structure=structure,
        foil=wrong,
        foil_kind="entity",
        foil_source="",
        faults=faults,
        seed=7,
        retrieved=(*(fault.id for fault in faults), "D1:1", *background),
        natural=True,
    )


def all_cases() -> list[FaultCase]:
    """Every structure about every person."""
    structures: tuple[FaultStructure, ...] = ("direct", "redundant", "joint")
    return [fault_case(number, s) for s in structures for number in range(len(FACTS))]


def write_benchmark(folder: Path, cases: Sequence[FaultCase] | None = None) -> Path:
    """The files that ``assay faults build`` writes, as far as a replay reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, Sequence[msgspec.Struct]] = {
        "natural.jsonl": all_cases() if cases is None else cases,
        "turns.jsonl": [turns_of(number) for number in range(len(FACTS))],
    }
    for name, structs in lines.items():
        (folder / name).write_bytes(b"".join(msgspec.json.encode(s) + b"\n" for s in structs))
    return folder


def misled(request: Request) -> str | Completion:
    """Says the wrong thing where a record states it, or a note and what points to it are shown."""
    question, shown = question_of(request), " ".join(shown_records(request))
    for name, right, wrong in FACTS:
        if name not in question:
            continue
        stated = f"bought a {wrong}" in shown or f"market: a {wrong}" in shown
        noted = f"says: a {wrong}." in shown and "wrote it on note" in shown
        if stated or noted:
            return f"a {wrong}"
        return f"a {right}" if f"a {right}" in shown else "I do not know"
    return "I do not know"


def bench_of(model: ScriptedModel | None = None) -> Bench:
    """A bench without disk or network."""
    answering = model or ScriptedModel(misled, identity="misled")
    return Bench(
        model=answering,
        likelihood=answering,
        embedder=HashingEmbedder(),
        cache=InMemoryCache(),
        clock=StoppedClock(MAY),
    )


def config_of(**changes: object) -> FaultsConfig:
    """A configuration with the defaults of the command."""
    base = FaultsConfig(
        data_sha256="0",
        protocol="reference",
        utility="contrast",
        methods=("leave_one_out", "meclear", "exact_deletion", "llm_filter", "pivot"),
        model="scripted",
        base_url=None,
        embedder="hashing",
        seed=7,
        concurrency=8,
        budget=None,
        settings=Settings(),
    )
    return msgspec.structs.replace(base, **changes)
