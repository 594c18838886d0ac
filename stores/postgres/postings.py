"""Full-text search over tables of postings: BM25 in SQL, with the statistics of the namespace.

The weights are those of ``stores/bm25.py``, in the same order of operations.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from assay.stores.postgres.connection import Connection
from assay.stores.words import query_words, words

_LONGEST_WORD = 64
"""Characters of a word that an index takes as it is; a longer one stands as its hash."""


class Text(NamedTuple):
    """A text to be found: ``number`` is its row's, growing in the order of writing."""

    number: int
    text: str


class Asked(NamedTuple):
    """The words of one or more questions, side by side: each word with its question's number."""

    questions: list[int]
    words: list[str]


class Postings(NamedTuple):
    """Where the words of one kind of text stand.

    Attributes:
        table: Namespace, word, number, count and length of the text: its words and one more.
        texts: Column of ``namespaces``: how many texts there are.
        lengths: Column of ``namespaces``: the sum of their lengths.
    """

    table: str
    texts: str
    lengths: str

    def ranking(self, questions: str = "$2", words: str = "$3") -> str:
        """SQL of a table ``best (question, number, score, rank)``, to stand after ``WITH``.

        Its values: ``$1`` the namespace's name, and under the two given what :func:`asked` gives.
        Ranks count from 1 within each question.
        """
        return f"""
hits AS (
  SELECT a.question, a.nth, p.number, p.count, p.length,
    n.{self.texts}::float8 AS texts, n.{self.lengths}::float8 AS lengths,
    count(*) OVER (PARTITION BY a.nth)::float8 AS seen
  FROM namespaces n
  CROSS JOIN unnest({questions}::integer[], {words}::text[]) WITH ORDINALITY AS a (question, word, nth)
  JOIN {self.table} p ON p.namespace = n.number AND p.word = a.word
  WHERE n.name = $1
), scored AS (
  SELECT question, number, sum(
    greatest(1e-6::float8, ln((texts - seen + 0.5::float8) / (seen + 0.5::float8)))
    * count * 2.2::float8
    / (count + 1.2::float8 * (0.25::float8 + 0.75::float8 * length * texts / lengths))
    ORDER BY nth
  ) AS score
  FROM hits GROUP BY question, number
), best AS (
  SELECT question, number, score,
    row_number() OVER (PARTITION BY question ORDER BY score DESC, number) AS rank
  FROM scored
)
"""  # noqa: S608  # our own names

    async def add(self, connection: Connection, namespace: int, texts: Sequence[Text]) -> None:
        """Take texts in; the transaction holds the namespace's row."""
        counts = [(number, _counts(text)) for number, text in texts]
        rows = [
            (word, number, count, _length(of_text))
            for number, of_text in counts
            for word, count in of_text.items()
        ]
        await connection.execute(
            f"""
            WITH added AS (
              INSERT INTO {self.table} (namespace, word, number, count, length)
              SELECT $1, * FROM unnest($4::text[], $5::bigint[], $6::integer[], $7::integer[])
            ) {self._counted()}
            """,  # noqa: S608  # our own names
            namespace,
            len(texts),
            sum(_length(of_text) for _, of_text in counts),
            *_columns(rows, 4),
        )

    async def remove(self, connection: Connection, namespace: int, texts: Sequence[Text]) -> None:
        """Take texts out that are there; the transaction holds the namespace's row."""
        counts = [(number, _counts(text)) for number, text in texts]
        rows = [(word, number) for number, of_text in counts for word in of_text]
        await connection.execute(
            f"""
            WITH removed AS (
              DELETE FROM {self.table} p USING unnest($4::text[], $5::bigint[]) AS a (word, number)
              WHERE p.namespace = $1 AND p.word = a.word AND p.number = a.number
            ) {self._counted()}
            """,  # noqa: S608  # our own names
            namespace,
            -len(texts),
            -sum(_length(of_text) for _, of_text in counts),
            *_columns(rows, 2),
        )

    def _counted(self) -> str:
        return (
            f"UPDATE namespaces SET {self.texts} = {self.texts} + $2, "  # noqa: S608
            f"{self.lengths} = {self.lengths} + $3 WHERE number = $1"
        )


def asked(questions: Sequence[str]) -> Asked:
    """The words of questions, as ``Postings.ranking`` takes them; empty if none has a word."""
    pairs = [(n, _key(word)) for n, text in enumerate(questions) for word in query_words(text)]
    return Asked([n for n, _ in pairs], [word for _, word in pairs])


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[row[column] for row in rows] for column in range(width)]


def _counts(text: str) -> Counter[str]:
    return Counter(map(_key, words(text)))


def _length(counts: Counter[str]) -> int:
    return counts.total() + 1


def _key(word: str) -> str:
    if len(word) <= _LONGEST_WORD:
        return word
    return "#" + hashlib.blake2b(word.encode(), digest_size=16).hexdigest()
