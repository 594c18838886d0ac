"""Files of examples, read line by line; every error names file, line and what was expected."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from assay.errors import ScenarioError

T = TypeVar("T")

_MOST_BYTES = 64 * 1024 * 1024
"""Longest line accepted; longer ones are not the data they claim to be."""


class Line(NamedTuple):
    """One non-empty line: ``number`` counts from 1."""

    number: int
    data: bytes


def read_jsonl(path: Path, kind: type[T]) -> list[tuple[int, T]]:
    """Every line of a JSONL file as ``kind``, with its line number from 1; blank lines are skipped.

    Raises:
        ScenarioError: If the file is missing, unreadable or empty, or a line is not ``kind``.
    """
    decoder = msgspec.json.Decoder(kind)
    rows = [(line.number, _decode(decoder, path, line)) for line in _lines(path)]
    if not rows:
        raise ScenarioError(f"{path}: expected at least one line of JSON, got an empty file")
    return rows


def malformed(path: Path, line: int, expected: str) -> ScenarioError:
    """The error for a line that is JSON but not an example."""
    return ScenarioError(f"{path}, line {line}: {expected}")


def _decode(decoder: msgspec.json.Decoder[T], path: Path, line: Line) -> T:
    if len(line.data) > _MOST_BYTES:
        raise malformed(path, line.number, f"expected at most {_MOST_BYTES:,} bytes in a line")
    try:
        return decoder.decode(line.data)
    except msgspec.ValidationError as error:
        raise malformed(path, line.number, _lower_first(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        expected = f"expected one JSON object, got {_shown(line.data)} ({error})"
        raise malformed(path, line.number, expected) from error


def _lines(path: Path) -> Iterator[Line]:
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                if data.strip():
                    yield Line(number, data)
    except FileNotFoundError as error:
        raise ScenarioError(f"no data file {str(path)!r}; pass its path with --data") from error
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _shown(data: bytes) -> str:
    text = data.strip().decode("utf-8", errors="replace")
    return repr(text if len(text) <= 40 else text[:40] + "...")  # noqa: PLR2004


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
