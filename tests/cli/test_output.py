"""What goes where: results on stdout, everything else on stderr, and never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path


def assay(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", "from assay.cli import main; main()", *arguments],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **environment},
        timeout=20,
    )


def test_a_retry_is_told_in_words_and_stdout_stays_empty(tmp_path: Path) -> None:
    done = assay(
        *("replay", "families", "--size", "1", "--method", "vector", "--json"),
        *("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--embedder", "hashing"),
        ASSAY_MODEL_RETRIES="1",
        XDG_DATA_HOME=str(tmp_path),
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "; again in " in done.stderr
    assert "stamina" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "assay: openai:x@http://127.0.0.1:9/v1 could not"
    )


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = assay("replay", "families", "--size", "1", "--write", str(tmp_path))

    assert done.returncode == 2
    assert done.stderr.startswith("assay: cannot ")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_json_is_one_object(tmp_path: Path) -> None:
    done = assay(
        *("replay", "families", "--size", "2", "--method", "vector", "--json"),
        *("--model", "scripted", "--embedder", "hashing"),
        XDG_DATA_HOME=str(tmp_path),
    )

    assert json.loads(done.stdout)["suite"] == "families"
