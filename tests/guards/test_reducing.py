"""What a guard admitted, reduced: the answer stays, the decision says what was saved."""

from collections.abc import Callable

import msgspec

from assay.guards.budget import Limits
from assay.guards.protocols import Case, Completion, Decision, Judgement
from assay.guards.reducing import to_core
from assay.guards.reduction.context import text_tokens

from .support import TableModel, case, laboratory, say

CASE = case("Where?", *(f"record {i} in a few words" for i in range(4)))
EACH = text_tokens("record 0 in a few words")


def decided(admitted: str, *, flagged: int | None = None, of: Case = CASE) -> Decision:
    """``1`` admits and ``0`` withholds, candidate by candidate."""
    judgements = tuple(
        Judgement(
            record_id=candidate.record.id,
            admitted=mark == "1",
            flagged=i == flagged,
            reason="evidence",
            method="panel",
        )
        for i, (mark, candidate) in enumerate(zip(admitted, of.candidates, strict=True))
    )
    return Decision(method="panel", judgements=judgements, certificate="recovered")


def model(rule: Callable[[str, set[int]], bool]) -> TableModel:
    def answer(prompt: str) -> str:
        rendering, _, shown = prompt.partition(":")
        return "Lisbon" if rule(rendering, {int(i) for i in shown.split()}) else "Unknown"

    return TableModel(lambda prompt: say(answer(prompt)))


def marks(decision: Decision) -> str:
    return "".join("1" if j.admitted else "0" for j in decision.judgements)


async def test_spare_records_leave_the_prompt_and_the_saving_is_told() -> None:
    table = model(lambda _, s: 2 in s)

    found = await to_core(decided("1110"), CASE, laboratory(table))

    assert marks(found) == "0010"
    assert found.tokens_saved == 2 * EACH
    assert found.certificate == "recovered; reduced: 1-minimal, also in other words"
    assert found.judgements[0].reason == "The answer is the same without it."
    assert found.spent.evaluations == table.calls > 0


async def test_what_was_withheld_is_never_shown() -> None:
    table = model(lambda _, s: 2 in s)

    await to_core(decided("1010"), CASE, laboratory(table))

    assert not any("3" in p or "1" in p for p in table.prompts)


async def test_everything_stays_where_the_core_does_not_hold_in_other_words() -> None:
    table = model(lambda rendering, s: 2 in s and (rendering == "plain" or 0 in s))

    found = await to_core(decided("1110"), CASE, laboratory(table))

    assert (marks(found), found.tokens_saved) == ("1110", 0)
    assert found.certificate.endswith("not reduced: in other words the core answers differently")


async def test_a_budget_that_ends_before_the_confirmation_leaves_the_core() -> None:
    table = model(lambda _, s: 2 in s)
    confirmed = await to_core(decided("1110"), CASE, laboratory(table))
    calls = confirmed.spent.evaluations - 1

    found = await to_core(decided("1110"), CASE, laboratory(table, limits=Limits(calls=calls)))

    assert marks(found) == "0010"
    assert found.certificate == "recovered; reduced: 1-minimal"


async def test_doubtful_records_are_not_reduced() -> None:
    table = model(lambda _, s: 2 in s)

    found = await to_core(decided("1110", flagged=1), CASE, laboratory(table))

    assert (marks(found), table.calls) == ("1110", 0)
    assert "not reduced: doubtful records" in found.certificate


async def test_nothing_admitted_is_nothing_to_reduce() -> None:
    table = model(lambda _, s: not s)

    found = await to_core(decided("0000"), CASE, laboratory(table))

    assert (marks(found), table.calls) == ("0000", 0)
    assert found.certificate == "recovered; not reduced: there is nothing to leave out"


async def test_an_answer_cut_in_other_words_confirms_and_refutes_nothing() -> None:
    def answer(prompt: str) -> Completion:
        is_cut = prompt.startswith("paraphrase")
        found = say("Lisbon" if "2" in prompt else "Unknown")
        return msgspec.structs.replace(found, finish_reason="length") if is_cut else found

    found = await to_core(decided("1110"), CASE, laboratory(TableModel(answer)))

    assert marks(found) == "0010"
    assert found.certificate == "recovered; reduced: 1-minimal"
