"""Other wordings of a record that ought to matter, made from its text without a model.

``PUBLISHED`` are the four that CMI was published with: three sentences put before the text, and its
names replaced. ``MEANINGFUL`` work on what the text itself states: its verb, dates, names, values
and wording. Whole words are replaced or added, never a part of one.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from assay.guards.perturb_dates import shift_edits
from assay.guards.perturb_edits import Edit, Editor, applied
from assay.guards.perturb_names import stand_in_edits, swap_edits
from assay.guards.perturb_values import value_edits
from assay.guards.perturb_wording import negation_edits, paraphrase_edits


def negated(text: str) -> str:
    """Says that the record is not true."""
    return f"It is not true that: {text}"


def outdated(text: str) -> str:
    """Says that the record may be outdated."""
    return f"This may be outdated: {text}"


def rescoped(text: str) -> str:
    """Says that the record belongs to another context."""
    return f"This holds only in another context: {text}"


def renamed(text: str) -> str:
    """Every name replaced by another, the same one by the same; without names, about someone else."""
    edits = stand_in_edits(text)
    return applied(text, edits) if edits else f"This is about someone else: {text}"


EDITORS: Mapping[str, Editor] = MappingProxyType(
    {
        "denied": negation_edits,
        "date_shift": shift_edits,
        "entity_swap": swap_edits,
        "value_swap": value_edits,
        "paraphrase": paraphrase_edits,
    }
)
"""What each meaningful perturbation edits; no edit where a text gives it nothing to work on."""


def _editing(editor: Callable[[str], Sequence[Edit]]) -> Callable[[str], str]:
    return lambda text: applied(text, editor(text))


PUBLISHED: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"negation": negated, "temporal": outdated, "scope": rescoped, "entity": renamed}
)
"""As published; each changes every text."""

MEANINGFUL: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {name: _editing(editor) for name, editor in EDITORS.items()}
)
"""On the text's own statements; a text that gives nothing to work on stays as it is."""

PERTURBATIONS: Mapping[str, Callable[[str], str]] = MappingProxyType({**PUBLISHED, **MEANINGFUL})
"""By rendering name."""

_OFFERED: Final = tuple(MEANINGFUL)


def perturbations_for(text: str, *, seed: int, count: int) -> tuple[str, ...]:
    """Names of up to ``count`` different perturbations that change this text.

    Drawn by seed and text alone: ids and order change nothing. ``denied`` changes every text with
    a letter or digit in it, so there is at least one, and fewer than ``count`` only where no more fit.
    """
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()
    fitting = [name for name in _OFFERED if PERTURBATIONS[name](text) != text]
    start = int.from_bytes(digest[:8]) % len(fitting)
    return tuple((fitting[start:] + fitting[:start])[:count])


def perturbation_for(text: str, *, seed: int) -> str:
    """The name of one perturbation that changes this text; see ``perturbations_for``."""
    return perturbations_for(text, seed=seed, count=1)[0]
