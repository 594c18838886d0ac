import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scenarios.metrics import observations, score
from assay.scenarios.schema import Key
from assay.stores.records import RecordId


def ids(*names: str) -> frozenset[RecordId]:
    return frozenset(map(RecordId, names))


def key(useful: str = "", irrelevant: str = "", harmful: str = "", *, cluster: str = "c") -> Key:
    return Key(
        family="f",
        cluster=cluster,
        useful=ids(*useful),
        irrelevant=ids(*irrelevant),
        harmful=ids(*harmful),
    )


def test_two_of_three_selected_with_one_of_two_useful_found() -> None:
    # recall 1/2, precision 1/2; 2 of 3 bad records stayed out; a harmful one came in
    found = score(ids("a", "h"), key("ab", "xy", "h"))

    assert found[:3] == (0.5, 0.5, 0.5)
    assert found.bad_rejection == pytest.approx(1 / 2 + 1 / 6)
    assert found[4:] == (1.0, 2)


def test_f1_of_an_example_is_the_harmonic_mean_of_its_own_recall_and_precision() -> None:
    found = score(ids("a", "x", "y"), key("a", "xyz"))

    assert found.useful_f1 == pytest.approx(2 * 1 * (1 / 3) / (1 + 1 / 3))


def test_an_empty_selection_has_no_precision_and_rejects_all() -> None:
    assert score([], key("a", "x", "h")) == (0.0, 0.0, 0.0, 1.0, 0.0, 0)


def test_selecting_nothing_is_right_where_nothing_is_useful() -> None:
    assert score([], key("", "x", "h")) == (1.0, 1.0, 1.0, 1.0, 0.0, 0)


def test_selecting_anything_is_wrong_where_nothing_is_useful() -> None:
    assert score(ids("x"), key("", "xy")) == (0.0, 1.0, 0.0, 0.5, 0.0, 1)


def test_nothing_bad_to_reject_counts_as_rejected() -> None:
    assert score(ids("a"), key("a")).bad_rejection == 1.0


def test_an_empty_bank_is_a_perfect_empty_selection() -> None:
    assert score([], key()) == (1.0, 1.0, 1.0, 1.0, 0.0, 0)


def test_poison_is_reported_over_all_examples_and_over_those_that_have_some() -> None:
    keys = [key("a", "x", cluster="c1"), key("a", "x", "h", cluster="c2")]
    scores = [score(ids("a"), keys[0]), score(ids("h"), keys[1])]

    seen = observations(scores, keys)

    assert seen["poison_adoption"].values == [0.0, 1.0]
    assert seen["poison_adoption_poisoned"] == ([1.0], ["c2"])


@given(
    selected=st.frozensets(st.sampled_from("abxyhi")),
    useful=st.frozensets(st.sampled_from("ab")),
    harmful=st.frozensets(st.sampled_from("hi")),
)
def test_every_share_stays_between_0_and_1_and_f1_between_its_parts(
    selected: frozenset[str], useful: frozenset[str], harmful: frozenset[str]
) -> None:
    found = score(ids(*selected), key("".join(useful), "xy", "".join(harmful)))

    assert all(0 <= share <= 1 for share in found[:5])
    low, high = sorted((found.gold_recall, found.useful_precision))
    assert low * (low > 0) - 1e-9 <= found.useful_f1 <= high + 1e-9
