"""llama.cpp through xllamacpp, blocking: everything here runs in a worker thread.

Measured here with xllamacpp 2026.10: generation releases the GIL; an exception in a streaming
callback is swallowed; a callback that returns true ends the generation; the reported
log-probability of a token does not depend on ``logit_bias``, so forcing a token tells its own.
"""

import json
import secrets
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import xllamacpp  # type: ignore[import-untyped]  # as below

from assay.errors import ConfigError, ContextOverflow, MalformedAnswer, ModelRefused

T = TypeVar("T")

_FORCED = 1000.0
"""Added to a logit so that its token is taken; logits of a language model stay far below."""

_SILENT = -1
_HTTP_SECONDS = 60
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


class _Server(Protocol):
    """What is used of ``xllamacpp.Server``."""

    listening_address: str

    def handle_chat_completions(
        self, body: Mapping[str, object], on_chunk: Callable[[object], bool]
    ) -> object: ...

    def handle_completions(self, body: Mapping[str, object]) -> object: ...


class Llama:
    """One loaded model with one slot, so that calls one after another share their prompt's prefix.

    The library also listens on a free port of this machine; a random key keeps everyone else out.

    Args:
        path: A GGUF file.
        context_tokens: Longest prompt and answer together.
        threads: CPU threads.

    Raises:
        ConfigError: If the file cannot be loaded.
    """

    def __init__(self, path: Path, *, context_tokens: int, threads: int) -> None:
        self._key = secrets.token_urlsafe(24)
        library: Any = xllamacpp  # it ships no type information
        parameters = library.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = context_tokens
        parameters.n_parallel = 1
        for cpu in (parameters.cpuparams, parameters.cpuparams_batch):
            cpu.n_threads = threads
            # Threads that poll between steps starve one another on a busy machine.
            cpu.poll = 0
        parameters.verbosity = _SILENT
        parameters.api_keys = [self._key]
        # A second cache of whole prompts in memory, 8 GiB by default; the slot's own prefix stays.
        parameters.cache_ram_mib = 0
        parameters.endpoint_slots = False
        parameters.warmup = False
        try:
            self._server: _Server = library.Server(parameters)
        except RuntimeError as error:
            raise ConfigError(f"cannot load the model file {path}: {error}") from error

    def chat(self, body: Mapping[str, object], on_chunk: Callable[[object], bool]) -> None:
        """Answer a chat, chunk by chunk.

        Args:
            body: A chat-completions request.
            on_chunk: Gets each chunk, decoded; true ends the generation.

        Raises:
            ContextOverflow: If the prompt does not fit; nothing was generated.
            ModelError: If the request is refused, or ``on_chunk`` raised it.
        """
        failed: list[BaseException] = []

        def take(chunk: object) -> bool:
            try:
                _raise_error(chunk)
                return on_chunk(chunk)
            except BaseException as error:  # noqa: BLE001 - carried out of the C++ frame, raised below
                failed.append(error)
                return True

        try:
            self._server.handle_chat_completions({**body, **_STREAMED}, take)
        except RuntimeError as error:
            raise ModelRefused(f"llama.cpp refused the request: {_short(error)}") from error
        if failed:
            raise failed[0]

    def prompt_ids(self, body: Mapping[str, object]) -> list[int]:
        """The tokens of a chat request's prompt as the model's chat template lays it out."""
        prompt = _shaped(self._post("/apply-template", body), _Prompt).prompt
        return self._ids({"content": prompt, "parse_special": True, "add_special": True})

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a plain text."""
        return self._ids({"content": text})

    def forced_logprob(self, prompt: Sequence[int], token: int) -> float:
        """The log-probability of ``token`` right after ``prompt``, over the whole vocabulary."""
        answer = self._server.handle_completions(
            {
                "prompt": list(prompt),
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": 1,
                "logit_bias": [[token, _FORCED]],
            }
        )
        _raise_error(answer)
        measured = _shaped(answer, _Measured).choices[0].logprobs.content[0]
        if measured.id != token:
            raise MalformedAnswer(f"expected token {token} to be forced, got {measured.id}")
        return measured.logprob

    def _ids(self, body: Mapping[str, object]) -> list[int]:
        return _shaped(self._post("/tokenize", body), _Tokens).tokens

    def _post(self, path: str, body: Mapping[str, object]) -> object:
        request = urllib.request.Request(  # noqa: S310 - the address is the library's own
            self._server.listening_address + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_HTTP_SECONDS) as response:
                return msgspec.json.decode(response.read())
        except (OSError, msgspec.DecodeError) as error:
            raise MalformedAnswer(f"llama.cpp did not answer {path}: {error}") from error


class _Prompt(msgspec.Struct):
    prompt: str


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Token(msgspec.Struct):
    id: int
    logprob: float


class _Logprobs(msgspec.Struct):
    content: Annotated[list[_Token], msgspec.Meta(min_length=1)]


class _Choice(msgspec.Struct):
    logprobs: _Logprobs


class _Measured(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]


class _Error(msgspec.Struct):
    type: str = ""
    message: str = ""


class _MaybeError(msgspec.Struct):
    error: _Error | None = None


def _shaped(answer: object, shape: type[T]) -> T:
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as error:
        raise MalformedAnswer(f"unexpected answer of llama.cpp: {error}") from error


def _raise_error(answer: object) -> None:
    error = _shaped(answer, _MaybeError).error
    if error is None:
        return
    if error.type == "exceed_context_size_error":
        raise ContextOverflow(f"{error.message}; nothing was generated")
    raise ModelRefused(f"llama.cpp refused the request: {_short(error.message)}")


def _short(value: object) -> str:
    return " ".join(str(value).split())[:200]
