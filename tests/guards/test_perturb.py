"""Perturbations change every record, always in the same way, and never a part of a word."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.perturb import PERTURBATIONS, perturbation_for, renamed

NAMES = list(PERTURBATIONS)
texts = st.text(min_size=1, max_size=80).filter(str.strip)
sentences = st.lists(
    st.sampled_from(
        [
            "Ann",
            "O'Neil",
            "McCoy",
            "New York",
            "iPhone",
            "likes",
            "is",
            "May",
            "A",
            ".",
            "b-Ann",
            "Ann-Sofie",
        ]
    ),
    min_size=1,
    max_size=12,
).map(" ".join)


@pytest.mark.parametrize("name", NAMES)
@given(text=texts)
def test_every_perturbation_changes_every_text_alike_each_time(name: str, text: str) -> None:
    perturb = PERTURBATIONS[name]

    assert perturb(text) != text
    assert perturb(text) == perturb(text)


@pytest.mark.parametrize("name", ["negation", "temporal", "scope"])
def test_a_prefix_leaves_the_record_whole(name: str) -> None:
    assert PERTURBATIONS[name]("Ann likes tea").endswith(": Ann likes tea")


@given(text=sentences)
def test_a_name_is_replaced_as_a_whole_word_or_not_at_all(text: str) -> None:
    before, after = (
        re.findall(r"\S+", t) for t in (text.replace("New York", "New"), renamed(text))
    )
    stand_in = re.compile(r"Avery|Brook|Corin|Dale|Ellis|Farrow|Greer|Hollis")

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


def test_every_perturbation_is_drawn_for_some_text() -> None:
    drawn = {perturbation_for(f"text {i}", seed=7) for i in range(64)}

    assert drawn == set(NAMES)


def test_the_draw_depends_on_seed_and_text_alone() -> None:
    assert perturbation_for("Ann likes tea", seed=7) == perturbation_for("Ann likes tea", seed=7)
    assert len({perturbation_for("Ann likes tea", seed=seed) for seed in range(32)}) == len(NAMES)
