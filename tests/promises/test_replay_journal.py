"""P8: a journal and a cassette give the same decisions anywhere; a changed prompt is named."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Promise

ASSAY = (sys.executable, "-c", "from assay.cli import main; main()")
FAST = ("--model", "scripted", "--embedder", "hashing")
SAID = (
    "My cat is called Miso.",
    "I live in Porto and I work as a baker.",
    "What is my cat called?",
    "I moved to Lisbon.",
    "Where do I live?",
    "What do I work as?",
)
WHERE = [
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "OMP_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "OMP_NUM_THREADS": "2"},
    {"PYTHONHASHSEED": "77", "TZ": "America/Caracas", "OMP_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "random", "TZ": "Asia/Kathmandu", "OMP_NUM_THREADS": "4"},
]


def assay(*arguments: str, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - ourselves
        [*ASSAY, *arguments],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank"
    done = assay("chat", "--bank", str(path), *FAST, said="\n".join(SAID))
    assert done.returncode == 0, done.stderr
    return path


def replayed(bank: Path, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
    done = assay(
        "replay", "journal", str(bank), "--embedder", "hashing", "--json", *arguments, **environment
    )
    return done.returncode, json.loads(done.stdout or "{}")


@pytest.mark.promise("P8", "a journal replays to the same decisions, wherever it is replayed")
def test_a_journal_replays_to_the_same_decisions(bank: Path, promise: Promise) -> None:
    where = WHERE[: promise.times(2, 4)]

    found = [replayed(bank, **environment) for environment in where]

    decisions = len(SAID)
    expected: dict[str, object] = {"decisions": decisions, "replies": decisions, "divergences": []}
    assert found == [(0, expected)] * len(where)
    promise.kept(
        f"{decisions * len(where)} of {decisions * len(where)} decisions identical, "
        f"in {len(where)} surroundings"
    )


@pytest.mark.promise("P8", "a changed prompt is a named divergence")
def test_a_changed_prompt_is_named(bank: Path, promise: Promise) -> None:
    code, found = replayed(bank, ASSAY_PROMPT_INSTRUCTIONS="Answer in verse.")

    divergences: list[dict[str, str]] = found["divergences"]
    first = divergences[0]
    assert code == 1
    assert first["field"] == "prompt: message 1 (system)"
    assert "Answer in verse." in first["asked"]
    assert first["recorded"] != first["asked"]
    promise.kept(f"{len(divergences)} divergences named by field, recorded and asked")


def test_a_bank_without_a_journal_is_refused(tmp_path: Path) -> None:
    done = assay("replay", "journal", str(tmp_path / "none"), "--embedder", "hashing")

    assert (done.returncode, done.stdout) == (2, "")
    assert "no bank at" in done.stderr


def test_a_cassette_that_is_not_there_is_refused(bank: Path, tmp_path: Path) -> None:
    done = assay(
        *("replay", "journal", str(bank), "--embedder", "hashing"),
        *("--cassette", str(tmp_path / "none.jsonl")),
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot read the cassette" in done.stderr
