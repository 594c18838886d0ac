"""The model of a scenario: scripted, from the cassette beside it, or asked and recorded there."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec

from assay.errors import ConfigError, ScenarioError
from assay.guards.protocols import ChatModel, Completion, DeltaSink, Message, Request
from assay.runtime.models.cassette import FORMAT, CassetteModel, Entry, Header, request_key
from assay.runtime.models.opening import open_model, parse_spec
from assay.runtime.settings import Settings
from assay.scenarios.folder import write_whole


class RecordingModel:
    """A model whose answers are kept, to be written as a cassette (``ChatModel``).

    Args:
        model: Answers.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._entries: dict[str, Entry] = {}

    @property
    def identity(self) -> str:
        return self._model.identity

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._model.count_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        completion = await self._model.complete(request, sink=sink)
        self._entries[request_key(request, None)] = Entry(
            request=request,
            completion=completion,
            counted=self._model.count_tokens(request.messages),
        )
        return completion

    async def write(self, path: Path) -> int:
        """Write what was answered as a cassette, whole or not at all; gives how many answers."""
        header = Header(
            format=FORMAT, identity=self.identity, context_tokens=self._model.context_tokens
        )
        # In a fixed order: answers may have come in any, and a recording should not differ for it.
        entries = [entry for _, entry in sorted(self._entries.items())]
        lines = [msgspec.json.encode(each) for each in (header, *entries)]
        await anyio.to_thread.run_sync(write_whole, path, b"\n".join(lines) + b"\n")
        return len(entries)


class Asked(NamedTuple):
    """A model as somebody named it.

    Attributes:
        model: The name.
        settings: Timeouts, retries, limits.
        base_url: Of an OpenAI-compatible endpoint.
        folder: Where files in the name are looked for.
        cassette: Where its answers are, or are to be, recorded.
        how: The command that records them.
    """

    model: str
    settings: Settings
    base_url: str | None
    folder: Path
    cassette: Path
    how: str


@asynccontextmanager
async def recorded_model(asked: Asked, *, record: bool) -> AsyncGenerator[ChatModel]:
    """The model, or its cassette; what was recorded is written when the block ends well.

    Scripts and cassettes that were named are opened as they are: they cost nothing.

    Args:
        asked: Which one.
        record: Ask the real model and record, instead of replaying.

    Raises:
        ScenarioError: If there is no cassette, or it cannot be used.
        ConfigError: If the model cannot be opened.
    """
    spec = parse_spec(asked.model)
    free = spec.kind in {"scripted", "cassette"}
    if not (free or record):
        yield await _replayed(asked)
        return
    name = f"{spec.kind}:{_beside(asked.folder, spec.rest)}" if spec.rest else spec.kind
    async with open_model(name, settings=asked.settings, base_url=asked.base_url) as model:
        recording = RecordingModel(model)
        yield model if free else recording
        if not free:
            await recording.write(asked.cassette)


async def _replayed(asked: Asked) -> CassetteModel:
    path = asked.cassette
    if not await anyio.Path(path).exists():
        raise ScenarioError(
            f"no recorded answers of {asked.model!r} at {str(path)!r}; record them: {asked.how}"
        )
    try:
        return await CassetteModel.open(path)
    except ConfigError as error:
        raise ScenarioError(f"{error}: {asked.how}") from error


def _beside(folder: Path, name: str) -> str:
    """A file beside the scenario, where there is one of this name; else the name as it is."""
    return str(folder / name) if (folder / name).is_file() else name
