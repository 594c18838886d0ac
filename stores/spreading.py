"""No outside source fills the candidates by itself: whoever floods a bank crowds nobody out."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from assay.stores.records import Candidate, Origin

_CAPPED: Final = frozenset({"external", "tool"})


def spread(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The best ``limit`` of a ranking, at most half of them (rounded up) from one outside source.

    A source is a writer and a channel; the user, the operator and the assistant are no outside
    ones. Places that nobody else takes go to whoever was put back.

    Args:
        ranked: Best first.
        limit: Most candidates.

    Returns:
        Best first.
    """
    kept = _within(ranked, limit)
    chosen = set(kept[:limit])
    put_back = (i for i in range(len(ranked)) if i not in chosen)
    chosen.update(i for i, _ in zip(put_back, range(limit - len(chosen)), strict=False))
    return [ranked[i] for i in sorted(chosen)]


def is_spread(ranked: Sequence[Candidate], limit: int) -> bool:
    """Whether no record further down would change what ``spread`` gives."""
    return len(_within(ranked, limit)) >= limit


def _within(ranked: Sequence[Candidate], limit: int) -> list[int]:
    """Places of those that no cap puts back, best first."""
    most = (limit + 1) // 2
    taken: Counter[Origin] = Counter()
    kept: list[int] = []
    for place, candidate in enumerate(ranked):
        origin = candidate.record.origin
        source = Origin(writer=origin.writer, channel=origin.channel)
        if origin.writer in _CAPPED and taken[source] >= most:
            continue
        taken[source] += 1
        kept.append(place)
    return kept
