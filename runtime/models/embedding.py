"""An embedder behind an OpenAI-compatible endpoint: ``POST /embeddings``, decoded strictly."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import anyio.lowlevel
import httpx2
import msgspec
import numpy as np
import openai

from assay.errors import MalformedAnswer
from assay.runtime.clock import SystemClock
from assay.runtime.models.calling import WAITS, Calls, Waits, open_client
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.settings import ModelSettings
from assay.stores.checks import checked_characters
from assay.stores.protocols import Clock, FloatMatrix

BATCH = 64
"""Texts of one call: some endpoints take no more, and its answer stays far below the largest body."""

_PATH = "/embeddings"
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)


class _Row(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


class _Body(msgspec.Struct, frozen=True):
    data: list[_Row]


class EndpointEmbedder:
    """Texts to unit vectors, at an endpoint; open it with :func:`open_embedding_endpoint`.

    A number that is no number, a vector without a direction or of another length is no vector:
    the call fails, and nothing of it is kept. Queries and passages are sent alike.

    Args:
        endpoint: Model name, URL and key.
        client: An SDK client with its retries off.
        calls: Makes the calls.
    """

    def __init__(self, endpoint: Endpoint, *, client: openai.AsyncOpenAI, calls: Calls) -> None:
        self._endpoint = endpoint
        self._client = client
        self._calls = calls
        self._dimension = 0

    @property
    def name(self) -> str:
        """``openai:NAME@URL``."""
        return self._endpoint.identity

    @property
    def dimension(self) -> int:
        """As the first answer had it."""
        return self._dimension

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        """One unit row a text.

        Raises:
            ValueError: If a text cannot be encoded.
            ModelError: As a chat model's call would.
        """
        checked = [checked_characters("text", text) for text in texts]
        await anyio.lowlevel.checkpoint()
        parts = [await self._part(checked[i : i + BATCH]) for i in range(0, len(checked), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self._dimension), np.float32)

    async def _part(self, texts: Sequence[str]) -> FloatMatrix:
        # An empty text is refused by most endpoints; a blank one stands for it.
        asked = [text or " " for text in texts]
        body = {"model": self._endpoint.name, "input": asked, "encoding_format": "float"}

        async def once() -> FloatMatrix:
            response = await self._client.post(_PATH, cast_to=httpx2.Response, body=body)
            return self._vectors(response.content, len(texts))

        vectors = await self._calls.make(once)
        self._dimension = vectors.shape[1]
        return vectors

    def _vectors(self, content: bytes, count: int) -> FloatMatrix:
        try:
            rows = msgspec.convert(json.loads(content), _Body).data
        except (*_NO_JSON, msgspec.ValidationError) as error:
            raise MalformedAnswer(
                f"expected embeddings from {self.name}, got "
                f"{self._endpoint.start_of(content)}: {error}"
            ) from error
        if sorted(row.index for row in rows) != list(range(count)):
            raise MalformedAnswer(f"expected {count} embeddings from {self.name}, got {len(rows)}")
        lengths = {len(row.embedding) for row in rows}
        if (
            len(lengths) != 1
            or lengths == {0}
            or (self._dimension and {self._dimension} != lengths)
        ):
            expected = f"{self._dimension} numbers" if self._dimension else "the same length"
            raise MalformedAnswer(
                f"expected vectors of {expected} from {self.name}, got {sorted(lengths)}"
            )
        return self._unit([row.embedding for row in sorted(rows, key=lambda row: row.index)])

    def _unit(self, rows: list[list[float]]) -> FloatMatrix:
        with np.errstate(over="ignore"):
            vectors = np.asarray(rows, dtype=np.float32)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and norms.all()):
            raise MalformedAnswer(
                f"expected finite vectors with a direction from {self.name}, got NaN, an infinity "
                "or zeros"
            )
        return np.asarray(vectors / norms, dtype=np.float32)


@asynccontextmanager
async def open_embedding_endpoint(  # noqa: PLR0913 - what a test or a user may set, each by name
    name: str,
    *,
    settings: ModelSettings,
    base_url: str | None,
    env: Mapping[str, str],
    waits: Waits = WAITS,
    clock: Clock | None = None,
) -> AsyncGenerator[EndpointEmbedder]:
    """Open an embedder at an endpoint; asks it once, to learn how long its vectors are.

    Args:
        name: The model's name there.
        settings: Timeout, retries, rate, concurrency.
        base_url: The API's root; ``None`` takes ``OPENAI_BASE_URL``, else OpenAI's.
        env: Where ``OPENAI_API_KEY`` is looked up.
        waits: Back-off between attempts.
        clock: For a ``Retry-After`` given as a date; ``None`` is the machine's.

    Raises:
        ConfigError: If the URL is unusable or the key is missing.
        ModelError: If it does not answer with a vector.
    """
    endpoint = Endpoint.of(name, base_url=base_url, env=env)
    async with open_client(endpoint, settings) as client:
        calls = Calls(endpoint, settings=settings, waits=waits, clock=clock or SystemClock())
        embedder = EndpointEmbedder(endpoint, client=client, calls=calls)
        await embedder.embed(["How long is a vector?"], kind="query")
        yield embedder
