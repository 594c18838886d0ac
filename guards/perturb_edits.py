"""Edits of a text that replace or add whole words, never a part of one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias


class Edit(NamedTuple):
    """Characters ``start`` to ``stop`` (exclusive) become ``new``."""

    start: int
    stop: int
    new: str


Editor: TypeAlias = Callable[[str], Sequence[Edit]]
"""From a text to edits in order that do not overlap; none where it has nothing to work on."""


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with its edits made."""
    pieces: list[str] = []
    end = 0
    for edit in edits:
        pieces += (text[end : edit.start], edit.new)
        end = edit.stop
    return "".join((*pieces, text[end:]))


def cuts_a_word(text: str, edit: Edit) -> bool:
    """Whether an edit begins or ends inside a word, or joins a word to what it adds."""
    before, after = text[: edit.start][-1:], text[edit.stop :][:1]
    inside = text[edit.start : edit.stop]
    first, last = (edit.new or after)[:1], (edit.new or before)[-1:]
    return any(
        _joined(left, right)
        for left, right in (
            (before, inside[:1]),
            (inside[-1:], after),
            (before, first),
            (last, after),
        )
    )


def capitalised_like(new: str, old: str) -> str:
    """``new`` with a capital where ``old`` begins with one."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _joined(left: str, right: str) -> bool:
    return bool(left and right) and left.isalnum() and right.isalnum()
