"""The numpy model: its tokenizer by hand, its arithmetic against a slow second way, its file."""

import json
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from assay.errors import ConfigError
from assay.stores import minilm
from assay.stores.minilm import MiniLM, Shape
from assay.stores.wordpiece import tokens

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "rex", "bark", "##s", "##ed", "!", "cafe", "\u5bff"]
VOCABULARY = {piece: number for number, piece in enumerate(PIECES)}
WIDTH, INNER, HEADS = 8, 16, 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rex barks!", [2, 4, 5, 6, 8, 3]),
        ("  REX\tbarked ", [2, 4, 5, 7, 3]),
        ("Caf\u00e9", [2, 9, 3]),
        ("rexbark", [2, 1, 3]),
        ("\u5bffrex", [2, 10, 4, 3]),
        ("", [2, 3]),
        ("x" * 101, [2, 1, 3]),
        ("rex " * 9, [2, 4, 4, 4, 4, 4, 4, 3]),
    ],
)
def test_words_fall_into_the_longest_known_pieces(text: str, expected: list[int]) -> None:
    assert tokens(text, VOCABULARY, limit=8) == expected


def shapes() -> dict[str, tuple[int, ...]]:
    layer = "encoder.layer.0."
    named: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(PIECES), WIDTH),
        "embeddings.position_embeddings.weight": (16, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
        f"{layer}intermediate.dense.weight": (INNER, WIDTH),
        f"{layer}intermediate.dense.bias": (INNER,),
        f"{layer}output.dense.weight": (WIDTH, INNER),
    }
    square = ["self.query", "self.key", "self.value", "output.dense"]
    named |= {f"{layer}attention.{name}.weight": (WIDTH, WIDTH) for name in square}
    named |= {f"{layer}attention.{name}.bias": (WIDTH,) for name in square}
    norms = ["attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias"]
    norms += ["output.LayerNorm.weight", "output.LayerNorm.bias", "output.dense.bias"]
    return named | {layer + name: (WIDTH,) for name in norms}


def random_weights() -> dict[str, npt.NDArray[np.float32]]:
    rng = np.random.default_rng(7)
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes().items()}


def write_model(folder: Path, weights: dict[str, npt.NDArray[np.float32]]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, values in weights.items():
        raw = values.tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": offsets}
        body += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    config = {"num_hidden_layers": 1, "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": WIDTH}))
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")


def slow_row(weights: dict[str, npt.NDArray[np.float32]], numbers: list[int]) -> list[float]:
    """The same model in scalar arithmetic, straight from the published formulas."""
    w = {name: values.tolist() for name, values in weights.items()}

    def norm(row: list[float], name: str) -> list[float]:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
        scales, shifts = w[f"{name}.weight"], w[f"{name}.bias"]
        return [(x - mean) / deviation * a + b for x, a, b in zip(row, scales, shifts, strict=True)]

    def linear(row: list[float], name: str) -> list[float]:
        return [
            sum(x * a for x, a in zip(row, line, strict=True)) + b
            for line, b in zip(w[f"{name}.weight"], w[f"{name}.bias"], strict=True)
        ]

    def added(a: list[float], b: list[float]) -> list[float]:
        return [x + y for x, y in zip(a, b, strict=True)]

    def attention(rows: list[list[float]], i: int, name: str) -> list[float]:
        q = linear(rows[i], f"{name}.query")
        keys = [linear(row, f"{name}.key") for row in rows]
        values = [linear(row, f"{name}.value") for row in rows]
        out: list[float] = []
        size = WIDTH // HEADS
        for head in range(HEADS):
            part = range(head * size, (head + 1) * size)
            powers = [math.exp(sum(q[d] * key[d] for d in part) / math.sqrt(size)) for key in keys]
            shares = [power / sum(powers) for power in powers]
            out += [sum(s * v[d] for s, v in zip(shares, values, strict=True)) for d in part]
        return out

    words, places = (
        w["embeddings.word_embeddings.weight"],
        w["embeddings.position_embeddings.weight"],
    )
    kind = w["embeddings.token_type_embeddings.weight"][0]
    rows = [
        norm(added(added(words[number], places[i]), kind), "embeddings.LayerNorm")
        for i, number in enumerate(numbers)
    ]
    layer = "encoder.layer.0"
    mixed = [
        linear(attention(rows, i, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
        for i in range(len(rows))
    ]
    rows = [
        norm(added(row, mix), f"{layer}.attention.output.LayerNorm")
        for row, mix in zip(rows, mixed, strict=True)
    ]
    final: list[list[float]] = []
    for row in rows:
        inner = linear(row, f"{layer}.intermediate.dense")
        gelu = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in inner]
        out = linear(gelu, f"{layer}.output.dense")
        final.append(norm(added(row, out), f"{layer}.output.LayerNorm"))
    mean = [sum(column) / len(final) for column in zip(*final, strict=True)]
    length = math.sqrt(sum(x * x for x in mean))
    return [x / length for x in mean]


def test_the_forward_pass_agrees_with_scalar_arithmetic(tmp_path: Path) -> None:
    weights = random_weights()
    write_model(tmp_path, weights)

    rows = minilm.open_folder(tmp_path).encode(["Rex barks!", "cafe"], "query")

    assert rows[0].tolist() == pytest.approx(slow_row(weights, [2, 4, 5, 6, 8, 3]), abs=1e-5)
    assert rows[1].tolist() == pytest.approx(slow_row(weights, [2, 9, 3]), abs=1e-5)


def test_a_vector_does_not_depend_on_its_batch() -> None:
    model = MiniLM(random_weights(), Shape(1, HEADS, 1e-12), VOCABULARY)

    together = model.encode(["rex", "rex barks rex barks"], "query")

    assert np.array_equal(together[0], model.encode(["rex"], "query")[0])


@pytest.mark.parametrize("damage", [b"", b"\xff" * 20, b"\x10" + bytes(7) + b"not json at all!"])
def test_a_damaged_model_is_refused(tmp_path: Path, damage: bytes) -> None:
    write_model(tmp_path, random_weights())
    (tmp_path / "model.safetensors").write_bytes(damage)

    with pytest.raises(ConfigError, match="cannot be read"):
        minilm.open_folder(tmp_path)


@pytest.mark.skipif(find_spec(minilm.PACKAGE) is None, reason="its weights are not installed")
def test_the_real_weights_give_the_published_similarities() -> None:
    encode = minilm.load()

    rows = encode(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ],
        "query",
    )

    # Shown on the model's page: 0.695, 0.943, 0.257.
    assert (rows[1:] @ rows[0]).tolist() == pytest.approx([0.695, 0.943, 0.257], abs=0.001)
