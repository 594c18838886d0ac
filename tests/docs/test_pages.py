"""Every code block of the documentation runs, page by page, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted(
    page
    for page in (*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md"))
    if BLOCK.search(page.read_text())
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    for language, code in BLOCK.findall(page.read_text()):
        command = ["bash", "-euc", code] if language == "bash" else [sys.executable, "-c", code]
        run = subprocess.run(  # noqa: S603 - the documentation's own blocks
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{code}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"


def test_pages_are_found() -> None:
    assert {page.stem for page in PAGES} >= {"index", "simulate", "embed", "replay", "benchmarks"}
