"""Clearing where a user meets it: in a chat's bank, in ``explain decision`` and in a replay's page."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from anyio import to_thread

from assay import open_runtime
from assay.cli import main
from assay.guards.protocols import Completion, Request
from assay.runtime.models.reader import shown_records
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.records import Origin

QUESTION = "Which city does the invoice go to?"
IMPORTED = Origin(writer="external", channel="import:notes")


def misled(request: Request) -> str | Completion:
    """Any copy of the wrong city wins over the right one, as with many readers."""
    shown = " ".join(shown_records(request))
    if "Oslo" in shown:
        return "Oslo."
    return "Lisbon." if "Lisbon" in shown else "I do not know."


def records_hash(bank: Path) -> str:
    """Of every row of the persistent bank that says what is remembered."""
    digest = hashlib.sha256()
    with sqlite3.connect(bank / "bank.sqlite3") as connection:
        for query in (
            "SELECT * FROM records",
            "SELECT * FROM superseded",
            "SELECT * FROM tombstones",
        ):
            rows = connection.execute(query).fetchall()
            digest.update(repr((query, sorted(map(repr, rows)))).encode())
    return digest.hexdigest()


async def talk(bank: Path) -> tuple[str, str, str]:
    """One answered question; the hash before and after it, and the reply."""
    model = ScriptedModel(misled)
    async with open_runtime(model=model, guard="meclear", bank=bank, embedder="hashing") as rt:
        session = rt.session(user="me")
        await session.send("The invoice goes to our office in Lisbon, the city by the river.")
        for text in (
            "The invoice goes to the city of Lisbon.",
            "The invoice goes to the city of Oslo.",
            "As for the city the invoice goes to: Oslo.",
        ):
            await rt.remember("me", text, origin=IMPORTED)
        before = records_hash(bank)
        reply = await session.send(QUESTION)
        return before, records_hash(bank), reply.text


async def test_redundant_copies_leave_the_prompt_and_the_bank_stays_as_it_was(
    tmp_path: Path,
) -> None:
    before, after, reply = await talk(tmp_path / "bank")

    assert reply == "Lisbon."
    assert before == after


async def test_the_explanation_draws_what_was_tested_and_how_two_records_act_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await talk(tmp_path / "bank")
    capsys.readouterr()

    code = await to_thread.run_sync(
        _exit_code,
        ["explain", "decision", "--bank", str(tmp_path / "bank"), "--embedder", "hashing"],
    )

    out = capsys.readouterr().out
    assert code == 0
    assert "verified: recovered" in out
    assert "nothing withheld" in out
    assert "verified at the bar 0.50" in out
    assert "substitution" in out
    assert "effect of" in out


def _exit_code(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def test_a_replay_knows_the_method_and_its_page_shows_how_it_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps(_example()) + "\n")
    arguments = (
        f"replay causal-locomo --data {data} --model scripted --embedder hashing --k 3 "
        f"--method meclear --method meclear_published --json --out {tmp_path / 'out'}"
    )

    code = _exit_code(arguments.split())

    assert code == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["methods"]) == ["meclear", "meclear_published"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "meclear tested, bar" in page
    assert "Clearing" in page


def _example() -> dict[str, object]:
    return {
        "example_id": "conv-0_qa",
        "source_sample_id": "conv-0",
        "split_group_id": "conv-0",
        "task_family": "factual_memory_qa",
        "past_sessions": [
            {
                "session_id": "s1",
                "timestamp": 1,
                "date_time": "1:56 pm on 8 May, 2023",
                "content": "D1:1 Ada: I bought a harp yesterday.",
            }
        ],
        "memory_bank": [
            {"memory_id": "gold_00", "content": "Ada bought a harp.", "label": "useful"},
            {"memory_id": "irr_00", "content": "The market opens early.", "label": "irrelevant"},
            {"memory_id": "harm_00", "content": "What Ada bought: a lute.", "label": "harmful"},
        ],
        "current_task": {"instruction": "What did Ada buy?"},
        "gold_memory_ids": ["gold_00"],
        "scoring_criteria": {"expected_answer": "harp"},
    }
