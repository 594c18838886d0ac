"""Takes a conversation out of a bank, writes it as a scenario, and tries it at once."""

from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from assay.runtime.limits import checked_user
from assay.runtime.settings import Settings
from assay.runtime.wiring import open_runtime
from assay.scenarios.cases.checking import findings
from assay.scenarios.cases.files import read
from assay.scenarios.cases.journal import Wanted, transcript
from assay.scenarios.cases.playing import play
from assay.scenarios.cases.recording import RecordingModel
from assay.scenarios.cases.telling import told
from assay.scenarios.cases.writing import checked_target, write_case


class Taking(NamedTuple):
    """What the command line asked for."""

    bank: Path | str
    user: str
    out: Path
    session: str | None
    turn: str | None
    model: str | None
    embedder: str


async def take(taking: Taking) -> tuple[str, bool]:
    """Write the scenario and its cassette; gives what to tell, and whether it replays the same.

    Raises:
        ScenarioError: If there is no such conversation, or the file is there already.
    """
    checked_target(taking.out)
    wanted = Wanted(
        user=checked_user(taking.user),
        session=taking.session,
        turn=taking.turn,
        model=taking.model,
        embedder=taking.embedder,
        settings=Settings.load(),
    )
    async with open_runtime(
        model="scripted", guard="no_memory", bank=taking.bank, embedder=taking.embedder
    ) as runtime:
        found = await transcript(runtime.bank, wanted)
    note = "Taken from a conversation; change what is expected to what should have come."
    await anyio.to_thread.run_sync(lambda: write_case(taking.out, found.case, note=note))
    [file] = await anyio.to_thread.run_sync(read, taking.out)
    answers = RecordingModel(found.answers) if found.answers else None
    played = await play(file, model=answers)
    if answers is not None:
        await answers.write(file.cassette)
    unmet = findings(played)
    where = f"wrote {taking.out}" + (f" and {file.cassette}" if answers else "")
    if not unmet:
        return f"{where}; it passes as it stands: pytest --assay {taking.out}", True
    again = "what differs is below; change the file, or record afresh with --assay-record"
    return f"{where}; it does not replay as it was: {again}\n\n{told(played, unmet)}", False
