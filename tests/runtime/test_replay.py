"""One conversation gives one journal, whatever process, hash seed or time zone it runs in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def journal_in_another_process(**environment: str) -> str:
    done = subprocess.run(  # ourselves
        [sys.executable, "-c", "from tests.runtime.crashing import digest; digest()"],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def digest() -> str:
    return journal_in_another_process(PYTHONHASHSEED="0", TZ="UTC")


@pytest.mark.parametrize(
    ("seed", "zone"), [("1", "UTC"), ("0", "Pacific/Kiritimati"), ("random", "America/Caracas")]
)
def test_the_journal_does_not_depend_on_where_it_is_written(
    digest: str, seed: str, zone: str
) -> None:
    assert journal_in_another_process(PYTHONHASHSEED=seed, TZ=zone) == digest
    assert len(digest) == 64
