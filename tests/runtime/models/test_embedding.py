"""An embedder at an endpoint: what it gives, and what it refuses to take for a vector."""

from pathlib import Path

import numpy as np
import pytest

from assay.errors import ConfigError, EmbedderMismatch, MalformedAnswer, ModelUnavailable
from assay.runtime.models.embedding import BATCH
from assay.runtime.wiring import open_runtime

from .fault_server import embeddings, http, serving, vectors
from .support import KEY, embedding_endpoint


async def test_texts_become_unit_rows_in_their_order() -> None:
    async with serving(vectors) as server, embedding_endpoint(server.url) as embedder:
        rows = await embedder.embed(["a", "bb", ""], kind="passage")

        assert server.bodies[-1]["input"] == ["a", "bb", " "]

    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0].tolist() != rows[1].tolist()
    assert embedder.dimension == 3
    assert embedder.name == f"openai:e@{server.url}"


async def test_many_texts_are_sent_in_parts() -> None:
    async with serving(vectors) as server, embedding_endpoint(server.url) as embedder:
        rows = await embedder.embed(["word"] * (2 * BATCH + 1), kind="passage")

        assert [len(body["input"]) for body in server.bodies] == [1, BATCH, BATCH, 1]

    assert rows.shape == (2 * BATCH + 1, 3)


async def test_no_texts_ask_nothing() -> None:
    async with serving(vectors) as server, embedding_endpoint(server.url) as embedder:
        assert (await embedder.embed([], kind="query")).shape == (0, 3)

        assert len(server.bodies) == 1


async def test_rows_are_told_apart_by_their_index() -> None:
    swapped = http({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]})
    first = embeddings([[1.0, 0.0]])

    async with serving(first, swapped) as server, embedding_endpoint(server.url) as embedder:
        rows = await embedder.embed(["a", "b"], kind="query")

    assert rows.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param([[float("nan"), 1.0]], "NaN", id="NaN"),
        pytest.param([[float("-inf"), 1.0]], "NaN", id="-Infinity"),
        pytest.param([[1e300, 1.0]], "infinity", id="too large"),
        pytest.param([[0.0, 0.0]], "direction", id="zeros"),
        pytest.param([[None, 1.0]], "embeddings", id="null number"),
        pytest.param([list[float]()], "same length|numbers", id="empty vector"),
        pytest.param([[1.0, 0.0, 0.0]], "2 numbers", id="other length"),
        pytest.param(list[list[float]](), "1 embeddings", id="none"),
        pytest.param([[1.0, 0.0], [1.0, 0.0]], "1 embeddings", id="too many"),
    ],
)
async def test_what_is_no_vector_is_refused(given: list[list[float]], said: str) -> None:
    async with (
        serving(embeddings([[1.0, 0.0]]), embeddings(given)) as server,
        embedding_endpoint(server.url) as embedder,
    ):
        with pytest.raises(MalformedAnswer, match=said):
            await embedder.embed(["a"], kind="query")


async def test_a_passing_failure_is_not_seen() -> None:
    async with (
        serving(http("", status=500), vectors) as server,
        embedding_endpoint(server.url) as embedder,
    ):
        assert embedder.dimension == 3


async def test_an_endpoint_that_is_down_is_told_when_it_is_opened() -> None:
    async with serving(http("", status=503)) as server:
        with pytest.raises(ModelUnavailable, match="status 503"):
            async with embedding_endpoint(server.url, retries=0):
                raise AssertionError("unreachable")


async def test_a_runtime_works_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with serving(vectors) as server:
        bank = tmp_path / "bank"
        async with open_runtime(
            model="scripted", bank=bank, embedder="openai:e", base_url=server.url
        ) as runtime:
            await runtime.session(user="u1").send("My cat is called Miso.")
            reply = await runtime.session(user="u1").send("What is my cat called?")

        assert "Miso" in reply.text
        with pytest.raises(EmbedderMismatch, match="openai:e@"):
            async with open_runtime(model="scripted", bank=bank, embedder="hashing"):
                raise AssertionError("unreachable")


async def test_a_name_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="openai:NAME"):
        async with open_runtime(model="scripted", embedder="openai:"):
            raise AssertionError("unreachable")
