"""WordPiece as BERT's uncased models use it (Schuster and Nakajima, 2012; Devlin et al., 2019)."""

import unicodedata
from collections.abc import Iterator, Mapping

CLS, SEP, UNK = "[CLS]", "[SEP]", "[UNK]"

_LONGEST_WORD = 100
"""A longer word becomes one unknown token, as in the models' training."""

_IDEOGRAPHS = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF))


def tokens(text: str, vocabulary: Mapping[str, int], *, limit: int) -> list[int]:
    """Token numbers of a text between ``[CLS]`` and ``[SEP]``, cut to ``limit`` in all."""
    pieces: list[int] = []
    for word in _split(text):
        pieces += _pieces(word, vocabulary)
        if len(pieces) >= limit - 2:
            break
    return [vocabulary[CLS], *pieces[: limit - 2], vocabulary[SEP]]


def _split(text: str) -> Iterator[str]:
    """Lower-case words without accents; punctuation and ideographs are words of their own."""
    for chunk in unicodedata.normalize("NFD", text.lower()).split():
        word = ""
        for character in chunk:
            if unicodedata.category(character) in {"Mn", "Cc", "Cf"}:
                continue
            if not _stands_alone(character):
                word += character
                continue
            if word:
                yield word
            yield character
            word = ""
        if word:
            yield word


def _stands_alone(character: str) -> bool:
    # ASCII symbols such as $ and ^ count as punctuation here, though Unicode calls them symbols.
    if character.isascii():
        return not character.isalnum()
    code = ord(character)
    return unicodedata.category(character).startswith("P") or any(
        low <= code <= high for low, high in _IDEOGRAPHS
    )


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The longest known pieces from the left; one unknown token if the word has no such split."""
    if len(word) > _LONGEST_WORD:
        return [vocabulary[UNK]]
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return [vocabulary[UNK]]
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found
