"""The model stage's tasks and prompts: what is asked, word for word."""

from collections import Counter

import pytest

from assay.errors import ScenarioError
from assay.guards.coalitions import Coalition, coalition_of, grand, subsets
from assay.guards.protocols import Ask
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.jointcorebench.conditions import HORIZONS, Condition
from assay.scenarios.jointcorebench.model_tasks import subset
from assay.scenarios.jointcorebench.prompting import (
    INTERFACES,
    REPRESENTATIONS,
    Cell,
    Interface,
    Representation,
    form_of,
    shown_values,
)
from assay.scenarios.jointcorebench.rules import FAMILIES, Family
from assay.scenarios.jointcorebench.statements import fields_of, statement_of

from .support_jointcore_model import tasks

ALL = grand(16)


class Counting(ScriptedModel):
    """Has a tokenizer, by which every prompt is this long."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens

    def count_tokens(self, messages: object) -> int:
        return self.tokens


def of(family: Family, size: int) -> Condition:
    return next(t for t in tasks() if (t.task.family, t.support_size) == (family, size))


def asked(condition: Condition, cell: Cell, retained: Coalition = ALL) -> str:
    form = form_of(condition, cell, ScriptedModel())
    return form.render(Ask(retained)).messages[-1].content


def contradictions(representation: Representation) -> Counter[str]:
    """Subsets of the support by family where the printed text contradicts retention."""
    cell = Cell(representation, "boolean")
    return Counter(
        condition.task.family
        for condition in tasks()
        for retained in subsets(coalition_of(condition.task.support))
        if statement_of(condition.task).holds(shown_values(condition, cell, retained))
        is not condition.task.rule(retained)
    )


def test_there_are_432_tasks_in_published_order() -> None:
    found = tasks()

    assert len({task.id for task in found}) == 432
    assert [task.task.family for task in found[::48]] == list(FAMILIES)
    assert [task.block for task in found[:5]] == [0, 1, 2, 3, 0]
    assert [task.horizon for task in found[:4]] == list(HORIZONS)
    assert found[0].id == "orders|single_variable|n=16|s=2|h=1|b=0|26082901"


def test_the_robustness_subset_is_every_fourth_task() -> None:
    found = tasks()

    assert subset(found, 108) == found[::4]
    assert subset(found, 27) == found[::16]
    assert {task.task.family for task in subset(found, 27)} == set(FAMILIES)


@pytest.mark.parametrize("count", [0, 433])
def test_a_subset_that_does_not_exist_is_refused(count: int) -> None:
    with pytest.raises(ScenarioError, match=f"from 1 to 432 tasks, got {count}"):
        subset(tasks(), count)


@pytest.mark.parametrize(
    ("family", "printed"),
    [
        ("single_variable", ["authorization=ALLOW"]),
        ("redundant_or", [f"approval_{i}=ALLOW" for i in (1, 2, 3, 4)]),
        ("synergy_xor", ["key_flag_1=ON", *(f"key_flag_{i}=OFF" for i in (2, 3, 4))]),
        (
            "synergy_and",
            ["case_id=MATCH", "current_status=CONFIRMED", "policy_version=CURRENT", "approval=ALLOW"],
        ),
        (
            "multiple_minimal_sets",
            [f"channel_{c}_{i}=VALID" for c in "ab" for i in (1, 2)],
        ),
        (
            "harmful_stale",
            [
                "current_authorization=ALLOW",
                "support_1=VALID",
                "support_2=VALID",
                "stale_policy=BLOCK",
            ],
        ),
    ],
)  # fmt: skip
def test_support_records_have_the_published_names_and_values(
    family: Family, printed: list[str]
) -> None:
    task = of(family, 4).task

    fields = fields_of(task)

    assert [f"{fields[i].name}={fields[i].value}" for i in task.support] == printed


def test_the_proxy_is_urgent_and_the_rest_are_notes() -> None:
    task = of("proxy_confounded", 2).task

    printed = [f"{field.name}={field.value}" for field in fields_of(task)]

    assert printed.count("historical_priority_proxy=URGENT") == 1
    assert sum(line.startswith("context_note_") for line in printed) == 13


@pytest.mark.parametrize("representation", ["unknown", "pending"])
def test_masked_records_leave_no_contradiction(representation: Representation) -> None:
    assert not contradictions(representation)


@pytest.mark.parametrize("representation", ["deletion", "counterfactual"])
def test_gone_or_turned_records_contradict_retention_where_one_flag_must_be_on(
    representation: Representation,
) -> None:
    assert set(contradictions(representation)) == {"synergy_xor"}


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_every_condition_is_true_of_all_records(representation: Representation) -> None:
    cell = Cell(representation, "boolean")

    assert all(statement_of(t.task).holds(shown_values(t, cell, ALL)) for t in tasks())


@pytest.mark.parametrize(
    ("representation", "lines"),
    [
        ("unknown", ["key_flag_1=UNKNOWN", "key_flag_2=UNKNOWN", "context_note_0=UNKNOWN"]),
        ("pending", ["key_flag_1=PENDING", "key_flag_2=PENDING", "context_note_0=PENDING"]),
        ("counterfactual", ["key_flag_1=OFF", "key_flag_2=ON", "context_note_0=INVALID"]),
        ("deletion", ["(none)"]),
    ],
)
def test_an_omitted_record_is_shown_as_its_representation_says(
    representation: Representation, lines: list[str]
) -> None:
    prompt = asked(of("synergy_xor", 2), Cell(representation, "boolean"), Coalition(0))

    assert set(lines) <= set(prompt.splitlines())
    assert len(prompt.splitlines()) == (4 + 16 if representation != "deletion" else 5)


@pytest.mark.parametrize("interface", INTERFACES)
def test_prompts_of_one_task_share_all_that_precedes_the_first_change(interface: Interface) -> None:
    condition = of("synergy_and", 4)
    last = condition.record_order[-1]

    whole = asked(condition, Cell("unknown", interface))
    less = asked(condition, Cell("unknown", interface), Coalition(ALL & ~(1 << last)))

    changed = next(i for i, (a, b) in enumerate(zip(whole, less, strict=False)) if a != b)
    assert whole[:changed].count("\n") == 3 + 15


def test_labels_are_balanced_and_a_and_b_do_not_follow_the_orientation() -> None:
    forms = [form_of(task, Cell("unknown", "ab"), ScriptedModel()) for task in tasks()]

    combined = Counter((form.right, form.actions["A"]) for form in forms)

    assert len(combined) == 4
    assert min(combined.values()) > 432 / 4 * 0.7


def test_yes_means_the_right_action() -> None:
    for_yes = form_of(tasks()[0], Cell("unknown", "boolean"), ScriptedModel())

    assert for_yes.actions == {"YES": for_yes.right, "NO": for_yes.wrong}
    assert {for_yes.right, for_yes.wrong} == {"EXECUTE", "HOLD"}


def test_a_prompt_over_the_cap_is_an_error() -> None:
    form = form_of(of("multiple_minimal_sets", 4), Cell("unknown", "ab"), Counting(769))

    with pytest.raises(ScenarioError, match="at most 768 tokens, got 769; nothing is cut"):
        form.render(Ask(ALL))


def test_a_prompt_at_the_cap_is_asked() -> None:
    form = form_of(of("multiple_minimal_sets", 4), Cell("unknown", "ab"), Counting(768))

    assert form.render(Ask(ALL)).messages


def test_a_model_that_counts_bytes_is_held_to_the_estimate() -> None:
    model = ScriptedModel()
    form = form_of(of("multiple_minimal_sets", 4), Cell("counterfactual", "ab"), model)

    messages = form.render(Ask(ALL)).messages

    assert model.count_tokens(messages) > 768
