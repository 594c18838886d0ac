"""The embedded model itself: SmolLM2 through llama.cpp."""

import math
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest

from assay.errors import ConfigError, ContextOverflow, MalformedAnswer
from assay.runtime.models.gguf import read_metadata
from assay.runtime.models.llama import Llama
from assay.runtime.models.local import open_local
from assay.runtime.models.model_files import find_file, sha256_of
from assay.runtime.models.vocabulary import KEYS, Vocabulary
from assay.runtime.settings import ModelSettings

from .support import asking

SMALL = ModelSettings(context_tokens=512, threads=1)
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "On 2026-03-01 she paid 1,234.56 euros -- twice!",
    "    indented\n\tcode = {'a': [1, 2]}\n\n\nend",
    "Überraschung: naïve café, Zürich, Привет мир, 你好世界, مرحبا",
    "emoji 😀😀 and joined 👨‍👩‍👧 ones",
    "it's we've I'd they'll __init__ snake_case CamelCase don't",
    "a" * 300,
    "... !!! ??? --- === /// http://example.org/a?b=c&d=%20",
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    found = Vocabulary.of(read_metadata(find_file(""), KEYS.__contains__))
    assert found is not None
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_the_count_bounds_the_model_s_own(llama: Llama, vocabulary: Vocabulary, text: str) -> None:
    exact = len(llama.text_ids(text))

    assert exact <= vocabulary.text_tokens(text) <= max(1.5 * exact, exact + 2, len(text))


def test_a_forced_token_tells_its_own_log_probability(llama: Llama) -> None:
    prompt = llama.prompt_ids({"messages": [{"role": "user", "content": "Say yes."}]})
    likely, unlikely = llama.text_ids("Yes")[0], llama.text_ids(" banana")[0]

    first, second = llama.forced_logprob(prompt, likely), llama.forced_logprob(prompt, unlikely)

    assert second < first <= 0
    assert math.exp(first) + math.exp(second) <= 1


def test_log_probabilities_of_all_tokens_sum_to_one_where_they_are_reported(llama: Llama) -> None:
    chunks: list[object] = []
    body = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}

    llama.chat({**body, "logprobs": True, "top_logprobs": 49_152, "temperature": 0}, _keep(chunks))

    reported = [token.logprob for token in _first_top(chunks)]
    assert sum(map(math.exp, reported)) == pytest.approx(1, abs=1e-3)


def test_forcing_agrees_with_the_list_of_all_tokens(llama: Llama) -> None:
    body = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}
    chunks: list[object] = []
    llama.chat({**body, "logprobs": True, "top_logprobs": 49_152, "temperature": 0}, _keep(chunks))
    listed = {token.id: token.logprob for token in _first_top(chunks)}
    token = llama.text_ids(" banana")[0]

    forced = llama.forced_logprob(llama.prompt_ids(body), token)

    assert forced == pytest.approx(listed[token], abs=1e-3)


def test_a_prompt_too_long_is_not_evaluated(llama: Llama) -> None:
    body = {"messages": [{"role": "user", "content": "fox " * 2000}], "max_tokens": 1}

    with pytest.raises(ContextOverflow, match="512"):
        llama.chat(body, lambda _: False)


def test_an_error_in_a_callback_comes_out(llama: Llama) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}

    def fail(_: object) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        llama.chat(body, fail)


async def test_a_likely_answer_is_more_likely_than_nonsense() -> None:
    question = asking("What is the capital of France?")

    async with open_local("", settings=SMALL) as model:
        right = await model.log_likelihood(question, "The capital of France is Paris.")
        wrong = await model.log_likelihood(question, "Bananas green seven the of.")
        with pytest.raises(MalformedAnswer, match="no"):
            await model.log_likelihood(question, "")
        with pytest.raises(ContextOverflow):
            await model.log_likelihood(question, "word " * 600)

    assert wrong < right <= 0


async def test_a_cancelled_call_leaves_the_queue_sane() -> None:
    async with open_local("", settings=SMALL) as model:
        expected = await model.complete(asking("Say yes.", max_tokens=3))
        pieces: list[str] = []
        with anyio.CancelScope() as scope:

            def stop_after_the_first(piece: str) -> None:
                pieces.append(piece)
                scope.cancel()

            await model.complete(
                asking("Tell a long story.", max_tokens=300),
                sink=stop_after_the_first,
            )
        again = await model.complete(asking("Say yes.", max_tokens=3))

    assert scope.cancelled_caught
    assert len(pieces) < 20
    assert again.text == expected.text


async def test_the_loop_runs_on_while_the_model_works() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with open_local("", settings=SMALL) as model, anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await model.complete(asking("Say yes.", max_tokens=4))
        tasks.cancel_scope.cancel()

    assert turns > 100


async def test_calls_wait_for_one_another_in_order() -> None:
    finished: list[int] = []

    async with open_local("", settings=SMALL) as model:

        async def ask(number: int) -> None:
            await model.complete(asking(f"Say {number}.", max_tokens=2))
            finished.append(number)

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(ask, number)

    assert finished == [0, 1, 2]


async def test_a_context_longer_than_trained_is_refused() -> None:
    with pytest.raises(ConfigError, match="8192"):
        async with open_local("", settings=ModelSettings(context_tokens=9000)):
            pass


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"GGUF\x03\0\0\0", b"hello world", b"GGUF\x09\0\0\0"]
)
async def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match="GGUF"):
        async with open_local(str(file), settings=SMALL):
            pass


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"one")
    first = sha256_of(file)

    file.write_bytes(b"three")

    assert first == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert sha256_of(file) != first
    assert sha256_of(file) == sha256_of(file)


def _keep(chunks: list[object]) -> Callable[[object], bool]:
    def keep(chunk: object) -> bool:
        chunks.append(chunk)
        return False

    return keep


class _Token(msgspec.Struct):
    id: int
    logprob: float
    top_logprobs: list["_Token"] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token]


class _Choice(msgspec.Struct):
    logprobs: _Logprobs | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice]


def _first_top(chunks: list[object]) -> list[_Token]:
    choices = [c for chunk in msgspec.convert(chunks, list[_Chunk]) for c in chunk.choices]
    return next(c.logprobs.content[0].top_logprobs for c in choices if c.logprobs)
