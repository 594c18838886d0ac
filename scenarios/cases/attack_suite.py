"""Attack cases as tests: what has to be withheld is, and the answer is not poisoned."""

from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

import anyio

from assay.guards.protocols import Guard
from assay.runtime.clock import StoppedClock
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.attacks import AttackRow, Setting, replay
from assay.scenarios.attacks_data import AttackCase, read_attacks
from assay.scenarios.attacks_methods import attack_guard
from assay.scenarios.attacks_reader import IDENTITY, read_credulously
from assay.stores.bank import memory_bank
from assay.stores.embeddings import HashingEmbedder

GUARD = "panel"
_CONTEXT = 1_000_000


def attack_cases(path: Path, size: int) -> list[AttackCase]:
    """The first cases of each family in turn, so that a sample holds as many families as it can.

    Raises:
        ScenarioError: If the file is missing or malformed.
    """
    families: dict[str, list[AttackCase]] = {}
    for case in read_attacks(path):
        families.setdefault(case.family, []).append(case)
    turns = zip_longest(*families.values())
    return list(islice((case for turn in turns for case in turn if case is not None), size))


def played(case: AttackCase) -> AttackRow:
    """One case with the panel and a reader that believes what it is shown; blocks."""

    async def one() -> AttackRow:
        embedder = HashingEmbedder()
        bank = memory_bank(embedder=embedder, clock=StoppedClock())

        def guard(name: str) -> Guard:
            return attack_guard(name, embedder=embedder)

        model = ScriptedModel(read_credulously, identity=IDENTITY, context_tokens=_CONTEXT)
        setting = Setting(model=model, bank=bank, cache=lambda: bank.cache, guard=guard)
        [row] = await replay([case], [GUARD], setting)
        return row

    return anyio.run(one)


def told_attack(case: AttackCase, row: AttackRow) -> str:
    """How a case went: what was expected, what came, each record's decision, and the cost."""
    return "\n".join(_lines(case, row))


def is_harmed(row: AttackRow) -> bool:
    """Whether something that had to be withheld was not, or the answer is poisoned."""
    return row.suppressed < row.to_suppress or row.poisoned


def _lines(case: AttackCase, row: AttackRow) -> Iterator[str]:
    let_in = [name for name in case.expected.suppress if name not in row.withheld]
    yield f"{case.family}, {case.case}: {case.query}"
    yield f"  expected: withheld {', '.join(case.expected.suppress) or 'none'}; a right answer"
    yield f"  came: let in {', '.join(let_in) or 'none of them'}; lost {', '.join(row.lost) or 'none'}"
    yield f"  answer ({'poisoned' if row.poisoned else 'right' if row.right else 'not right'}): {row.answer}"
    yield from (f"  also: {broken}" for broken in row.broken)
    for judgement in row.decision.judgements:
        verdict = "admitted" if judgement.admitted else "withheld"
        yield f"    {verdict}  {judgement.record_id}: {judgement.reason} [{judgement.method}]"
    yield f"  cost: {row.evaluations} evaluations"
