"""Text to the words that keyword search compares; the same for every implementation.

Done here and not by the database's tokenizer, so that the in-memory oracle, SQLite and any other
store agree on what a word is, and no query syntax can come out of a user's text.
"""

import re
import unicodedata

# Scripts without blanks between words: each character is a word of its own.
_UNSPACED = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")

# Letters, and the voicing marks of kana: without them other words would be meant.
_KEPT_CLASSES = {0, 8}

_ASCII_WORD = re.compile("[a-z0-9]+")

MOST_QUERY_WORDS = 64
"""A query is cut to its first distinct words: a message of a megabyte must not become a scan."""


def words(text: str) -> list[str]:
    """Words of a text in order: case folded, without accents; equal for NFC and NFD."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())  # the same words, at a third of the cost
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if unicodedata.combining(c) in _KEPT_CLASSES)
    return _WORD.findall(unicodedata.normalize("NFC", plain.casefold()))


def query_words(text: str) -> list[str]:
    """The distinct words of a query in order, at most ``MOST_QUERY_WORDS``."""
    return list(dict.fromkeys(words(text)))[:MOST_QUERY_WORDS]
