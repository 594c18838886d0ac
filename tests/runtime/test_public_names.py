import subprocess
import sys
from pathlib import Path

import pytest

import assay

ROOT = Path(__file__).parents[2]
HEAVY = ("openai", "scipy", "faiss", "numpy", "xllamacpp", "altair", "anyio", "typer")


def run(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.stdout


@pytest.mark.parametrize("name", dir(assay))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(assay, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'assay' has no attribute 'nothing'"):
        getattr(assay, "nothing")  # noqa: B009  # a plain access would not pass the type check


def test_importing_assay_loads_nothing_heavy() -> None:
    listed = run("-c", f"import assay, sys; print([m for m in {HEAVY!r} if m in sys.modules])")

    assert listed == "[]\n"


def test_the_embedding_example_answers_and_shows_its_decision() -> None:
    lines = run("examples/embed.py").splitlines()

    assert lines[0] == "My cat is called Miso."
    assert lines[1].startswith("admitted - ")
