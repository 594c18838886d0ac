"""Perturbations change what a record states, always in the same way, and never a part of a word."""

import csv
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.perturb import (
    EDITORS,
    MEANINGFUL,
    PERTURBATIONS,
    PUBLISHED,
    perturbation_for,
    perturbations_for,
    renamed,
)
from assay.guards.perturb_edits import Edit, applied, cuts_a_word

texts = st.text(min_size=1, max_size=80).filter(str.strip)
PHRASES = ["New York", "on 7 May 2023", "on May 7th, 2023", "2023-05-07", "in May 2023"]
WORDS = """Ann O'Neil McCoy iPhone likes is isn't never May May. A . b-Ann Ann-Sofie went two twofold tea
    teacup 7 7th 2023 30 February 12,500 1:56 3.5 Monday yesterday dog bulldog mother's a an""".split()
words = st.sampled_from([*WORDS, *PHRASES])
sentences = st.lists(words, min_size=1, max_size=12).map(" ".join)


@pytest.mark.parametrize("name", PUBLISHED)
@given(text=texts)
def test_every_published_perturbation_changes_every_text_alike_each_time(
    name: str, text: str
) -> None:
    perturb = PERTURBATIONS[name]

    assert perturb(text) != text
    assert perturb(text) == perturb(text)


@pytest.mark.parametrize("name", EDITORS)
@given(text=st.one_of(texts, sentences))
def test_no_edit_cuts_or_joins_a_word(name: str, text: str) -> None:
    edits = EDITORS[name](text)

    assert [edit for edit in edits if cuts_a_word(text, edit)] == []
    assert all(a.stop <= b.start for a, b in pairwise(edits))
    assert MEANINGFUL[name](text) == applied(text, edits)
    assert bool(edits) == (MEANINGFUL[name](text) != text)


@pytest.mark.parametrize("name", ["negation", "temporal", "scope"])
def test_a_prefix_leaves_the_record_whole(name: str) -> None:
    assert PERTURBATIONS[name]("Ann likes tea").endswith(": Ann likes tea")


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("teacup", Edit(0, 3, "milk")),
        ("teacup", Edit(3, 6, "pot")),
        ("tea cup", Edit(3, 3, "s")),
        ("tea cup", Edit(3, 4, "")),
    ],
)
def test_an_edit_inside_a_word_is_told(text: str, edit: Edit) -> None:
    assert cuts_a_word(text, edit)


# ---- names


@given(text=sentences)
def test_a_name_is_replaced_as_a_whole_word_or_not_at_all(text: str) -> None:
    before, after = (
        re.findall(r"\S+", t) for t in (text.replace("New York", "New"), renamed(text))
    )
    stand_in = re.compile(r"(?:Avery|Brook|Corin|Dale|Ellis|Farrow|Greer|Hollis)\.?")

    changed = [word for word in after if word not in before]

    assert all(stand_in.fullmatch(word) for word in changed if "someone" not in renamed(text))


def test_the_same_name_gets_the_same_stand_in() -> None:
    text = renamed("Later Ann met Bob, and Bob paid Ann back.")

    match = re.fullmatch(r"Later (\w+) met (\w+), and (\w+) paid (\w+) back\.", text)

    assert match
    assert match.group(1) == match.group(4) != "Ann"
    assert match.group(2) == match.group(3) != "Bob"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Ann's dog moved", "'s dog moved"),
        ("We saw New York and left", " and left"),
        ("We met in May on Monday with Ann", "We met in May on Monday with "),
        ("He called O'Neil and Ann", "He called O'Neil and "),
        ("Coffee with Ann", "Coffee with "),
    ],
)
def test_only_names_are_replaced(text: str, kept: str) -> None:
    changed = renamed(text)

    assert kept in changed
    assert changed != text
    assert "someone else" not in changed
    assert len(changed.split()) == len(text.replace("New York", "York").split())


@pytest.mark.parametrize("text", ["likes tea", "Yesterday I slept", "The dog is old", "A. I! 7"])
def test_without_a_name_it_is_about_someone_else(text: str) -> None:
    assert renamed(text) == f"This is about someone else: {text}"


def test_a_stand_in_is_never_the_name_itself() -> None:
    stand_ins = ["Avery", "Brook", "Corin", "Dale", "Ellis", "Farrow", "Greer", "Hollis"]

    changed = [renamed(f"We met {name}") for name in stand_ins]

    assert all(f"We met {name}" != text for name, text in zip(stand_ins, changed, strict=True))


# ---- on the text's own statements


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("denied", "Ann is a doctor.", "Ann is not a doctor."),
        ("denied", "Ann went home.", "Ann never went home."),
        ("denied", "Ann also likes tea.", "Ann also never likes tea."),
        ("denied", "Ann isn't at home.", "Ann is at home."),
        ("denied", "Ann did not visit Rome.", "Ann did visit Rome."),
        ("denied", "tea for Ann", "It is not true that: tea for Ann"),
        ("date_shift", "Met on 20 January, 2023.", "Met on 6 February 2023."),
        ("date_shift", "Met on May 7th, 2023.", "Met on May 24th, 2023."),
        ("date_shift", "Met on May 26th, 2023.", "Met on June 12th, 2023."),
        ("date_shift", "Met on 2023-12-20.", "Met on 2024-01-06."),
        ("date_shift", "Between 26 March and Apr 1.", "Between 12 April and April 18."),
        ("date_shift", "In November 2022 or 2019.", "In April 2023 or 2022."),
        ("date_shift", "Yesterday, on Sunday", "Last week, on Wednesday"),
        ("date_shift", "On 30 February 2023.", "On 30 February 2023."),
        ("date_shift", "Room 2023b, call 555-2019", "Room 2023b, call 555-2019"),
        ("entity_swap", "Later Ann met Bob.", "Later Bob met Ann."),
        ("entity_swap", "The LGBTQ group met Ann.", "The LGBTQ group met Dale."),
        ("value_swap", "Her mother has two dogs.", "Her father has three cats."),
        ("value_swap", "A dog and an orange bulldog", "A cat and a pink bulldog"),
        ("value_swap", "Paid 12,500 on 7 May 2023", "Paid 12,503 on 7 May 2023"),
        ("value_swap", "Black Friday at 3.5", "Black Friday at 3.5"),
        ("value_swap", "The Black Friday at 1:56", "The Black Friday at 1:56"),
        ("paraphrase", "Ann likes it and won't", "Ann is fond of it and won't"),
        ("paraphrase", "It isn't on 7 May 2023", "It is not on May 7, 2023"),
        ("paraphrase", "On May 7th, 2023 she unlikes", "On 7th May 2023 she unlikes"),
    ],
)
def test_a_perturbation_by_hand(name: str, text: str, changed: str) -> None:
    assert PERTURBATIONS[name](text) == changed


def test_on_recorded_candidates_no_edit_cuts_a_word_and_one_always_applies(
    shared_data: Path,
) -> None:
    lines = (shared_data / "causal_locomo.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    texts_by_id = {
        (row["example_id"], memory["memory_id"]): memory["content"]
        for row in rows
        for memory in row["memory_bank"]
    }
    with (shared_data / "cmi_diagnostics.csv").open() as file:
        recorded = [texts_by_id[d["example_id"], d["memory_id"]] for d in csv.DictReader(file)]

    edits = [
        (text, edit) for text in recorded for editor in EDITORS.values() for edit in editor(text)
    ]

    assert len(recorded) == 261
    assert [edit for text, edit in edits if cuts_a_word(text, edit)] == []
    assert all(perturbations_for(text, seed=7, count=1) for text in recorded)


# ---- drawing


def test_every_perturbation_is_drawn_for_some_text() -> None:
    drawn = {perturbation_for(f"Ann likes {i} dogs in May 2023", seed=7) for i in range(64)}

    assert drawn == set(MEANINGFUL)


def test_only_what_changes_the_text_is_drawn() -> None:
    drawn = perturbations_for("tea for all", seed=7, count=9)

    assert set(drawn) == {"denied", "value_swap"}


def test_the_draw_depends_on_seed_and_text_alone() -> None:
    text = "Ann likes two dogs in May 2023"

    assert perturbation_for(text, seed=7) == perturbation_for(text, seed=7)
    assert len({perturbation_for(text, seed=seed) for seed in range(64)}) == len(MEANINGFUL)
    assert set(perturbations_for(text, seed=7, count=5)) == set(MEANINGFUL)
