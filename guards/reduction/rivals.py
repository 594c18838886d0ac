"""Other reduction searches, written from their papers, to compare with.

ddmin: Zeller and Hildebrandt 2002. QuickXplain: Junker 2004. ProbDD: Wang et al. 2021.
All three remember answers; ddmin and QuickXplain also infer from them (monotone decisions).
"""

from collections.abc import Generator, Sequence
from itertools import pairwise

from assay.guards.coalitions import Coalition, coalition_of
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.search import Core, Question, Search


def ddmin(order: Sequence[int]) -> Search:
    """Delta debugging, complements first, asking only what does not follow from earlier answers.

    Args:
        order: Every record once, those to delete first in front.
    """
    return (yield from halve(order, Knowledge(coalition_of(order))))


def halve(order: Sequence[int], knowledge: Knowledge) -> Search:
    """``ddmin`` with what is known already; tells all it learns to ``knowledge``."""
    kept = list(order)
    parts = 2
    while len(kept) > 1:
        smaller = yield from _without_a_chunk(kept, parts, knowledge)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(2 * parts, len(kept))
        else:
            break
    return (yield from _unless_nothing_does(coalition_of(kept), knowledge))


def quickxplain(preference: Sequence[int]) -> Search:
    """Divide and conquer for one preferred minimal set.

    Args:
        preference: Every record once, those to keep first in front.
    """
    knowledge = Knowledge(coalition_of(preference))
    kept = yield from _explain(0, list(preference), knowledge, grown=False)
    return (yield from _unless_nothing_does(kept, knowledge))


def probdd(order: Sequence[int], *, prior: float = 0.1) -> Search:
    """Probabilistic delta debugging: delete the group with the greatest expected gain.

    Args:
        order: Every record once, those to delete first in front.
        prior: Probability, before any answer, that a record is needed; in (0, 1).

    Raises:
        ValueError: If the prior is not in (0, 1).
    """
    if not 0 < prior < 1:
        raise ValueError(f"the prior must be in (0, 1), got {prior!r}")
    needed = dict.fromkeys(order, prior)
    knowledge = Knowledge(coalition_of(order))
    while True:
        group, gone = _most_gain(needed)
        if not group:
            return Core(coalition_of(needed), "sufficient")
        rest = coalition_of(i for i in needed if i not in group)
        if (yield from knowledge.ask(rest, gone)):
            needed = {i: p for i, p in needed.items() if i not in group}
        else:
            raised = {i: min(1.0, needed[i] / (1 - gone)) for i in group}
            needed |= raised if len(group) > 1 else dict.fromkeys(group, 1.0)


_CERTAIN = 1 - 1e-9


def _most_gain(needed: dict[int, float]) -> tuple[list[int], float]:
    """The group to delete next and the probability that none of it is needed."""
    candidates = [i for i in sorted(needed, key=needed.__getitem__) if needed[i] < _CERTAIN]
    chances = [1 - needed[i] for i in candidates]
    best, most, gone = 0, 0.0, 0.0
    running = 1.0
    for size, chance in enumerate(chances, start=1):
        running *= chance
        if size * running > most:
            best, most, gone = size, size * running, running
    return candidates[:best], gone


def _unless_nothing_does(kept: int, knowledge: Knowledge) -> Search:
    """Both methods take for granted that the empty set fails; with one record left it is asked."""
    single = kept.bit_count() == 1
    empty = single and (yield from knowledge.find_out(0, 0.1))
    return Core(Coalition(0 if empty else kept), "1-minimal if monotone")


def _without_a_chunk(
    kept: Sequence[int], parts: int, knowledge: Knowledge
) -> Generator[Question, bool, list[int] | None]:
    """What is left after the first chunk that can go, or ``None`` if none can."""
    cuts = [len(kept) * part // parts for part in range(parts + 1)]
    for start, end in pairwise(cuts):
        rest = [*kept[:start], *kept[end:]]
        if (yield from knowledge.find_out(coalition_of(rest))):
            return rest
    return None


def _explain(
    background: int, left: Sequence[int], knowledge: Knowledge, *, grown: bool
) -> Generator[Question, bool, int]:
    """The part of ``left`` that is needed on top of the background."""
    if grown and (yield from knowledge.find_out(background)):
        return 0
    if len(left) == 1:
        return 1 << left[0]
    half = len(left) // 2
    first, second = left[:half], left[half:]
    preferred = coalition_of(first)
    late = yield from _explain(background | preferred, second, knowledge, grown=True)
    early = yield from _explain(background | late, first, knowledge, grown=late != 0)
    return early | late
