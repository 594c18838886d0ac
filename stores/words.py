"""Text to the words that keyword search compares; the same for every implementation.

Done here and not by the database's tokenizer, so that the in-memory oracle, SQLite and any other
store agree on what a word is, and no query syntax can come out of a user's text.
"""

import re
import unicodedata

# Scripts without blanks between words: each character is a word of its own.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")

MOST_QUERY_WORDS = 64
"""A query is cut to its first distinct words: a message of a megabyte must not become a scan."""


def words(text: str) -> list[str]:
    """Words of a text in order: case folded, without accents; equal for NFC and NFD."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return _WORD.findall(text.casefold())


def query_words(text: str) -> list[str]:
    """The distinct words of a query in order, at most ``MOST_QUERY_WORDS``."""
    return list(dict.fromkeys(words(text)))[:MOST_QUERY_WORDS]
