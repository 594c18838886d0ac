"""A user's folders of their own for every test here."""

from collections.abc import Iterator
from pathlib import Path

import blockbuster
import pytest

from assay.runtime.models.llama import Llama
from assay.runtime.models.model_files import find_file


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return home


@pytest.fixture(scope="session")
def llama() -> Llama:
    """The embedded model, loaded once; one thread, since the machine may be busy with others."""
    return Llama(find_file(""), context_tokens=512, threads=1)


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    """Files, sockets and waits of our own code belong in a thread."""
    with blockbuster.blockbuster_ctx("assay"):
        yield
