"""On real examples: what is not text, question or history changes no decision, and cost is bounded."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.guards.panel import Panel
from assay.guards.protocols import Case
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.schema import Example
from assay.stores.records import ArchiveTurn, Candidate

from .support_panel import EchoLaboratory

K = 5


async def judged(example: Example, laboratory: EchoLaboratory) -> dict[str, tuple[bool, str, str]]:
    words = frozenset(example.question.lower().split())

    def found(text: str, limit: int) -> list[ArchiveTurn]:
        wanted = words | frozenset(text.lower().split())
        return sorted(
            example.turns,
            key=lambda t: (-len(wanted & frozenset(t.text.lower().split())), t.id),
        )[:limit]

    async def evidence(texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        return [found(text, limit) for text in texts]

    candidates = tuple(Candidate(record=r, score=0.5) for r in example.records)
    case = Case(question=example.question, candidates=candidates, evidence=evidence)
    decision = await Panel().review(case, laboratory)
    pairs = zip(example.records, decision.judgements, strict=True)
    return {r.text: (j.admitted, j.method, j.reason) for r, j in pairs}


@pytest.mark.parametrize("place", range(0, 87, 15))
async def test_other_ids_order_and_times_change_no_decision(shared_data: Path, place: int) -> None:
    file = shared_data / "causal_locomo.jsonl"
    one, other = (load_blind(file, seed=seed)[place].example for seed in (7, 8))
    assert {r.id for r in one.records}.isdisjoint(r.id for r in other.records)

    first, second = await judged(one, EchoLaboratory()), await judged(other, EchoLaboratory())

    assert first == second


@pytest.mark.parametrize("place", range(1, 87, 15))
async def test_a_real_example_costs_at_most_24_evaluations(shared_data: Path, place: int) -> None:
    example = load_blind(shared_data / "causal_locomo.jsonl", seed=7)[place].example
    laboratory = EchoLaboratory([r.text for r in example.records])

    await judged(example, laboratory)

    assert len(example.records) >= K
    assert len(laboratory.asked) <= 23  # the final answer is the 24th
