"""From a benchmark's example and its key to a scenario: the same question through the real runtime."""

from collections import Counter

from assay.scenarios.cases.schema import Case, Expected, Memory, Past, Turn
from assay.scenarios.schema import Key, Scenario
from assay.stores.records import RecordId

SUFFICES = 1
"""Useful records that have to be admitted; a benchmark counts the others too, a test does not."""


def case_of(scenario: Scenario) -> Case:
    """An example as a scenario: none of its harmful records in the prompt, one useful one at least.

    What an answer holds is not expected: with the scripted model it tells nothing.
    """
    example, key = scenario.example, scenario.key
    names = _names(scenario)
    turns = [(turn, f"{turn.session}/{turn.position}") for turn in example.turns]
    said = {turn.id: name for turn, name in turns}
    useful = tuple(names[r] for r in names if r in key.useful)
    return Case(
        scenario=f"{key.family}: {example.question}"[:200],
        user=example.records[0].namespace if example.records else "user",
        now=example.now,
        memory=tuple(
            Memory(
                id=names[record.id],
                text=record.text,
                writer=record.origin.writer,
                channel=record.origin.channel,
                at=record.ingested_at,
                claimed_at=record.claimed_at,
                valid_from=record.valid_from,
                valid_to=record.valid_to,
                turn=said.get(record.origin.source_turn, "") if record.origin.source_turn else "",
            )
            for record in example.records
        ),
        archive=tuple(
            Past(id=name, text=turn.text, speaker=turn.speaker, session=turn.session, at=turn.at)
            for turn, name in turns
        ),
        turn=(
            Turn(
                say=example.question,
                expect=Expected(
                    admitted_any=useful,
                    kept_out=tuple(names[r] for r in names if r in key.harmful),
                ),
            ),
        ),
    )


def _names(scenario: Scenario) -> dict[RecordId, str]:
    """A name for each record that tells its role: whoever reads a failure wants to know."""
    counts: Counter[str] = Counter()
    names: dict[RecordId, str] = {}
    for record in scenario.example.records:
        role = _role(record.id, scenario.key)
        counts[role] += 1
        names[record.id] = f"{role}-{counts[role]}"
    return names


def _role(record: RecordId, key: Key) -> str:
    if record in key.useful:
        return "useful"
    return "harmful" if record in key.harmful else "irrelevant"
