import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from assay.errors import ModelUnavailable, ScenarioError
from assay.guards.protocols import Completion, DeltaSink, Ledger, Message, Request
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import BudgetSettings, GuardSettings, Settings
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.folder import DECISIONS_FILE, JOURNAL_FILE, RunFolder
from assay.scenarios.results import method_results, summary
from assay.scenarios.runner import Equipment, run
from assay.scenarios.runs import Paid, Row, RunConfig
from assay.stores.memory import InMemoryCache

from .support_causal import config, equipment, examples, run_record, write_rows
from .test_causal_locomo import disguised

CHILD = Path(__file__).with_name("killed_run.py")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data.jsonl", examples())


async def decided(setup: RunConfig, folder: Path, kit: Equipment) -> list[Row]:
    at = RunFolder(folder)
    scenarios = load_blind(Path(setup.data), seed=setup.seed)
    await at.begin(run_record(setup))
    return await run(at, [scenario.example for scenario in scenarios], setup, kit)


def by_text(rows: Sequence[Row], path: Path) -> list[tuple[str, str, str, bool]]:
    texts = {
        record.id: record.text
        for scenario in load_blind(path, seed=7)
        for record in scenario.example.records
    }
    return [
        (row.method, row.answer, texts[judgement.record_id], judgement.admitted)
        for row in rows
        for judgement in row.decision.judgements
    ]


def untimed(rows: Sequence[Row]) -> list[Row]:
    """Rows without wall time, and without the guard's own count of what came from the cache."""
    replace = msgspec.structs.replace
    return [
        replace(
            row,
            seconds=0.0,
            spent=replace(row.spent, seconds=0.0),
            decision=replace(row.decision, spent=Ledger()),
        )
        for row in rows
    ]


async def test_every_method_decides_every_example(data: Path, tmp_path: Path) -> None:
    rows = await decided(config(data), tmp_path / "out", equipment())

    assert [row.unit for row in rows] == [
        (f"conv-{number}_qa", method) for number in range(4) for method in ("nearest", "cmi")
    ]
    assert all(len(row.candidates) == 3 for row in rows)
    assert await RunFolder(tmp_path / "out").rows() == rows


async def test_no_decision_depends_on_labels_ids_order_times_or_other_fields(
    data: Path, tmp_path: Path
) -> None:
    changed = write_rows(tmp_path / "changed.jsonl", disguised(examples()))

    before = await decided(config(data), tmp_path / "before", equipment())
    after = await decided(config(changed), tmp_path / "after", equipment())

    assert by_text(before, data) == by_text(after, changed)


async def test_nor_on_the_names_and_the_order_of_the_examples(data: Path, tmp_path: Path) -> None:
    rows = examples()
    renamed = [row | {"example_id": f"other-{i}"} for i, row in enumerate(rows)]
    changed = write_rows(tmp_path / "changed.jsonl", renamed[::-1])

    before = await decided(config(data), tmp_path / "before", equipment())
    after = await decided(config(changed), tmp_path / "after", equipment())

    assert sorted(by_text(before, data)) == sorted(by_text(after, changed))


async def test_no_prompt_holds_a_label_an_id_or_the_stripped_answer(
    data: Path, tmp_path: Path
) -> None:
    model = ScriptedModel()

    await decided(config(data), tmp_path / "out", equipment(model))

    asked = " ".join(message.content for request in model.asked for message in request.messages)
    leaks = ("Resolved", "useful", "irrelevant", "harmful", "gold_", "harm_", "irr_", "conv-")
    assert [leak for leak in leaks if leak in asked] == []


async def test_evaluations_are_counted_whatever_another_method_already_asked(
    data: Path, tmp_path: Path
) -> None:
    alone = await decided(config(data, "nearest"), tmp_path / "alone", equipment())
    second = await decided(config(data, "cmi", "nearest"), tmp_path / "second", equipment())

    assert [row.spent.evaluations for row in alone] == [1] * 4
    assert [row.spent.evaluations for row in second if row.method == "nearest"] == [1] * 4
    assert [row.spent.live for row in alone] == [1] * 4
    assert sum(row.spent.live for row in second if row.method == "nearest") == 0


async def test_the_same_run_again_decides_the_same_and_reaches_no_model(
    data: Path, tmp_path: Path
) -> None:
    cache, model = InMemoryCache(), ScriptedModel()

    first = await decided(config(data), tmp_path / "first", equipment(model, cache))
    asked = len(model.asked)
    again = await decided(config(data), tmp_path / "again", equipment(model, cache))

    assert len(model.asked) == asked
    assert sum(row.spent.live for row in first) == asked
    assert sum(row.spent.live for row in again) == 0
    assert by_text(first, data) == by_text(again, data)


async def test_full_history_sees_the_whole_bank(data: Path, tmp_path: Path) -> None:
    rows = await decided(config(data, "full_history", k=2), tmp_path / "out", equipment())

    assert {len(row.candidates) for row in rows} == {4}


async def test_a_budget_of_0_withholds_everything_visibly(data: Path, tmp_path: Path) -> None:
    setup = msgspec.structs.replace(
        config(data, "cmi"), settings=Settings(budget=BudgetSettings(calls=0))
    )
    model = ScriptedModel()

    rows = await decided(setup, tmp_path / "out", equipment(model))

    assert model.asked == []
    assert {row.decision.fallback for row in rows} == {"withhold_all"}
    assert {row.status for row in rows} == {"over_budget"}
    assert "budget exceeded" in rows[0].decision.failure
    assert [row.admitted for row in rows] == [()] * 4


async def test_a_guard_that_cannot_measure_leaves_it_to_the_policy(
    data: Path, tmp_path: Path
) -> None:
    policy = Settings(
        guard=GuardSettings(on_guard_failure="admit_flagged"), budget=BudgetSettings(calls=0)
    )
    setup = msgspec.structs.replace(config(data, "cmi"), settings=policy)

    rows = await decided(setup, tmp_path / "out", equipment(ScriptedModel()))

    assert {row.decision.fallback for row in rows} == {"admit_flagged"}
    assert all(judgement.flagged for row in rows for judgement in row.decision.judgements)


class FailsAfter:
    """A scripted model that is unavailable after so many answers (``ChatModel``)."""

    def __init__(self, answers: int) -> None:
        self._model = ScriptedModel()
        self._left = answers

    @property
    def identity(self) -> str:
        return self._model.identity

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._model.count_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        if self._left == 0:
            raise ModelUnavailable("connection refused")
        self._left -= 1
        return await self._model.complete(request, sink=sink)


async def test_a_model_that_goes_away_stops_the_run_and_loses_nothing(
    data: Path, tmp_path: Path
) -> None:
    setup, cache = config(data, "nearest"), InMemoryCache()
    whole = await decided(setup, tmp_path / "whole", equipment())

    with pytest.raises(ModelUnavailable, match="connection refused"):
        await decided(setup, tmp_path / "out", equipment(FailsAfter(2), cache))

    kept = await RunFolder(tmp_path / "out").rows()
    assert untimed(kept) == untimed(whole[:2])
    scenarios = load_blind(data, seed=7)
    there = RunFolder(tmp_path / "out")
    resumed = await run(there, [s.example for s in scenarios], setup, equipment(cache=cache))
    assert untimed(resumed) == untimed(whole)


async def test_answers_paid_for_before_a_crash_still_count_as_live(
    data: Path, tmp_path: Path
) -> None:
    setup, cache = config(data, "cmi"), InMemoryCache()
    whole = await decided(setup, tmp_path / "whole", equipment(cache=cache))
    interrupted = RunFolder(tmp_path / "out")
    await interrupted.begin(run_record(setup))
    for paid in await RunFolder(tmp_path / "whole").paid():
        await interrupted.append_paid([paid])
    scenarios = load_blind(data, seed=7)

    resumed = await run(interrupted, [s.example for s in scenarios], setup, equipment(cache=cache))

    assert untimed(resumed) == untimed(whole)
    assert sum(row.spent.live for row in resumed) > 0


async def test_a_line_cut_short_by_a_crash_is_dropped_and_decided_again(
    data: Path, tmp_path: Path
) -> None:
    setup, cache = config(data), InMemoryCache()
    whole = await decided(setup, tmp_path / "out", equipment(cache=cache))
    path = tmp_path / "out" / DECISIONS_FILE
    path.write_bytes(path.read_bytes()[:-40])
    scenarios = load_blind(data, seed=7)
    there = RunFolder(tmp_path / "out")

    assert await there.rows() == whole[:-1]
    await run(there, [s.example for s in scenarios], setup, equipment(cache=cache))

    assert untimed(await there.rows()) == untimed(whole)


async def test_a_damaged_line_is_an_error_not_a_gap(data: Path, tmp_path: Path) -> None:
    await decided(config(data), tmp_path / "out", equipment())
    path = tmp_path / "out" / DECISIONS_FILE
    path.write_bytes(b"{}\n" + path.read_bytes())

    with pytest.raises(ScenarioError, match=r"decisions.jsonl, line 1: expected what a run writes"):
        await RunFolder(tmp_path / "out").rows()


async def test_a_folder_with_another_run_is_refused(data: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    await folder.begin(run_record(config(data)))

    with pytest.raises(ScenarioError, match="holds a run of another configuration"):
        await folder.begin(run_record(config(data, seed=8)))

    assert (await folder.record()).config.seed == 7


async def test_the_same_run_in_the_same_folder_keeps_the_earlier_one_aside(
    data: Path, tmp_path: Path
) -> None:
    first = await decided(config(data), tmp_path / "out", equipment())

    await decided(config(data), tmp_path / "out", equipment())

    assert await RunFolder(tmp_path / "out" / "previous").rows() == first


async def test_a_folder_without_a_run_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no run in .*: expected the file run.json"):
        await RunFolder(tmp_path).record()


async def test_a_run_of_a_newer_format_is_refused(data: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    await folder.begin(msgspec.structs.replace(run_record(config(data)), format=99))

    with pytest.raises(ScenarioError, match="expected a run of format 1, got 99"):
        await folder.record()


async def test_the_summary_has_every_figure_of_every_method(data: Path, tmp_path: Path) -> None:
    setup = config(data)
    rows = await decided(setup, tmp_path / "out", equipment())
    scenarios = load_blind(data, seed=7)

    found = summary(scenarios, method_results(scenarios, rows, setup), setup)

    assert list(found) == [
        "suite", "protocol", "model", "seed", "examples", "methods", "intervals",
    ]  # fmt: skip
    methods = msgspec.convert(found["methods"], dict[str, dict[str, float]])
    assert list(methods) == ["nearest", "cmi"]
    assert list(methods["cmi"]) == [
        "useful_f1", "gold_recall", "useful_precision", "bad_rejection", "poison_adoption",
        "poison_adoption_poisoned", "avg_memories", "evaluations", "live", "rounds", "tokens",
        "seconds",
    ]  # fmt: skip
    assert methods["nearest"]["avg_memories"] == 1.0


def test_a_run_killed_anywhere_goes_on_to_the_same_result(data: Path, tmp_path: Path) -> None:
    def child(folder: str, stop_after: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own script
            [sys.executable, CHILD, data, tmp_path / folder, str(stop_after)],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )

    whole = child("whole", 1000)
    for answers in (1, 2, 9):
        killed = child("killed", answers)
        assert killed.returncode == -signal.SIGKILL
    resumed = child("killed", 1000)

    assert whole.returncode == resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == whole.stdout
    lines = (tmp_path / "killed" / JOURNAL_FILE).read_bytes().splitlines()
    assert len({msgspec.json.decode(line, type=Paid).key for line in lines}) == len(lines)
