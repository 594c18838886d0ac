"""What a word is, and how rows are sealed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stores.rows import seal
from assay.stores.words import MOST_QUERY_WORDS, query_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rex's 2nd ball, please!", ["rex", "s", "2nd", "ball", "please"]),
        ("snake_case-and.dots", ["snake", "case", "and", "dots"]),
        ("Caf\u00e9 \u00c5SA", ["cafe", "asa"]),
        ("\u5bff\u53f8\u304c good", ["\u5bff", "\u53f8", "\u304c", "good"]),
        ("Stra\u00dfe", ["strasse"]),
        ("\uff32\uff25\uff38", ["rex"]),
        ("", []),
    ],
)
def test_words_are_folded_and_split(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_same_words_beside_an_accent(text: str) -> None:
    assert words(text) == words(text + " \u00e9")[:-1]


@given(st.text())
def test_the_words_of_words_are_the_same(text: str) -> None:
    assert words(" ".join(words(text))) == words(text)


def test_a_query_keeps_its_first_distinct_words() -> None:
    text = "rex rex " + " ".join(f"w{n}" for n in range(200))

    assert query_words(text)[:3] == ["rex", "w0", "w1"]
    assert len(query_words(text)) == MOST_QUERY_WORDS


def test_a_seal_tells_parts_apart() -> None:
    assert seal("ab", b"c") != seal("a", b"bc")
    assert seal("ab", b"c") == seal(b"ab", "c")
    assert len(seal()) == 8
