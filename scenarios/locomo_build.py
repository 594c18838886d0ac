"""Builds the fault benchmark: every case, what retrieval brings, natural and forced ones, counts."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from assay.errors import ScenarioError
from assay.scenarios.games import shares
from assay.scenarios.locomo_data import Conversation, Locomo, Turn
from assay.scenarios.locomo_faults import (
    CANDIDATES,
    STRUCTURES,
    FaultCase,
    cases_for,
    eligible,
)
from assay.scenarios.locomo_foils import entity_pool, pick
from assay.stores.bm25 import Bm25
from assay.stores.hybrid import fused
from assay.stores.protocols import Embedder, FloatMatrix, Ranked
from assay.stores.records import Namespace, RecordId

COHORT = 745
DEPTH = 50
"""Records each of the two searches ranks before fusion."""

SAMPLE = 25
TURNS_FILE = "turns.jsonl"


class TurnsOf(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``turns.jsonl``: what was said in a conversation, in order."""

    conversation: str
    turns: tuple[Turn, ...]


class Built(NamedTuple):
    """The benchmark.

    Attributes:
        natural: Cases of the cohort, in the mix of the paper as far as retrieval allows.
        spare: Natural cases beyond the mix.
        forced: Cases whose evidence or faults retrieval missed; reported apart.
        counts: What was met and made.
    """

    natural: list[FaultCase]
    spare: list[FaultCase]
    forced: list[FaultCase]
    counts: dict[str, object]


async def build(
    data: Locomo,
    *,
    seed: int,
    embedder: Embedder,
    on_progress: Callable[[int], None] = lambda _questions: None,
) -> Built:
    """Make every case and ask retrieval for it; one seed and one embedder give equal bytes.

    Args:
        data: The conversations.
        seed: Of foils, wordings, labels and the choice of the cohort.
        embedder: For the dense half of hybrid retrieval.
        on_progress: Told how many questions were just done.
    """
    pool = entity_pool(data.conversations)
    cases: list[FaultCase] = []
    qualified = 0
    for conversation in data.conversations:
        made: list[FaultCase] = []
        for question in conversation.questions:
            if eligible(question, conversation):
                qualified += 1
                made += cases_for(question, conversation, pool, seed)
        cases += await _retrieved(conversation, made, embedder)
        on_progress(len(conversation.questions))
    cases = _first_natural(cases)
    natural, spare = _mix([case for case in cases if case.natural], seed)
    forced = [case for case in cases if not case.natural]
    counts = _counts(data, qualified, natural, spare, forced)
    return Built(natural, spare, forced, {"seed": seed, "embedder": embedder.name, **counts})


def write(built: Built, data: Locomo, folder: Path) -> None:
    """Write the cases, the turns they name, ``report.json`` and ``sample.md``.

    The cases are in ``natural.jsonl``, ``spare.jsonl`` and ``forced.jsonl``, the turns in
    ``turns.jsonl``, so that the folder alone can be replayed.

    The files hold LoCoMo's text (CC BY-NC): they are for the user's own disk, not for publishing.

    Raises:
        ScenarioError: If a file cannot be written.
    """
    files = {
        "natural.jsonl": _lines(built.natural),
        "spare.jsonl": _lines(built.spare),
        "forced.jsonl": _lines(built.forced),
        TURNS_FILE: _lines(
            [TurnsOf(conversation=c.id, turns=tuple(c.turns.values())) for c in data.conversations]
        ),
        "report.json": json.dumps(built.counts, indent=1).encode() + b"\n",
        "sample.md": sample(built.natural, data).encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ScenarioError(f"cannot write to {str(folder)!r}: {error.strerror}") from error


def sample(cases: Sequence[FaultCase], data: Locomo) -> str:
    """Cases chosen by hash, written out for people to judge."""
    chosen = sorted(cases, key=lambda case: sha256(case.id.encode()).digest())[:SAMPLE]
    conversations = {conversation.id: conversation for conversation in data.conversations}
    blocks = ["# Fault cases to judge\n"]
    for case in chosen:
        turns = conversations[case.conversation].turns
        lines = [
            f"## {case.id} ({case.conversation}, category {case.category}, {case.foil_kind})\n",
            f"- question: {case.question}",
            f"- right: {case.answer}",
            f"- foil: {case.foil}",
            *(f"- evidence {i}: {turns[i].at:%d %B %Y}, {turns[i].shown}" for i in case.evidence),
            *(f"- {fault.role}: {fault.at:%d %B %Y}, {fault.text}" for fault in case.faults),
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _first_natural(cases: Sequence[FaultCase]) -> list[FaultCase]:
    """One version of each case: the first natural one, else the first."""
    chosen: dict[str, FaultCase] = {}
    for case in cases:
        if case.id not in chosen or (case.natural and not chosen[case.id].natural):
            chosen[case.id] = case
    return list(chosen.values())


async def _retrieved(
    conversation: Conversation, cases: Sequence[FaultCase], embedder: Embedder
) -> list[FaultCase]:
    if not cases:
        return []
    namespace = Namespace(conversation.id)
    words: Bm25[RecordId] = Bm25()
    for turn in conversation.turns.values():
        words.add(namespace, RecordId(turn.id), turn.shown)
    names = [RecordId(name) for name in conversation.turns]
    texts = [turn.shown for turn in conversation.turns.values()]
    passages = await embedder.embed(texts, kind="passage")
    questions = await embedder.embed([case.question for case in cases], kind="query")
    written = await embedder.embed([f.text for c in cases for f in c.faults], kind="passage")
    found: list[FaultCase] = []
    start = 0
    for case, question in zip(cases, questions, strict=True):
        faults = written[start : start + len(case.faults)]
        start += len(case.faults)
        ids = [RecordId(fault.id) for fault in case.faults]
        for name, fault in zip(ids, case.faults, strict=True):
            words.add(namespace, name, fault.text)
        keyword = [Ranked(*hit) for hit in words.best(namespace, case.question, limit=DEPTH)]
        for name in ids:
            words.remove(namespace, name)
        dense = _dense([*names, *ids], np.concatenate([passages, faults]), question)
        top = tuple(hit.record_id for hit in fused(dense, keyword)[:CANDIDATES])
        wanted = {*case.evidence, *ids}
        found.append(msgspec.structs.replace(case, retrieved=top, natural=wanted <= set(top)))
    return found


def _dense(names: Sequence[RecordId], vectors: FloatMatrix, question: FloatMatrix) -> list[Ranked]:
    scores = vectors @ question
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    return [Ranked(names[int(i)], float(scores[int(i)])) for i in order]


def _mix(natural: Sequence[FaultCase], seed: int) -> tuple[list[FaultCase], list[FaultCase]]:
    """As many of each structure as the paper has, by hash; the rest is spare.

    Foils that share only the form of the answer come last.

    Where direct or redundant cases are too few, joint ones fill the cohort up.
    """
    wanted = Counter(shares(COHORT))
    there = Counter(case.structure for case in natural)
    missing = sum(max(0, wanted[kind] - there[kind]) for kind in ("direct", "redundant"))
    wanted["joint"] += missing
    chosen: list[FaultCase] = []
    spare: list[FaultCase] = []
    for structure in STRUCTURES:
        ranked = sorted(
            (case for case in natural if case.structure == structure),
            key=lambda case: (
                case.foil_kind == "phrase",
                pick(1 << 60, str(seed), "cohort", case.id),
                case.id,
            ),
        )
        chosen += ranked[: wanted[structure]]
        spare += ranked[wanted[structure] :]
    return chosen, spare


def _counts(
    data: Locomo,
    qualified: int,
    natural: Sequence[FaultCase],
    spare: Sequence[FaultCase],
    forced: Sequence[FaultCase],
) -> dict[str, object]:
    questions = [q for c in data.conversations for q in c.questions]
    return {
        "conversations": len(data.conversations),
        "turns": sum(len(c.turns) for c in data.conversations),
        "questions": len(questions) + data.defects.get("repeated questions", 0),
        "defects": data.defects,
        "questions that qualify": qualified,
        "questions with a foil": len(
            {(c.conversation, c.question) for c in [*natural, *spare, *forced]}
        ),
        "natural": _by_structure(natural),
        "spare": _by_structure(spare),
        "forced": _by_structure(forced),
        "foils of the cohort": dict(sorted(Counter(c.foil_kind for c in natural).items())),
        "fault records of the cohort": sum(len(case.faults) for case in natural),
    }


def _by_structure(cases: Sequence[FaultCase]) -> dict[str, int]:
    counted = Counter(case.structure for case in cases)
    return {structure: counted[structure] for structure in STRUCTURES}


def _lines(structs: Sequence[msgspec.Struct]) -> bytes:
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(struct) + b"\n" for struct in structs)
