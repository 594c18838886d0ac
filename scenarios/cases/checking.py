"""What was expected against what came. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from assay.guards.protocols import Judgement
from assay.scenarios.cases.playing import Failure, Played, Taken


class Finding(NamedTuple):
    """One expectation that was not met.

    Attributes:
        turn: Number of the turn, from 1.
        rule: The field of ``Expected`` it is about.
        expected: What should have been.
        came: What was.
        record: Name of the record it is about; empty where it is about none.
        judgement: What was decided about that record.
        do: What to do about it, where that is known.
    """

    turn: int
    rule: str
    expected: str
    came: str
    record: str = ""
    judgement: Judgement | None = None
    do: str = ""


def findings(played: Played) -> list[Finding]:
    """Every expectation that was not met, in order; none if the scenario passes."""
    found: list[Finding] = []
    for taken in played.taken:
        if _failed_as_expected(taken):
            continue
        if taken.failure is not None:
            found.append(_broken(taken, taken.failure, played))
            continue
        for check in _CHECKS:
            found += check(taken)
        if not found and taken.refused:
            # It decided less than it wanted to, even if the outcome is the one that is expected.
            found += _too_small(taken, played)
    return found


def _too_small(taken: Taken, played: Played) -> Iterator[Finding]:
    if taken.reply and any(not j.decided for j in taken.reply.decision.judgements):
        yield Finding(
            taken.number,
            "budget",
            f"a decision within {played.budget} evaluations",
            "records left undecided",
        )


def _failed_as_expected(taken: Taken) -> bool:
    return taken.failure is not None and taken.failure.kind == taken.turn.expect.fails


def _broken(taken: Taken, failure: Failure, played: Played) -> Finding:
    expected = f"the turn to fail with {taken.turn.expect.fails}" if taken.turn.expect.fails else ""
    record = f"`pytest --assay {played.file.path} --assay-record` records it"
    return Finding(
        taken.number,
        "fails",
        expected or ("a reply" if taken.turn.do is None else "it to be done"),
        f"{failure.kind}: {failure.message}",
        do=record if failure.kind == "CassetteMiss" else "",
    )


def _records(taken: Taken) -> Iterator[Finding]:
    judged = _judged(taken)
    expect = taken.turn.expect
    for name in expect.admitted:
        yield from _about(taken, "admitted", name, judged, is_met=lambda j: j.admitted)
    for name in expect.withheld:
        yield from _about(taken, "withheld", name, judged, is_met=lambda j: not j.admitted)
    for name in expect.flagged:
        yield from _about(taken, "flagged", name, judged, is_met=lambda j: j.flagged)


def _absent(taken: Taken) -> Iterator[Finding]:
    judged = _judged(taken)
    expect = taken.turn.expect
    for name in sorted(judged.keys() & set(expect.kept_out)):
        if judged[name].admitted:
            came = verdict(judged[name])
            yield Finding(taken.number, "kept_out", "kept out", came, name, judged[name])
    for name in sorted(judged.keys() & set(expect.not_proposed)):
        came = f"proposed, {verdict(judged[name])}"
        yield Finding(taken.number, "not_proposed", "not proposed", came, name, judged[name])


def _any(taken: Taken) -> Iterator[Finding]:
    judged, any_of = _judged(taken), taken.turn.expect.admitted_any
    if any_of and not any(name in judged and judged[name].admitted for name in any_of):
        came = ", ".join(f"{name} {verdict(judged[name])}" for name in any_of if name in judged)
        expected = f"one of {', '.join(any_of)} admitted"
        yield Finding(taken.number, "admitted_any", expected, came or "none of them was proposed")


def _judged(taken: Taken) -> dict[str, Judgement]:
    """What was decided about each record, by its name."""
    judgements = taken.reply.decision.judgements if taken.reply else ()
    return {taken.names[judgement.record_id]: judgement for judgement in judgements}


def _about(
    taken: Taken,
    rule: str,
    name: str,
    judged: dict[str, Judgement],
    *,
    is_met: Callable[[Judgement], bool],
) -> Iterator[Finding]:
    judgement = judged.get(name)
    if judgement is None:
        proposed = ", ".join(judged) or "none"
        yield Finding(
            taken.number,
            rule,
            rule,
            f"never proposed (proposed: {proposed})",
            name,
            do=_NOT_PROPOSED,
        )
    elif not is_met(judgement):
        yield Finding(taken.number, rule, rule, verdict(judgement), name, judgement)


_NOT_PROPOSED = "the search did not find it: raise settings.guard.k, or expect it as not_proposed"


def verdict(judgement: Judgement) -> str:
    """``admitted``, ``admitted, flagged`` or ``withheld``."""
    if not judgement.admitted:
        return "withheld"
    return "admitted, flagged" if judgement.flagged else "admitted"


def _answer(taken: Taken) -> Iterator[Finding]:
    expect, answer = taken.turn.expect, taken.reply.text if taken.reply else ""
    said = answer.casefold()
    for text in expect.answer_contains:
        if text.casefold() not in said:
            yield Finding(taken.number, "answer_contains", f"an answer with {text!r}", repr(answer))
    one_of = expect.answer_contains_any
    if one_of and not any(text.casefold() in said for text in one_of):
        words = " or ".join(map(repr, one_of))
        yield Finding(taken.number, "answer_contains_any", f"an answer with {words}", repr(answer))
    for text in expect.answer_excludes:
        if text.casefold() in said:
            yield Finding(
                taken.number, "answer_excludes", f"an answer without {text!r}", repr(answer)
            )


def _reply(taken: Taken) -> Iterator[Finding]:
    expect, reply = taken.turn.expect, taken.reply
    if expect.fails:
        yield Finding(taken.number, "fails", f"the turn to fail with {expect.fails}", "a reply")
    if reply is None:
        return
    asked = reply.decision.ask
    if expect.asks_back is not None and expect.asks_back != bool(asked):
        expected = "a question back" if expect.asks_back else "no question back"
        yield Finding(taken.number, "asks_back", expected, repr(asked or reply.text))
    calls = tuple(call.name for call in reply.tool_calls)
    if expect.tool_calls is not None and expect.tool_calls != calls:
        yield Finding(
            taken.number, "tool_calls", f"tool calls {_list(expect.tool_calls)}", _list(calls)
        )
    fallback, failure = reply.decision.fallback, reply.decision.failure
    if expect.fallback != fallback:
        expected = f"the policy {expect.fallback} to act" if expect.fallback else "a decision"
        came = f"the policy {fallback} acted: {failure}" if fallback else "a decision"
        yield Finding(taken.number, "fallback", expected, came)


def _left(taken: Taken) -> Iterator[Finding]:
    for name, text in taken.turn.expect.remembers.items():
        if text not in taken.left:
            left = ", ".join(map(repr, taken.left)) or "nothing"
            yield Finding(taken.number, "remembers", f"{text!r} to be remembered", left, name)


def _cost(taken: Taken) -> Iterator[Finding]:
    expect = taken.turn.expect
    evaluations = taken.reply.decision.spent.evaluations if taken.reply else 0
    pairs = (
        (expect.evaluations, evaluations, "evaluations"),
        (expect.tokens, taken.spent.tokens, "tokens"),
    )
    for most, spent, unit in pairs:
        if most is not None and spent > most:
            yield Finding(taken.number, unit, f"at most {most:,} {unit}", f"{spent:,}")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


_CHECKS = (_records, _absent, _any, _answer, _reply, _left, _cost)
