"""Long-horizon rollouts: what one user says and asks over simulated weeks.

A rollout is a readable TOML file; the ones that ship lie in ``scenarios/data``. What a question's
right answer is, and which steps' records are useful, stale or planted, is its key: it is joined
with the replies afterwards and never given to the runtime.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from itertools import pairwise
from typing import TypeAlias

import msgspec

from assay.errors import ScenarioError
from assay.stores.records import Writer

SHIPPED = "seven_weeks"


class Tell(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="tell",
    forbid_unknown_fields=True,
):
    """The user says something worth remembering, in one message.

    Attributes:
        says: Sentences by name; each becomes a record.
    """

    says: dict[str, str]

    @property
    def message(self) -> str:
        """The whole message."""
        return " ".join(self.says.values())


class Plant(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="plant",
    forbid_unknown_fields=True,
):
    """A record comes in without having been said, under its true origin."""

    id: str
    text: str
    writer: Writer
    channel: str


class Question(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="ask",
    forbid_unknown_fields=True,
):
    """The user asks; all but ``text`` is the key.

    Attributes:
        text: What is asked.
        accept: A right answer holds one of these; none: no answer is scored as right.
        reject: A wrong answer holds one of these.
        useful: Names of records that answer it.
        stale: Names of records that answered it once.
        planted: Names of records that were slipped in to answer it wrongly.
    """

    text: str
    accept: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    useful: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    planted: tuple[str, ...] = ()


Step: TypeAlias = Tell | Plant | Question


class SessionScript(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens in one sitting.

    Attributes:
        at: When it begins, with an offset.
        step: What happens, in order.
        asks_within: Whether questions are asked in this sitting, after the turns before them;
            otherwise each is asked in a fresh session.
    """

    at: datetime
    step: tuple[Step, ...]
    asks_within: bool = False


class Rollout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sessions of one user, in order of time."""

    title: str
    user: str
    session: tuple[SessionScript, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question, in order."""
        return tuple(step for step in self.steps() if isinstance(step, Question))

    def steps(self) -> Iterator[Step]:
        """Every step, in order."""
        for session in self.session:
            yield from session.step


def shipped(name: str = SHIPPED) -> Rollout:
    """A rollout that ships with Assay."""
    source = files("assay.scenarios").joinpath("data", f"{name}.toml")
    return parse(source.read_text(encoding="utf-8"), name=f"{name}.toml")


def parse(text: str, *, name: str) -> Rollout:
    """A rollout from the text of its file.

    Raises:
        ScenarioError: On invalid TOML, an unknown or missing field, sessions out of order, or a
            question that names a record that is not there before it.
    """
    try:
        rollout = msgspec.convert(tomllib.loads(text), Rollout)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ScenarioError(f"{name}: expected a rollout ({error})") from error
    problem = _problem(rollout)
    if problem:
        raise ScenarioError(f"{name}: {problem}")
    return rollout


def _problem(rollout: Rollout) -> str:
    times = [session.at for session in rollout.session]
    if not times:
        return "expected at least one session"
    if any(at.tzinfo is None for at in times):
        return "expected session times with an offset, like 2026-03-02T18:30:00Z"
    if any(later <= earlier for earlier, later in pairwise(times)):
        return "expected sessions in order of time"
    return _problem_of_names(rollout)


def _problem_of_names(rollout: Rollout) -> str:
    known: Counter[str] = Counter()
    for step in rollout.steps():
        match step:
            case Tell():
                known.update(step.says.keys())
            case Plant():
                known.update([step.id])
            case Question():
                named = (*step.useful, *step.stale, *step.planted)
                if missing := [name for name in named if name not in known]:
                    return (
                        f"question {step.text!r} names {missing[0]!r}, which nothing before it is"
                    )
    doubled = [name for name, count in known.items() if count > 1]
    return f"expected distinct names, got {doubled[0]!r} again" if doubled else ""
