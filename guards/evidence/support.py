"""How much of what a record claims was said in the archived turns."""

from collections.abc import Sequence

from assay.guards.evidence.text import content
from assay.stores.records import ArchiveTurn


def share_found(values: frozenset[str], turns: Sequence[ArchiveTurn]) -> float:
    """Share of ``values`` that occur in the turns, in [0, 1]; 0 for no values."""
    if not values:
        return 0.0
    return len(values & content(turn.text for turn in turns)) / len(values)


def bearing_turns(values: frozenset[str], turns: Sequence[ArchiveTurn]) -> tuple[str, ...]:
    """Ids of the turns that hold one of ``values``, in the order given."""
    return tuple(str(turn.id) for turn in turns if values & content([turn.text]))
