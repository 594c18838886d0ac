"""Small Causal-LoCoMo files of our own words, and what a run over them needs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.guards.intervention import CMI
from assay.guards.perturb import PERTURBATIONS
from assay.guards.protocols import Case, ChatModel, Decision, Experimenter, Guard, Judgement
from assay.runtime.clock import StoppedClock
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import Settings
from assay.scenarios.causal_locomo import SUITE
from assay.scenarios.folder import digest
from assay.scenarios.runner import Equipment
from assay.scenarios.runs import FORMAT, RunConfig, RunRecord
from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import Cache

Row = dict[str, Any]

_FACTS = (
    ("Ada", "harp", "lute"),
    ("Bea", "kayak", "canoe"),
    ("Cal", "barley", "wheat"),
    ("Dov", "chess", "poker"),
)


def example(number: int) -> Row:
    """One example: a useful, a harmful and two irrelevant memories about person ``number``."""
    name, true, false = _FACTS[number]
    content = (
        f"Session date/time: 1:56 pm on {number + 1} May, 2023.\n"
        f"D1:1 {name}: I bought a {true} yesterday.\n"
        f"D1:2 Friend: A {true}? How lovely, {name}."
    )
    return {
        "example_id": f"conv-{number}_qa",
        "source_sample_id": f"conv-{number}",
        "split_group_id": f"conv-{number}",
        "task_family": "factual_memory_qa",
        "past_sessions": [
            {
                "session_id": "s1",
                "timestamp": 1,
                "date_time": f"1:56 pm on {number + 1} May, 2023",
                "content": content,
            }
        ],
        "memory_bank": [
            _memory("gold_00", f"{name} bought a {true}. Resolved answer: {true}.", "useful"),
            _memory("irr_00", f"{name} has a friend who visits.", "irrelevant"),
            _memory("irr_01", "The market opens on Saturdays.", "irrelevant"),
            _memory("harm_00", f"{name} bought a {false}.", "harmful"),
        ],
        "current_task": {"instruction": f"What did {name} buy?"},
        "gold_memory_ids": ["gold_00"],
        "bad_memory_ids": ["irr_00", "irr_01", "harm_00"],
        "scoring_criteria": {"expected_answer": true, "answer_aliases": [f"a {true}"]},
    }


def examples(count: int = 4) -> list[Row]:
    """The first ``count`` examples."""
    return [example(number) for number in range(count)]


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """A JSONL file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def config(data: Path, *methods: str, seed: int = 7, k: int = 3) -> RunConfig:
    """A run over a file with the scripted model."""
    return RunConfig(
        suite=SUITE,
        protocol="blind",
        data=str(data),
        data_sha256=digest(data),
        methods=methods or ("nearest", "cmi"),
        model="scripted",
        base_url=None,
        cassette="",
        embedder="hashing",
        k=k,
        limit=None,
        seed=seed,
        concurrency=4,
        on_undecided="withhold",
        settings=Settings(),
    )


def run_record(run: RunConfig) -> RunRecord:
    """What ``run.json`` holds for such a run."""
    return RunRecord(
        format=FORMAT,
        config=run,
        identity="scripted",
        embedder="hashing-256@1",
        command="assay replay causal-locomo --seed 7",
        started="2026-01-01T00:00:00+00:00",
    )


def equipment(model: ChatModel | None = None, cache: Cache | None = None) -> Equipment:
    """Scripted model, hashing embedder, stopped clock."""
    return Equipment(
        model=model or ScriptedModel(),
        likelihood=None,
        embedder=HashingEmbedder(),
        cache=cache or InMemoryCache(),
        guard=guard_of,
        renderings=PERTURBATIONS,
        clock=StoppedClock(),
    )


def guard_of(name: str) -> Guard:
    """``cmi``, or a guard that admits the nearest record without asking anything."""
    return CMI() if name == "cmi" else Nearest()


class Nearest:
    """Admits the candidate with the best retrieval score."""

    @property
    def name(self) -> str:
        return "nearest"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        best = max(case.candidates, key=lambda candidate: candidate.score)
        return Decision(
            method=self.name,
            judgements=tuple(
                Judgement(
                    record_id=candidate.record.id,
                    admitted=candidate == best,
                    reason="By score.",
                    method=self.name,
                )
                for candidate in case.candidates
            ),
        )


def _memory(memory_id: str, content: str, label: str) -> Row:
    return {
        "memory_id": memory_id,
        "content": content,
        "label": label,
        "causal_role": "positive",
        "timestamp": 9,
        "source_dia_ids": ["D1:1"],
    }
