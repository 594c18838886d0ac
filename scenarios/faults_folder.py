"""A fault replay on disk: its configuration, and one line per case; the same command goes on."""

from pathlib import Path
from typing import Generic, TypeVar

import anyio.to_thread
import msgspec

from assay.errors import ScenarioError
from assay.scenarios.folder import append_lines, read_lines, write_whole

RUN_FILE = "faults.json"
ROWS_FILE = "cases.jsonl"

Row = TypeVar("Row", bound=msgspec.Struct)


class FaultsFolder(Generic[Row]):
    """The files of one replay in ``path``; nothing is written before ``begin``.

    Args:
        path: The folder; ``None`` keeps nothing.
        kind: Type of the rows.
    """

    def __init__(self, path: Path | None, kind: type[Row]) -> None:
        self._path = path
        self._kind = kind

    async def begin(self, config: msgspec.Struct, identity: str) -> None:
        """Take the folder, or go on with the replay of the same configuration and model in it.

        Raises:
            ScenarioError: If it holds a replay of another configuration, or is not writable.
        """
        if self._path is not None:
            await anyio.to_thread.run_sync(_begin, self._path, config, identity)

    async def rows(self) -> list[Row]:
        """The cases done so far."""
        if self._path is None:
            return []
        return await anyio.to_thread.run_sync(read_lines, self._path / ROWS_FILE, self._kind)

    async def append(self, row: Row) -> None:
        """Keep one case; it survives the end of the process."""
        if self._path is not None:
            await anyio.to_thread.run_sync(append_lines, self._path / ROWS_FILE, [row])


def _begin(path: Path, config: msgspec.Struct, identity: str) -> None:
    record = {"config": msgspec.to_builtins(config), "identity": identity}
    data = msgspec.json.format(msgspec.json.encode(record)) + b"\n"
    file = path / RUN_FILE
    try:
        earlier = file.read_bytes() if file.exists() else None
    except OSError as error:
        raise ScenarioError(f"cannot read {str(file)!r}: {error.strerror}") from error
    if earlier is None:
        write_whole(file, data)
    elif earlier != data:
        raise ScenarioError(
            f"{str(path)!r} holds a replay of another configuration, model or data; "
            "choose another folder with --out"
        )
