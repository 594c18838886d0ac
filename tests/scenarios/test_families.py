"""The eight families: reproducible, balanced, and with nothing but the talk to tell truth by."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scenarios.families import FAMILIES, generate
from assay.scenarios.schema import Scenario
from assay.stores.records import RecordId


def test_one_seed_gives_the_same_bytes_at_any_size() -> None:
    long, short = generate(40, seed=11), generate(16, seed=11)

    assert msgspec.json.encode(_plain(long[:16])) == msgspec.json.encode(_plain(short))
    assert msgspec.json.encode(_plain(short)) != msgspec.json.encode(_plain(generate(16, seed=12)))


def test_the_families_take_turns() -> None:
    assert [s.key.family for s in generate(16, seed=1)] == [*FAMILIES, *FAMILIES]


@pytest.mark.parametrize(
    ("family", "useful", "harmful"),
    [
        ("preference_update", 1, 1),
        ("context_specific_preference", 1, 1),
        ("procedural_memory", 1, 1),
        ("spurious_semantic_trap", 1, 1),
        ("conflicting_memories", 1, 1),
        ("poisoned_memory", 1, 2),
        ("multi_hop_memory", 2, 1),
        ("abstention", 0, 0),
    ],
)
def test_each_family_has_its_roles(family: str, useful: int, harmful: int) -> None:
    found = [s for s in generate(80, seed=3) if s.key.family == family]

    assert {(len(s.key.useful), len(s.key.harmful)) for s in found} == {(useful, harmful)}


def test_only_the_talk_tells_a_twin_from_the_truth() -> None:
    found = [s for s in generate(400, seed=5) if s.key.family == "conflicting_memories"]

    said = [
        (
            any(s.key.expected[0] in turn.text for turn in s.example.turns),
            any(_value(s, s.key.harmful) in turn.text for turn in s.example.turns),
        )
        for s in found
    ]

    assert all(truth for truth, _ in said)
    assert sum(false for _, false in said) <= len(said) / 4  # somebody else may share a value


def test_position_time_and_provenance_do_not_depend_on_the_role() -> None:
    twins = [s for s in generate(3200, seed=9) if s.key.harmful and len(s.key.harmful) == 1]

    first = Counter(_earlier(s, "position") for s in twins)
    older = Counter(_earlier(s, "time") for s in twins)
    sourced = Counter(
        _role(s, record.id)
        for s in twins
        for record in s.example.records
        if record.origin.source_turn is not None
    )

    assert 0.46 < first["useful"] / first.total() < 0.54
    assert 0.46 < older["useful"] / older.total() < 0.54
    assert 0.46 < sourced["harmful"] / len(twins) < 0.54


@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=1, max_value=24))
def test_any_seed_and_size_give_whole_scenarios(seed: int, size: int) -> None:
    scenarios = generate(size, seed=seed)

    assert len({s.example.id for s in scenarios}) == size
    for scenario in scenarios:
        roles = scenario.key.useful | scenario.key.harmful | scenario.key.irrelevant
        assert roles == {record.id for record in scenario.example.records}
        assert all(turn.at < scenario.example.now for turn in scenario.example.turns)
        assert "{" not in scenario.example.question


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        generate(0, seed=1)


def _plain(scenarios: list[Scenario]) -> list[object]:
    return [
        [s.example, sorted(s.key.useful), sorted(s.key.harmful), s.key.expected] for s in scenarios
    ]


def _value(scenario: Scenario, ids: frozenset[RecordId]) -> str:
    [text] = [record.text for record in scenario.example.records if record.id in ids]
    twins = [
        r.text
        for r in scenario.example.records
        if r.id in scenario.key.useful | scenario.key.harmful
    ]
    [other] = [twin for twin in twins if twin != text]
    mine, theirs = text.rstrip(".").split(), other.rstrip(".").split()
    return " ".join(word for word in mine if word not in theirs)


def _earlier(scenario: Scenario, by: str) -> str:
    twins = [r for r in scenario.example.records if _role(scenario, r.id) != "irrelevant"][:2]
    if by == "time":
        twins.sort(key=lambda record: record.ingested_at)
    return _role(scenario, twins[0].id)


def _role(scenario: Scenario, record: RecordId) -> str:
    if record in scenario.key.useful:
        return "useful"
    return "harmful" if record in scenario.key.harmful else "irrelevant"
