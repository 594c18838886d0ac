"""Index files are a cache: whatever happens to one, a search is right, and damage is noticed."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest
from structlog.testing import capture_logs

from assay.errors import StoreCorrupt
from assay.stores import index_file
from assay.stores.embeddings import HashingEmbedder, Kind
from assay.stores.faiss import FaissIndex
from assay.stores.memory import InMemoryStore
from assay.stores.protocols import Embedder, FloatMatrix
from assay.stores.records import RecordId

from .support import ANN, BEN, memory

TEXTS = ["green tea", "rex barks", "rain in march", "a blue train"]


class CountingEmbedder(HashingEmbedder):
    """Counts the passages it was given."""

    def __init__(self, dimension: int = 16) -> None:
        super().__init__(dimension)
        self.passages = 0

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> FloatMatrix:
        self.passages += len(texts) if kind == "passage" else 0
        return await super().embed(texts, kind=kind)


async def filled_store() -> InMemoryStore:
    store = InMemoryStore()
    await store.write([memory(f"r{n}", text) for n, text in enumerate(TEXTS)])
    return store


def index_of(
    store: InMemoryStore, embedder: Embedder, folder: Path, bank: str = "bank"
) -> FaissIndex:
    return FaissIndex(store=store, embedder=embedder, folder=folder, bank=bank)


async def best(index: FaissIndex, embedder: Embedder) -> str:
    query = await embedder.embed(["rex barks"], kind="query")
    return (await index.search(ANN, query, limit=1))[0].record_id


async def saved(store: InMemoryStore, folder: Path, bank: str = "bank") -> Path:
    """The file of an index over the store."""
    embedder = CountingEmbedder()
    index = index_of(store, embedder, folder, bank)
    await best(index, embedder)
    await index.flush()
    return only_file(folder)


def only_file(folder: Path) -> Path:
    (path,) = folder.glob("*.vectors")
    return path


async def reopened(store: InMemoryStore, folder: Path) -> tuple[str, int, list[str]]:
    """What a new index finds, how many texts it had to embed, and what it logged."""
    embedder = CountingEmbedder()
    with capture_logs() as logs:
        hit = await best(index_of(store, embedder, folder), embedder)
    return hit, embedder.passages, [entry["event"] for entry in logs]


async def test_a_saved_index_is_used_again_without_embedding(tmp_path: Path) -> None:
    store = await filled_store()
    await saved(store, tmp_path)

    assert await reopened(store, tmp_path) == ("r1", 0, [])


async def test_an_older_file_catches_up(tmp_path: Path) -> None:
    store = await filled_store()
    await saved(store, tmp_path)
    await store.erase(ANN, [RecordId("r1"), RecordId("r3")])
    await store.write([memory("r9", "rex barks loudly")])

    assert await reopened(store, tmp_path) == ("r9", 1, [])


@pytest.mark.parametrize("length", [0, 1, 7, 16, 200, -1, -32, -33])
async def test_a_truncated_file_is_rebuilt(tmp_path: Path, length: int) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    path.write_bytes(path.read_bytes()[:length])

    assert await reopened(store, tmp_path) == ("r1", 4, ["index.rebuilt"])


async def test_a_flipped_bit_leads_to_a_rebuild_and_a_good_file(tmp_path: Path) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes([whole[-40] ^ 4]) + whole[-39:])

    first = await reopened(store, tmp_path)
    await saved(store, tmp_path)

    assert first == ("r1", 4, ["index.rebuilt"])
    assert path.read_bytes() == whole


async def test_a_file_of_another_bank_is_not_used(tmp_path: Path) -> None:
    store = await filled_store()
    await saved(store, tmp_path, bank="another")

    assert await reopened(store, tmp_path) == ("r1", 4, ["index.rebuilt"])


async def test_a_file_of_another_namespace_is_not_used(tmp_path: Path) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    path.rename(index_of(store, CountingEmbedder(), tmp_path).path_of(BEN))
    await store.write([memory("b1", namespace=BEN)])
    embedder = CountingEmbedder()
    query = await embedder.embed(["rex"], kind="query")

    with capture_logs() as logs:
        hits = await index_of(store, embedder, tmp_path).search(BEN, query, limit=9)

    assert [hit.record_id for hit in hits] == ["b1"]
    assert [entry["event"] for entry in logs] == ["index.rebuilt"]


async def test_a_file_of_another_embedder_is_not_used(tmp_path: Path) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    content = await anyio.to_thread.run_sync(index_file.read, path)
    header = index_file.Header(
        bank=content.header.bank,
        namespace=ANN,
        embedder="another@1",
        dimension=16,
        version=content.header.version,
        anchors=content.header.anchors,
        ids=content.header.ids,
    )
    negated = index_file.VectorFile(header, -content.vectors)
    await anyio.to_thread.run_sync(index_file.write, path, negated)

    assert await reopened(store, tmp_path) == ("r1", 4, ["index.rebuilt"])


async def test_a_restored_bank_that_went_another_way_is_noticed(tmp_path: Path) -> None:
    await saved(await filled_store(), tmp_path)
    restored = InMemoryStore()
    await restored.write([memory(f"x{n}", f"other {n}") for n in range(5)])
    await restored.write([memory("x9", "rex barks")])

    assert await reopened(restored, tmp_path) == ("x9", 6, ["index.rebuilt"])


async def test_a_bank_behind_its_file_is_noticed(tmp_path: Path) -> None:
    await saved(await filled_store(), tmp_path)
    restored = InMemoryStore()
    await restored.write([memory("r1", "rex barks")])

    assert await reopened(restored, tmp_path) == ("r1", 1, ["index.rebuilt"])


async def test_an_erased_record_leaves_no_vector_in_the_file(tmp_path: Path) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    embedder = CountingEmbedder()
    vector = (await embedder.embed(["rex barks"], kind="passage"))[0].astype("<f4").tobytes()
    before = vector in path.read_bytes()

    await store.erase(ANN, [RecordId("r1")])
    await index_of(store, embedder, tmp_path).purge(ANN)

    assert before
    assert vector not in path.read_bytes()


async def test_purging_the_last_record_removes_the_file(tmp_path: Path) -> None:
    store = await filled_store()
    path = await saved(store, tmp_path)
    await store.erase(ANN, [RecordId(f"r{n}") for n in range(4)])

    await index_of(store, CountingEmbedder(), tmp_path).purge(ANN)

    assert not path.exists()


async def test_flush_does_not_bring_back_what_another_process_erased(tmp_path: Path) -> None:
    store = await filled_store()
    mine, theirs = (index_of(store, CountingEmbedder(), tmp_path) for _ in range(2))
    await best(mine, CountingEmbedder())
    await store.erase(ANN, [RecordId("r1")])
    await theirs.purge(ANN)
    purged = only_file(tmp_path).read_bytes()

    await mine.flush()

    assert only_file(tmp_path).read_bytes() == purged


async def test_a_file_that_cannot_be_written_is_logged_and_the_search_goes_on(
    tmp_path: Path,
) -> None:
    store = await filled_store()
    embedder = CountingEmbedder()
    index = index_of(store, embedder, tmp_path / "missing")

    with capture_logs() as logs:
        hit = await best(index, embedder)
        await index.flush()

    assert hit == "r1"
    assert [entry["event"] for entry in logs] == ["index.unsaved"]


def small_file() -> index_file.VectorFile:
    vectors = np.random.default_rng(7).standard_normal((3, 5)).astype(np.float32)
    header = index_file.Header(
        bank="b",
        namespace=ANN,
        embedder="e",
        dimension=5,
        version=9,
        anchors=(RecordId("r3"),),
        ids=(RecordId("r1"), RecordId("r2"), RecordId("r3")),
    )
    return index_file.VectorFile(header, vectors)


def write_small(path: Path) -> None:
    index_file.write(path, small_file())


def is_noticed(path: Path, content: bytes, bit: int) -> bool:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    try:
        index_file.read(path)
    except StoreCorrupt:
        return True
    return False


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    index_file.write(path, small_file())
    whole = path.read_bytes()

    assert all(is_noticed(path, whole, bit) for bit in range(0, 8 * len(whole), 3))


def test_a_file_comes_back_as_written(tmp_path: Path) -> None:
    index_file.write(tmp_path / "f", small_file())

    content = index_file.read(tmp_path / "f")

    assert content.header == small_file().header
    assert np.array_equal(content.vectors, small_file().vectors)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("change", [index_file.remove, write_small])
def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    (tmp_path / ".f.abc.new").write_bytes(b"half a file")
    (tmp_path / ".other.abc.new").write_bytes(b"of another namespace")

    change(tmp_path / "f")

    assert {p.name for p in tmp_path.iterdir()} - {"f"} == {".other.abc.new"}


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_small(path)
    before = path.read_bytes()

    def no_space(handle: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(OSError, match="no space left"):
            write_small(path)

    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
