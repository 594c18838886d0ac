"""A model that takes its time, and an embedder without ties, for runs over two engines that must agree.

Texts made of one pattern are equally near to a question, to the last bit or nearly so. Which comes first
is then a matter of the order an engine adds up in, and no two engines have the same.
"""

import zlib
from collections.abc import Sequence

import anyio
import numpy as np

from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.embeddings import HashingEmbedder, Kind
from assay.stores.protocols import FloatMatrix

_SIZE = 0.1


class SlowReader(ScriptedModel):
    """The plain reader, which takes some seconds to answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        """As the plain reader does."""
        await anyio.sleep(self._seconds)
        self.asked.clear()  # it is asked for very long
        return await super().complete(request, sink=sink)


class TielessEmbedder:
    """As ``HashingEmbedder``; each text leans a little in a direction of its own."""

    def __init__(self) -> None:
        self._inner = HashingEmbedder()

    @property
    def name(self) -> str:
        """Another one than the one it is made of."""
        return f"tieless-{self._inner.name}"

    @property
    def dimension(self) -> int:
        """As the one it is made of."""
        return self._inner.dimension

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> FloatMatrix:
        """As ``Embedder``."""
        rows = await self._inner.embed(texts, kind=kind)
        return np.stack([self._leaning(*pair) for pair in zip(texts, rows, strict=True)])

    def _leaning(self, text: str, row: FloatMatrix) -> FloatMatrix:
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        own = rng.standard_normal(self.dimension, dtype=np.float32)
        leaning = row + np.float32(_SIZE) * own / np.linalg.norm(own)
        return leaning / np.linalg.norm(leaning)
