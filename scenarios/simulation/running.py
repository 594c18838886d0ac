"""Runs a simulation: users on several cores, each result kept as it comes, nothing done twice."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from assay.errors import ScenarioError
from assay.scenarios.folder import append_lines, read_lines, write_whole
from assay.scenarios.simulation.living import SCRIPT, Order, Usage, give_voice, live, peak_memory
from assay.scenarios.simulation.records import FORMAT, Lived, SimulationRecord, Voice
from assay.scenarios.simulation.workers import as_they_come

RECORD_FILE = "simulation.json"
LIVED_FILE = "lived.jsonl"
VOICES_FILE = "voices.jsonl"
RESULTS_FILE = "results.json"


class Progress(NamedTuple):
    """What is under way, and how much of how much of it is done.

    Attributes:
        what: ``users' words`` counts users, ``sessions`` those of all agents together.
        done: How many.
        total: Of how many.
    """

    what: str
    done: int
    total: int


class _Version(msgspec.Struct):
    format: int


class SimulationFolder:
    """The files of one simulation; blocking."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, record: SimulationRecord) -> None:
        """Take a folder for a simulation, or go on with the same one.

        Raises:
            ScenarioError: If the folder holds another simulation or another run, or is not writable.
        """
        if (self.path / RECORD_FILE).exists():
            if self.record() != record:
                raise ScenarioError(
                    f"{str(self.path)!r} holds another simulation (another file, seed, size, model "
                    "or settings); choose another folder with --out"
                )
            return
        if (self.path / "run.json").exists():
            raise ScenarioError(
                f"{str(self.path)!r} holds the run of a benchmark; choose another folder with --out"
            )
        write_whole(self.path / RECORD_FILE, msgspec.json.format(msgspec.json.encode(record)))

    def record(self) -> SimulationRecord:
        """What was simulated.

        Raises:
            ScenarioError: If there is none, or not one of this version.
        """
        path = self.path / RECORD_FILE
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ScenarioError(
                f"no simulation in {str(self.path)!r}: expected the file {RECORD_FILE}, which "
                "assay simulate --out DIR makes"
            ) from error
        try:
            found = msgspec.json.decode(data, type=_Version).format
            if found != FORMAT:
                raise ScenarioError(
                    f"{path}: expected a simulation of format {FORMAT}, got {found}"
                )
            return msgspec.json.decode(data, type=SimulationRecord)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: expected a simulation ({error})") from error

    def lived(self) -> list[Lived]:
        """What was lived through so far, by user and agent."""
        read = read_lines(self.path / LIVED_FILE, Lived)
        return sorted({(one.user, one.agent): one for one in read}.values(), key=_place)

    def voices(self) -> dict[int, Voice]:
        """How users say things, by user."""
        return {voice.user: voice for voice in read_lines(self.path / VOICES_FILE, Voice)}


def simulate(
    folder: SimulationFolder,
    record: SimulationRecord,
    *,
    workers: int,
    watch: Callable[[Progress], None] = lambda _: None,
) -> tuple[list[Lived], int]:
    """Live through what is missing.

    Args:
        folder: Begun with this record.
        record: What is simulated.
        workers: Processes; with one nothing is started.
        watch: Called after each user and agent, and after each user whose words a model finds.

    Returns:
        Everything lived through, by user and agent, and the most memory all processes together
        have held, in bytes; each at its own worst moment, so it is a bound from above.

    Raises:
        ScenarioError: If a turn fails or a file cannot be written; what is done is kept.
    """
    config = record.config
    peaks: dict[int, int] = {}
    voices = _voices(folder, record, workers, peaks, watch)
    done = {_place(one) for one in folder.lived()}
    every = [(user, a) for user in range(config.users) for a in range(len(config.simulation.agent))]
    total = sum(config.sessions_of(user) for user, _ in every)
    sessions = sum(config.sessions_of(user) for user, _ in done)
    watch(Progress("sessions", sessions, total))
    orders = [
        Order(config, user, agent, voices.get(user, {}))
        for user, agent in every
        if (user, agent) not in done
    ]
    for lived, usage in as_they_come(live, orders, processes=workers):
        append_lines(folder.path / LIVED_FILE, [lived])
        peaks[usage.process] = usage.peak
        sessions += config.sessions_of(lived.user)
        watch(Progress("sessions", sessions, total))
    return _settled(folder), _peak(peaks, peak_memory())


def _voices(
    folder: SimulationFolder,
    record: SimulationRecord,
    workers: int,
    peaks: dict[int, int],
    watch: Callable[[Progress], None],
) -> dict[int, dict[str, str]]:
    config = record.config
    if config.simulation.user_model == SCRIPT:
        return {}
    known = folder.voices()
    orders = [Order(config, user, 0, {}) for user in range(config.users) if user not in known]
    for voice, usage in as_they_come(give_voice, orders, processes=workers):
        append_lines(folder.path / VOICES_FILE, [voice])
        peaks[usage.process] = usage.peak
        known[voice.user] = voice
        watch(Progress("users' words", len(known), config.users))
    return {user: voice.lines for user, voice in known.items()}


def _settled(folder: SimulationFolder) -> list[Lived]:
    """Everything, written in one order whatever the order in which it came."""
    lived = folder.lived()
    data: Sequence[bytes] = [msgspec.json.encode(one) + b"\n" for one in lived]
    write_whole(folder.path / LIVED_FILE, b"".join(data))
    return lived


def _place(one: Lived) -> tuple[int, int]:
    return (one.user, one.agent)


def _peak(peaks: dict[int, int], own: Usage) -> int:
    return sum((peaks | {own.process: own.peak}).values())
