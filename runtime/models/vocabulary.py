"""Counting tokens with a model's own vocabulary, on the event loop and without the model.

Byte-pair encoding (Sennrich et al. 2016, on bytes as in Radford et al. 2019). Texts are split at
least as finely as the known pre-tokenizers split them, so the count is a bound from above that is
rarely off by more than a few percent; the model itself counts exactly when it is asked.
"""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence

from assay.guards.protocols import Message
from assay.runtime.models.counting import MESSAGE_TOKENS, PROMPT_TOKENS, bound_tokens
from assay.runtime.models.gguf import Value

KEYS = ("tokenizer.ggml.model", "tokenizer.ggml.merges")

_PIECES = re.compile(r" ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s")
_LONGEST_TEXT = 64 * 1024
_LONGEST_PIECE = 48


class Vocabulary:
    """The merges of a byte-level tokenizer.

    Args:
        merges: Pairs in order of rank, as ``"left right"``.
    """

    def __init__(self, merges: Sequence[str]) -> None:
        self._ranks = {
            (left, right): rank
            for rank, (left, _, right) in enumerate(merge.partition(" ") for merge in merges)
        }
        self._count = functools.lru_cache(maxsize=20_000)(self._piece_tokens)

    @classmethod
    def of(cls, metadata: Mapping[str, Value]) -> "Vocabulary | None":
        """The vocabulary in a GGUF file's metadata; ``None`` if it is of another kind."""
        merges = metadata.get("tokenizer.ggml.merges")
        if metadata.get("tokenizer.ggml.model") != "gpt2" or not isinstance(merges, list):
            return None
        return cls([str(merge) for merge in merges])

    def text_tokens(self, text: str) -> int:
        """Tokens of a text; bytes, which bound them, for one too long to count on the loop."""
        if len(text) > _LONGEST_TEXT:
            return len(text.encode("utf-8", "surrogatepass"))
        return sum(self._count(piece) for piece in _PIECES.findall(text))

    def _piece_tokens(self, piece: str) -> int:
        data = piece.encode("utf-8", "surrogatepass")
        if len(data) > _LONGEST_PIECE:
            return len(data)
        parts = [_BYTE_LETTERS[byte] for byte in data]
        while len(parts) > 1:
            pairs = list(itertools.pairwise(parts))
            best = min(range(len(pairs)), key=lambda i: self._ranks.get(pairs[i], _NEVER))
            if pairs[best] not in self._ranks:
                break
            parts[best : best + 2] = ["".join(pairs[best])]
        return len(parts)


def prompt_tokens(vocabulary: Vocabulary | None, messages: Sequence[Message]) -> int:
    """Tokens of a prompt, what a chat template adds included; bounded by bytes without vocabulary."""
    if vocabulary is None:
        return bound_tokens(messages)
    return PROMPT_TOKENS + sum(
        MESSAGE_TOKENS
        + vocabulary.text_tokens(message.content)
        + sum(
            vocabulary.text_tokens(call.name) + vocabulary.text_tokens(call.arguments)
            for call in message.tool_calls
        )
        for message in messages
    )


_NEVER = 1 << 62


def _byte_letters() -> list[str]:
    """The letter each byte is written as in a merge: itself where it prints, else one from U+0100 on."""
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printing]
    letters = {byte: chr(byte) for byte in printing}
    letters |= {byte: chr(0x100 + place) for place, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


_BYTE_LETTERS = _byte_letters()
