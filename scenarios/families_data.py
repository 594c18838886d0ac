"""The eight families as bytes: one line per scenario, the same from the same seed everywhere."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from assay.errors import ScenarioError
from assay.scenarios.families import generate
from assay.scenarios.schema import Scenario

_encoder = msgspec.json.Encoder(order="deterministic")


def to_jsonl(scenarios: Sequence[Scenario]) -> bytes:
    """One JSON object per line: the example and its key, sets sorted."""
    return b"".join(
        _encoder.encode({"example": s.example, "key": s.key}) + b"\n" for s in scenarios
    )


def families_digest(size: int, *, seed: int) -> str:
    """SHA-256 in hex of what ``generate`` gives; another one means another generator.

    Raises:
        ValueError: If ``size`` is below 1.
    """
    return hashlib.sha256(to_jsonl(generate(size, seed=seed))).hexdigest()


def write_families(path: Path, size: int, *, seed: int) -> None:
    """Write ``size`` scenarios to a file.

    Raises:
        ScenarioError: If it cannot be written.
        ValueError: If ``size`` is below 1.
    """
    data = to_jsonl(generate(size, seed=seed))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise ScenarioError(f"cannot write {str(path)!r}: {error.strerror}") from error
