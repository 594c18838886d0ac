"""What a guard asked and tried on the way to its decision, in plain data that a person can be shown."""

from typing import Literal, TypeAlias

import msgspec

from assay.stores.records import RecordId

PairMeaning: TypeAlias = Literal["substitution", "joint interference", "complementarity"]


class Tested(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One withholding that was tried.

    Attributes:
        withheld: Records left out.
        utility: Of the context without them; ``None``: no measurement.
        recovered: Whether that reached the bar.
        verified: Whether independent draws said so, too; only such a withholding is ever made.
    """

    withheld: tuple[RecordId, ...]
    utility: float | None = None
    recovered: bool = False
    verified: bool = False


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """What two records do beyond the sum of what each does.

    Attributes:
        first: The one that stands first in the prompt.
        second: The other.
        strength: In units of utility; positive: together less harmful, or more helpful, than apart.
        meaning: ``substitution``: each does the harm of both; ``joint interference``: they harm
            only, or more, together; ``complementarity``: they help only, or more, together.
    """

    first: RecordId
    second: RecordId
    strength: float
    meaning: PairMeaning


class Intervention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question a guard put to the laboratory; what came of it is in the cache.

    Attributes:
        key: Of the answer in the cache; erasing one of the records erases the answer.
        shown: Records that were in the prompt.
        rendering: How they were shown.
        draw: Number of the draw.
    """

    key: str
    shown: tuple[RecordId, ...] = ()
    rendering: str = "plain"
    draw: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way to a clearing.

    Attributes:
        before: Utility with every candidate; ``None``: no measurement.
        bar: Utility at which the task counts as done.
        tested: Withholdings tried, in order: the tested filtration.
        interactions: Pairs of which one was measured, the strongest first.
    """

    before: float | None = None
    bar: float = 0.0
    tested: tuple[Tested, ...] = ()
    interactions: tuple[Interaction, ...] = ()
