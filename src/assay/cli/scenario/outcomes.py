"""What came of scenarios, as a table or as one JSON object."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console

from assay.cli.decisions import plain
from assay.cli.tables import FigureTable
from assay.guards.protocols import Ledger
from assay.scenarios.cases.checking import Finding
from assay.scenarios.cases.files import CaseFile
from assay.scenarios.cases.playing import Played
from assay.scenarios.cases.telling import shown_path


class Outcome(NamedTuple):
    """One scenario.

    Attributes:
        file: The scenario.
        played: How it went.
        found: What was expected and did not come.
        told: The same as text.
    """

    file: CaseFile
    played: Played
    found: Sequence[Finding] = ()
    told: str = ""


def print_table(outcomes: Sequence[Outcome]) -> None:
    """One row a scenario, then each failure in full."""
    console = Console(highlight=False)
    for outcome in outcomes:
        if outcome.found:
            console.print(plain(outcome.told), soft_wrap=True, markup=False)
            console.print()
    rows = [_row(outcome) for outcome in outcomes]
    head = ["scenario", "", "evaluations", "tokens"]
    passed = sum(not outcome.found for outcome in outcomes)
    title = f"{passed} of {len(outcomes)} scenarios passed"
    console.print(FigureTable(title=title, head=head, rows=rows))


def print_json(outcomes: Sequence[Outcome]) -> None:
    """One JSON object."""
    total = sum((outcome.played.spent for outcome in outcomes), Ledger())
    shown = {
        "passed": sum(not outcome.found for outcome in outcomes),
        "failed": sum(bool(outcome.found) for outcome in outcomes),
        "spent": total,
        "scenarios": [_entry(outcome) for outcome in outcomes],
    }
    print(msgspec.json.encode(shown).decode())


def _row(outcome: Outcome) -> list[str]:
    spent = outcome.played.spent
    figures = [f"{number:,}" for number in (spent.evaluations, spent.tokens)]
    return [outcome.file.name, "failed" if outcome.found else "passed", *figures]


def _entry(outcome: Outcome) -> dict[str, object]:
    played = outcome.played
    return {
        "file": shown_path(outcome.file.path),
        "line": outcome.file.line,
        "name": outcome.file.name,
        "scenario": outcome.file.case.scenario,
        "passed": not outcome.found,
        "spent": played.spent,
        "findings": [finding._asdict() for finding in outcome.found],
        "turns": [
            {
                "turn": taken.number,
                "say": taken.turn.say,
                "answer": taken.reply.text if taken.reply else None,
                "failure": taken.failure._asdict() if taken.failure else None,
                "admitted": _named(played, taken.number, admitted=True),
                "withheld": _named(played, taken.number, admitted=False),
            }
            for taken in played.taken
        ],
    }


def _named(played: Played, number: int, *, admitted: bool) -> list[str]:
    """Names of the records of a turn that were admitted, or withheld."""
    taken = played.taken[number - 1]
    judgements = taken.reply.decision.judgements if taken.reply else ()
    return [taken.names[j.record_id] for j in judgements if j.admitted == admitted]
