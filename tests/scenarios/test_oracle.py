"""The oracle scorer has the answer key, and nothing blind can have it."""

import ast
from pathlib import Path

import msgspec
import pytest

from assay.errors import ConfigError, ScenarioError
from assay.guards.methods import CMI_VARIANTS, METHODS, ORACLE, guard_named
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.folder import RunFolder
from assay.scenarios.oracle import OracleCMI, run_published
from assay.scenarios.runner import Progress
from assay.scenarios.runs import RunConfig, RunRecord
from assay.scenarios.scorers import Criteria

from .support_causal import config, equipment, examples, run_record, write_rows

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data.jsonl", examples(3))


def published(data: Path) -> RunConfig:
    return msgspec.structs.replace(config(data, "cmi", ORACLE), protocol="published")


async def test_the_oracle_admits_what_its_key_rewards(data: Path, tmp_path: Path) -> None:
    run = published(data)
    scenarios = load_blind(data, seed=7)
    folder = RunFolder(tmp_path / "out")
    await folder.begin(run_record(run))
    model, seen = ScriptedModel(), list[Progress]()

    rows = await run_published(
        folder, [s.example for s in scenarios], run, equipment(model), watch=seen.append
    )

    oracle = [row for row in rows if row.method == ORACLE]
    assert len(oracle) == 3
    for row, scenario in zip(oracle, scenarios, strict=True):
        assert set(row.admitted) & scenario.key.useful == scenario.key.useful
        assert not set(row.admitted) & scenario.key.harmful
    assert (seen[-1].done, seen[-1].total) == (6, 6)


async def test_no_prompt_of_the_oracle_holds_a_label_or_the_key(data: Path, tmp_path: Path) -> None:
    run, model = published(data), ScriptedModel()
    folder = RunFolder(tmp_path / "out")
    await folder.begin(run_record(run))

    await run_published(
        folder, [s.example for s in load_blind(data, seed=7)], run, equipment(model)
    )

    asked = " ".join(message.content for request in model.asked for message in request.messages)
    leaks = ("Resolved", "useful", "irrelevant", "harmful", "gold_", "harm_", "irr_")
    assert [leak for leak in leaks if leak in asked] == []


def test_no_blind_run_can_make_an_oracle(data: Path) -> None:
    with pytest.raises(ScenarioError, match="only under the published protocol, not under 'blind'"):
        OracleCMI(Criteria(), config(data))


async def test_a_blind_run_of_the_oracle_stops_before_it_asks(data: Path, tmp_path: Path) -> None:
    run, model = config(data, ORACLE), ScriptedModel()
    folder = RunFolder(tmp_path / "out")
    await folder.begin(run_record(run))

    with pytest.raises(ScenarioError, match="only under the published protocol"):
        await run_published(
            folder, [s.example for s in load_blind(data, seed=7)], run, equipment(model)
        )

    assert model.asked == []


def test_no_name_leads_to_the_oracle() -> None:
    assert ORACLE not in (*METHODS, *CMI_VARIANTS)
    with pytest.raises(ConfigError, match="no guard may see"):
        guard_named(ORACLE)


def test_a_key_meets_a_guard_in_one_file_only() -> None:
    """Whoever imports the oracle is the command line; no guard and no runtime file does."""
    importers = [
        path.relative_to(ROOT).as_posix()
        for folder in ("guards", "runtime", "stores", "scenarios", "src/assay/cli")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "assay.scenarios.oracle" in _imports(path)
    ]

    assert importers == ["src/assay/cli/replay/running.py"]


async def test_an_example_without_criteria_is_named(data: Path, tmp_path: Path) -> None:
    run = published(data)
    folder = RunFolder(tmp_path / "out")
    await folder.begin(run_record(run))
    [first, *_] = load_blind(data, seed=7)
    stranger = msgspec.structs.replace(first.example, id="other")

    with pytest.raises(ScenarioError, match="expected scoring_criteria of 'other'"):
        await run_published(folder, [stranger], run, equipment())


def test_the_protocol_of_a_run_is_kept_with_it(data: Path) -> None:
    record = run_record(published(data))

    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
