"""A run of the model stage on disk; the same command again goes on where it ended."""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread
import msgspec

from assay.errors import ScenarioError
from assay.scenarios.folder import append_lines, read_lines, write_whole
from assay.scenarios.jointcorebench.model_rows import FORMAT, StageRecord, TaskRow

STAGE_FILE = "model_stage.json"
ROWS_FILE = "tasks.jsonl"


class StageFolder:
    """The files of one run; without a path nothing is kept.

    ``model_stage.json`` is written once. ``tasks.jsonl`` only grows, one whole line at a time; a
    line that a crash cut short is dropped when the run goes on.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    async def begin(self, record: StageRecord) -> None:
        """Take the folder for a run, or go on with the same one.

        Raises:
            ScenarioError: If it holds another run, or is not writable.
        """
        if self._path is not None:
            await anyio.to_thread.run_sync(_begin, self._path, record)

    async def rows(self) -> Sequence[TaskRow]:
        """Tasks measured so far."""
        if self._path is None:
            return []
        return await anyio.to_thread.run_sync(read_lines, self._path / ROWS_FILE, TaskRow)

    async def append(self, row: TaskRow) -> None:
        """Keep one task; it survives the end of the process."""
        if self._path is not None:
            await anyio.to_thread.run_sync(append_lines, self._path / ROWS_FILE, [row])


def _begin(path: Path, record: StageRecord) -> None:
    file = path / STAGE_FILE
    if not file.exists():
        write_whole(file, msgspec.json.format(msgspec.json.encode(record)))
        return
    try:
        earlier = msgspec.json.decode(file.read_bytes(), type=StageRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: expected the configuration of a run ({error})") from error
    if earlier.format != FORMAT or earlier.config != record.config:
        raise ScenarioError(
            f"{str(path)!r} holds a run of another configuration ({earlier.command}); "
            "choose another folder with --out"
        )
