"""What a run's page says where a guard could not decide."""

from assay.guards.protocols import Decision, Ledger
from assay.scenarios.policy_block import policy_lines, policy_section
from assay.scenarios.results import MethodResult
from assay.scenarios.runs import Row

DECIDED = Decision(method="cmi", judgements=())
FELL_BACK = Decision(
    method="cmi", judgements=(), fallback="admit_flagged", failure="unavailable: 503"
)


def result(*decisions: Decision) -> MethodResult:
    rows = [
        Row(
            example=f"e{i}",
            method="cmi",
            candidates=(),
            decision=decision,
            status="answered",
            answer="",
            spent=Ledger(),
            seconds=0.0,
        )
        for i, decision in enumerate(decisions)
    ]
    return MethodResult(metrics={}, costs={}, scores=[], rows=rows, families={})


def test_the_page_tells_how_often_which_policy_acted_and_why() -> None:
    section = policy_section({"cmi": result(DECIDED, FELL_BACK), "vector": result(DECIDED)})

    assert section is not None
    [row] = section.tables[0].rows
    assert [cell.text for cell in row] == ["cmi", "1", "admit_flagged", "unavailable: 503"]
    assert row[1].note == "of 2"


def test_without_a_failure_there_is_nothing_to_tell() -> None:
    assert policy_section({"cmi": result(DECIDED)}) is None
    assert policy_lines("cmi", DECIDED) == []


def test_the_card_of_an_example_names_the_policy() -> None:
    assert policy_lines("cmi", FELL_BACK) == [("cmi, by policy admit_flagged", "unavailable: 503")]
