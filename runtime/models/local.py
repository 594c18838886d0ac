"""A model file on this machine: off the event loop, one call at a time, cancellable between tokens."""

import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from assay.errors import ConfigError, ContextOverflow, MalformedAnswer, ModelUnavailable
from assay.guards.protocols import Completion, DeltaSink, Message, Request, Usage
from assay.runtime.models.assembling import Assembler
from assay.runtime.models.cores import idle_cores
from assay.runtime.models.counting import require_room
from assay.runtime.models.gguf import read_metadata
from assay.runtime.models.llama import Llama
from assay.runtime.models.model_files import find_file, identity_of, sha256_of
from assay.runtime.models.requests import body_of
from assay.runtime.models.vocabulary import KEYS, Vocabulary, prompt_tokens
from assay.runtime.settings import ModelSettings

T = TypeVar("T")

CONTEXT_TOKENS = 4096
"""Context unless set otherwise; its memory is taken at the start."""

MOST_THREADS = 4
_CLOSING_SECONDS = 30.0
_LENGTH = ".context_length"


class ModelFile(NamedTuple):
    """What is known about a file before it is loaded.

    Attributes:
        path: The file.
        identity: File name and hash.
        trained_tokens: Context it was trained for; 0 if the file does not say.
        vocabulary: For counting; ``None`` for tokenizers of another kind.
    """

    path: Path
    identity: str
    trained_tokens: int
    vocabulary: Vocabulary | None


class LocalModel:
    """A GGUF model in this process; open it with :func:`open_local`.

    Calls wait for one another in order of arrival. A cancelled call returns at once; its thread
    ends at the next token, its result is dropped, and the next call waits for it.

    Args:
        file: What is known about the file.
        llama: The loaded model.
        context_tokens: Longest prompt and answer together.
        timeout: Seconds one call may take, waiting in the queue not counted.
    """

    def __init__(
        self, file: ModelFile, llama: Llama, *, context_tokens: int, timeout: float
    ) -> None:
        self._file = file
        self._llama: Llama | None = llama
        self._context_tokens = context_tokens
        self._timeout = timeout
        self._queue = anyio.CapacityLimiter(1)
        self._threads = anyio.CapacityLimiter(float("inf"))
        self._in_use = threading.Lock()
        self._closing = threading.Event()

    @property
    def identity(self) -> str:
        """``local:NAME@sha256:...``, the first 16 digits of the hash."""
        return self._file.identity

    @property
    def context_tokens(self) -> int:
        """As set, else the smaller of :data:`CONTEXT_TOKENS` and what it was trained for."""
        return self._context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """With the model's own vocabulary, from above by a few percent; by bytes without one."""
        return prompt_tokens(self._file.vocabulary, messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        require_room(self, request)
        body = body_of(request, model=self._file.path.name)

        def answer(llama: Llama, dropped: Callable[[], bool]) -> Completion:
            assembler = Assembler(
                sink=None if sink is None else _from_thread(sink),
                with_logprobs=request.parameters.top_logprobs > 0,
            )

            def take(chunk: object) -> bool:
                if not dropped():
                    assembler.add(chunk, streamed=True)
                return dropped()

            llama.chat(body, take)
            return assembler.finish(lambda text: self._counted(request, text))

        return await self._in_turn(answer)

    async def log_likelihood(self, request: Request, answer: str) -> float:
        """Mean log-probability per token of ``answer``, each token given the exact ones before it.

        Raises:
            MalformedAnswer: If ``answer`` has no tokens, or the call was cut short.
            ContextOverflow: If prompt and answer do not fit; nothing was evaluated.
        """
        require_room(self, request)
        body = body_of(request, model=self._file.path.name)

        def measure(llama: Llama, dropped: Callable[[], bool]) -> float:
            prompt, wanted = llama.prompt_ids(body), llama.text_ids(answer)
            self._require_likelihood_room(len(prompt), len(wanted))
            logprobs: list[float] = []
            for place, token in enumerate(wanted):
                if dropped():
                    raise MalformedAnswer("the measurement was cut short")
                logprobs.append(llama.forced_logprob(prompt + wanted[:place], token))
            return min(sum(logprobs) / len(logprobs), 0.0)

        return await self._in_turn(measure)

    async def aclose(self) -> None:
        """End what is running and unload the model; returns when its threads are done."""
        self._closing.set()
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await anyio.to_thread.run_sync(self._unload, limiter=self._threads)

    def _unload(self) -> None:
        with self._in_use:
            self._llama = None

    async def _in_turn(self, work: Callable[[Llama, Callable[[], bool]], T]) -> T:
        left = threading.Event()

        def dropped() -> bool:
            return left.is_set() or self._closing.is_set()

        def run() -> T:
            # A call that was cancelled may still be finishing its token: the lock is its own.
            with self._in_use:
                if self._llama is None or dropped():
                    raise ModelUnavailable(f"{self.identity} is closed")
                return work(self._llama, dropped)

        async with self._queue:
            try:
                with anyio.fail_after(self._timeout):
                    return await anyio.to_thread.run_sync(
                        run, abandon_on_cancel=True, limiter=self._threads
                    )
            except TimeoutError as error:
                raise ModelUnavailable(
                    f"{self.identity} gave no answer within {self._timeout:g} s; raise "
                    "model.retry_seconds, or show the model less"
                ) from error
            finally:
                left.set()

    def _require_likelihood_room(self, prompt: int, answer: int) -> None:
        if not answer:
            raise MalformedAnswer("expected an answer with at least one token, got none")
        if prompt + answer > self._context_tokens:
            raise ContextOverflow(
                f"the prompt takes {prompt} tokens and the given answer {answer}, "
                f"the context of {self.identity} is {self._context_tokens}"
            )

    def _counted(self, request: Request, text: str) -> Usage:
        vocabulary = self._file.vocabulary
        answer = vocabulary.text_tokens(text) if vocabulary else len(text.encode())
        return Usage(prompt_tokens=self.count_tokens(request.messages), completion_tokens=answer)


@asynccontextmanager
async def open_local(rest: str, *, settings: ModelSettings) -> AsyncGenerator[LocalModel]:
    """Load a model file; it is unloaded when the block ends.

    Args:
        rest: A path to a GGUF file, the name of a pulled model, or nothing for the default one.
        settings: Threads, context and timeout.

    Raises:
        ConfigError: If there is no such file, it cannot be loaded, or the context is too long.
    """
    file = await anyio.to_thread.run_sync(inspect_file, rest)
    context = _context(file, settings.context_tokens)
    llama = await anyio.to_thread.run_sync(_load, file.path, context, settings.threads)
    # There is one attempt, so it may take what all attempts of a call may take together.
    model = LocalModel(file, llama, context_tokens=context, timeout=settings.retry_seconds)
    try:
        del llama
        yield model
    finally:
        await model.aclose()


def _load(path: Path, context_tokens: int, threads: int) -> Llama:
    chosen = threads or min(idle_cores(), MOST_THREADS)
    return Llama(path, context_tokens=context_tokens, threads=chosen)


def inspect_file(rest: str) -> ModelFile:
    """What is known about a file before it is loaded; blocking.

    Raises:
        ConfigError: If there is no such file, or it is no GGUF file.
    """
    path = find_file(rest)
    metadata = read_metadata(path, lambda key: key in KEYS or key.endswith(_LENGTH))
    trained = next((value for key, value in metadata.items() if key.endswith(_LENGTH)), 0)
    return ModelFile(
        path=path,
        identity=identity_of(path, sha256_of(path)),
        trained_tokens=trained if isinstance(trained, int) else 0,
        vocabulary=Vocabulary.of(metadata),
    )


def _context(file: ModelFile, wanted: int) -> int:
    trained = file.trained_tokens or CONTEXT_TOKENS
    if wanted > trained:
        raise ConfigError(
            f"model.context_tokens must be at most {trained}, which {file.path.name} was trained "
            f"for, got {wanted}"
        )
    return wanted or min(CONTEXT_TOKENS, trained)


def _from_thread(sink: DeltaSink) -> DeltaSink:
    def take(piece: str) -> None:
        anyio.from_thread.run_sync(sink, piece)

    return take
