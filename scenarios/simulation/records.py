"""What a simulation writes down: its configuration, and how each question of each agent went."""

import msgspec

from assay.runtime.settings import Settings
from assay.scenarios.simulation.schema import Channel, Simulation

FORMAT = 1


class SimulationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a simulation does; two equal ones do the same.

    Attributes:
        name: Name of the file, without its ending.
        sha256: Of the file's bytes, in hex.
        simulation: What the file holds, the choices of the command line put in.
        seed: Of days, prompts and generation.
        sessions: All users' together.
        base_url: Of the endpoint, for models behind one.
        settings: Prompt, budget and endpoint settings.
    """

    name: str
    sha256: str
    simulation: Simulation
    seed: int
    sessions: int
    base_url: str | None
    settings: Settings

    def sessions_of(self, user: int) -> int:
        """How many sessions a user has: all of them, but the last one may stop early."""
        each = self.simulation.sessions
        return min(each, self.sessions - user * each)

    @property
    def users(self) -> int:
        """How many users it takes."""
        return -(-self.sessions // self.simulation.sessions)


class SimulationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What ``simulation.json`` holds.

    Attributes:
        format: Version of this layout.
        config: What the simulation does.
        identity: Identity of the model that answers.
        embedder: Identity of the embedder.
        command: Does it again.
    """

    format: int
    config: SimulationConfig
    identity: str
    embedder: str
    command: str


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """How a model has a user say things: by the sentence of the script."""

    user: int
    lines: dict[str, str]


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """One question as it went, scored.

    Attributes:
        month: From 0.
        fact: What it asks about.
        goal: Attempt at a goal it belongs to; empty: none.
        right: Whether the answer is right.
        channels: Through which channels wrong values had been claimed about the fact.
        adopted: Through which channels a claimed record entered the prompt.
        misled: Whether the answer states a claimed value.
        changed: Whether the fact had changed, so that stale records are there.
        stale: Whether a stale record entered the prompt.
        useful: Whether the record that answers it entered the prompt.
        evaluations: Distinct questions put to the laboratory, the reply included.
        tokens: Of calls that reached the model.
    """

    month: int
    fact: str
    goal: str
    right: bool
    channels: tuple[Channel, ...]
    adopted: tuple[Channel, ...]
    misled: bool
    changed: bool
    stale: bool
    useful: bool
    evaluations: int
    tokens: int


class Judged(msgspec.Struct, frozen=True, array_like=True):
    """One record of a decision, to be read by people."""

    text: str
    role: str
    admitted: bool
    reason: str


class Told(msgspec.Struct, frozen=True, array_like=True):
    """One question to be read by people: day, question, answer, what was judged."""

    day: str
    question: str
    answer: str
    judged: tuple[Judged, ...]


class Lived(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The days of one user with one agent.

    Attributes:
        user: Number of the user, from 0.
        agent: Place of the agent in the simulation, from 0.
        asked: Every question, in order.
        told: The same to be read, for the first user only.
    """

    user: int
    agent: int
    asked: tuple[Asked, ...]
    told: tuple[Told, ...] = ()
