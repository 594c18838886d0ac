"""Words, denials and likeness by words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.evidence.denial import polarity
from assay.guards.evidence.relevance import EmbeddedMeasure, WordMeasure, shared_words
from assay.guards.evidence.text import content, fold, stem, stems, words
from assay.stores.embeddings import HashingEmbedder


def test_invisible_characters_hide_nothing() -> None:
    assert words("Door c\u200bode: 0\u200b0\u200b0\u200b0") == ["door", "code", "0000"]


def test_every_kind_of_apostrophe_is_one() -> None:
    assert words("Jon\u2019s didn\u00b4t") == words("Jon's didn't") == ["jon", "didn't"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painted", "painting"),
        ("running", "runs"),
        ("mom", "mother"),
        ("two", "2"),
        ("twice", "2"),
        ("stories", "story"),
        ("adopted", "adopting"),
        ("drove", "driving"),
    ],
)
def test_forms_of_one_word_meet(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_a_number_is_kept_with_what_it_counts() -> None:
    assert stems("three dogs for two years") == ["3", "dog", "3 dog", "2", "year", "2 year"]


def test_function_words_are_no_content() -> None:
    assert content(["She said that it was there", "and he was not"]) == frozenset()


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("James went running and didn't visit any bowling alley.", {"visit", "bowl", "alley"}),
        (
            "They haven't been going to cafes, parks, hiking spots.",
            {"going", "caf", "park", "hik", "spot"},
        ),
        ("He likes realistic novels rather than fantasy.", {"fantasy"}),
        ("She never smokes, but she drinks tea.", {"smok"}),
        ("I can't wait to see you!", set[str]()),
        ("John turned down Nike.", {"nik"}),
    ],
)
def test_a_denial_reaches_to_the_end_of_its_clause(text: str, denied: set[str]) -> None:
    assert polarity(text).denied == denied


def test_a_denial_reaches_no_further_than_seven_words() -> None:
    found = polarity("not alpha beta gamma delta epsilon zeta eta theta")

    assert "eta" in found.denied
    assert "theta" in found.affirmed


@given(st.text(max_size=300))
def test_any_text_has_words_and_polarity(text: str) -> None:
    assert content([text]) <= polarity(text).affirmed | polarity(text).denied | content(
        [fold(text)]
    )


def test_likeness_by_words_is_a_cosine() -> None:
    likeness = shared_words(["red bicycle", ""], ["red bicycle", "green boat"])

    assert likeness.tolist() == [[pytest.approx(1.0), 0.0], [0.0, 0.0]]


async def test_both_measures_give_the_same_shapes() -> None:
    given_texts = ("question", ["one", "two", "three"], ["turn"])

    by_words = await WordMeasure()(*given_texts)
    embedded = await EmbeddedMeasure(HashingEmbedder())(*given_texts)

    shapes = [(3,), (3, 3), (4, 1)]
    assert [array.shape for array in by_words] == shapes
    assert [array.shape for array in embedded] == shapes
    assert np.allclose(embedded.between, embedded.between.T)
