"""Scenario files: what they hold, what is wrong with one, and what a played one is checked for."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScenarioError
from assay.scenarios.cases.checking import Finding, findings
from assay.scenarios.cases.files import CaseFile, find, named, read
from assay.scenarios.cases.playing import play
from assay.scenarios.cases.schema import Case, Expected, Memory, Past, Turn, json_schema
from assay.scenarios.cases.trying import Unmet, tried
from assay.scenarios.cases.writing import to_line, to_toml, write_first

FOLDER = Path(__file__).parents[2] / "scenarios" / "cases"

SMALL = """scenario = "Small"

[[memory]]
id = "cat"
text = "My cat is called Miso."

[[turn]]
say = "What is my cat called?"

[turn.expect]
admitted = ["cat"]
"""


def written(tmp_path: Path, text: str, name: str = "small.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


async def checked(tmp_path: Path, text: str, *, budget: int | None = None) -> list[Finding]:
    [file] = read(written(tmp_path, text))
    return findings(await play(file, budget=budget))


def test_the_published_schema_is_that_of_the_code() -> None:
    assert (FOLDER / "scenario.schema.json").read_bytes() == json_schema()


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ('text = "My', 'txet = "My', r"line 5: unknown field 'txet' in memory 1; .*'text'"),
        ("admitted =", "admited =", r"line 11: unknown field 'admited' in turn 1, expect"),
        ('["cat"]', '["cta"]', r"line 11: no record is called 'cta'; did you mean 'cat'\?"),
        ('["cat"]', '"cat"', r"line 11: expected array, got str in turn 1, expect, admitted"),
        (
            'say = "What is my cat called?"',
            "",
            r"line 7: expected a turn with either `say` or `do`",
        ),
        ("scenario", "scenaro", r"line 1: unknown field 'scenaro'; did you mean 'scenario'"),
        ('"Small"', '"Small', r"not valid TOML: .*line 1"),
        ("[[turn]]", "now = 2026-01-01T09:00:00\n[[turn]]", r"line 7: unknown field 'now'"),
        ("[turn.expect]", "at = 2025-01-01T09:00:00\n[turn.expect]", r"line 10: .*with an offset"),
        ('id = "cat"', 'id = "cat"\nturn = "told"', r"line 5: no past message is called 'told'"),
        ("[[turn]]", "[settings.guard]\nk = 500\n[[turn]]", r"line 8: expected int <= 64"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, good: str, bad: str, said: str) -> None:
    path = written(tmp_path, SMALL.replace(good, bad, 1))

    with pytest.raises(ScenarioError, match=said):
        read(path)


def test_a_line_of_jsonl_is_named(tmp_path: Path) -> None:
    good = b'{"scenario": "a", "turn": [{"say": "x"}]}'
    path = written(tmp_path, (good + b"\n" + good.replace(b"say", b"sya")).decode(), "two.jsonl")

    with pytest.raises(ScenarioError, match=r"line 2: unknown field 'sya' in turn 1"):
        read(path)


def test_scenarios_of_one_name_are_told_apart(tmp_path: Path) -> None:
    line = '{"scenario": "same", "turn": [{"say": "x"}]}\n'

    files = read(written(tmp_path, line * 2, "two.jsonl"))

    assert [file.name for file in files] == ["same-line-1", "same-line-2"]
    assert len({file.cassette for file in files}) == 2
    assert named(files, "same-line-2").line == 2
    with pytest.raises(ScenarioError, match="no scenario 'same-line-3'; did you mean"):
        named(files, "same-line-3")


def test_a_folder_gives_what_says_it_is_a_scenario(tmp_path: Path) -> None:
    mine = written(tmp_path, SMALL)
    written(tmp_path, "x = 1", "settings.toml")
    written(tmp_path, '{"scenario": "no"}', "small.cassette.jsonl")

    assert find([tmp_path, mine]) == [mine]


def test_an_empty_folder_and_a_missing_file_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="assay scenario new FILE"):
        find([tmp_path])
    with pytest.raises(ScenarioError, match="no scenario file or folder"):
        find([tmp_path / "gone.toml"])


@pytest.mark.parametrize("suffix", [".toml", ".jsonl"])
def test_a_first_scenario_passes_as_it_stands(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"first{suffix}"
    write_first(path)

    [file] = read(path)

    assert tried(file).spent.evaluations > 0
    with pytest.raises(ScenarioError, match="is there already"):
        write_first(path)


names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
cases = st.builds(
    Case,
    scenario=names,
    about=texts,
    memory=st.lists(st.builds(Memory, id=names, text=texts), max_size=3).map(tuple),
    archive=st.lists(st.builds(Past, text=texts, speaker=names), max_size=3).map(tuple),
    turn=st.lists(
        st.builds(
            Turn,
            say=texts,
            expect=st.builds(
                Expected,
                admitted=st.lists(names).map(tuple),
                remembers=st.dictionaries(texts, texts, max_size=2),
                evaluations=st.none() | st.integers(0, 9),
            ),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)


@given(cases)
def test_what_is_written_is_read_again(case: Case) -> None:
    assert msgspec.toml.decode(to_toml(case), type=Case) == case
    assert msgspec.json.decode(to_line(case), type=Case) == case


@pytest.mark.parametrize(
    ("expected", "rule", "came"),
    [
        ('withheld = ["cat"]', "withheld", "admitted"),
        ('kept_out = ["cat"]', "kept_out", "admitted"),
        ('not_proposed = ["cat"]', "not_proposed", "proposed, admitted"),
        ('flagged = ["cat"]', "flagged", "admitted"),
        ('answer_contains = ["Tofu"]', "answer_contains", "'My cat is called Miso.'"),
        ('answer_contains_any = ["Tofu", "x"]', "answer_contains_any", "'My cat is called Miso.'"),
        ('answer_excludes = ["miso"]', "answer_excludes", "'My cat is called Miso.'"),
        ("asks_back = true", "asks_back", "'My cat is called Miso.'"),
        ('tool_calls = ["lookup"]', "tool_calls", "none"),
        ('fallback = "withhold_all"', "fallback", "a decision"),
        ('fails = "GuardFailed"', "fails", "a reply"),
        ("evaluations = 1", "evaluations", "2"),
        ("tokens = 1", "tokens", "104"),
        ('remembers = { new = "I moved." }', "remembers", "nothing"),
    ],
)
async def test_each_unmet_expectation_is_one_finding(
    tmp_path: Path, expected: str, rule: str, came: str
) -> None:
    [found] = await checked(tmp_path, SMALL.replace('admitted = ["cat"]', expected))

    assert (found.turn, found.rule) == (1, rule)
    assert found.came == came or rule in {"evaluations", "tokens"}


async def test_a_record_that_was_never_proposed_is_not_withheld(tmp_path: Path) -> None:
    text = SMALL.replace("[[turn]]", 'user = "somebody else"\n\n[[turn]]').replace(
        "admitted", "withheld"
    )

    [found] = await checked(tmp_path, text)

    assert found.came == "never proposed (proposed: none)"
    assert "not_proposed" in found.do


async def test_one_useful_record_of_several_is_enough(tmp_path: Path) -> None:
    text = SMALL.replace('admitted = ["cat"]', 'admitted_any = ["cat"]')

    assert await checked(tmp_path, text) == []


async def test_the_budget_is_that_of_all_turns_together(tmp_path: Path) -> None:
    again = '\n[[turn]]\nsay = "Is my cat called Miso or Tofu?"\nsession = "later"\n'
    text = 'guard = "cmi"\n' + SMALL.split("[turn.expect]", maxsplit=1)[0]

    assert await checked(tmp_path, text, budget=3) == []
    found = await checked(tmp_path, text + again, budget=3)

    assert [(finding.turn, finding.rule) for finding in found] == [(2, "fallback")]
    assert "0 left" in found[0].came


async def test_a_record_comes_in_when_its_time_has_come(tmp_path: Path) -> None:
    text = """scenario = "Later"
now = 2026-03-01T09:00:00Z

[[memory]]
id = "late"
text = "My cat is called Miso."
at = 2026-03-02T09:00:00Z

[[turn]]
say = "What is my cat called?"
session = "before"
[turn.expect]
not_proposed = ["late"]

[[turn]]
say = "What is my cat called?"
session = "after"
at = 2026-03-03T09:00:00Z
[turn.expect]
admitted = ["late"]
"""

    assert await checked(tmp_path, text) == []


async def test_a_deed_that_cannot_be_done_is_a_finding(tmp_path: Path) -> None:
    forget = '[[turn]]\ndo = "forget"\nrecord = "cat"\n'
    text = SMALL.split("[[turn]]", maxsplit=1)[0] + forget + forget

    [found] = await checked(tmp_path, text)

    assert (found.turn, found.expected) == (2, "it to be done")
    assert found.came.startswith("RecordNotFound")


def test_a_failure_is_an_exception_that_knows_how_it_went(tmp_path: Path) -> None:
    [file] = read(written(tmp_path, SMALL.replace("admitted", "withheld")))

    with pytest.raises(Unmet, match="expected withheld, came admitted") as raised:
        tried(file)

    assert isinstance(raised.value.played.file, CaseFile)
    assert [finding.record for finding in raised.value.found] == ["cat"]
