"""How a scenario went, as people read it: which record, which decision, what was expected, the cost."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.guards.protocols import Judgement, Ledger
from assay.scenarios.cases.checking import Finding, verdict
from assay.scenarios.cases.playing import Played, Taken

_LONGEST = 160


def told(played: Played, found: Sequence[Finding]) -> str:
    """A failure: each unmet expectation, then each turn it is about with its whole decision.

    Args:
        played: The scenario as it went.
        found: What was not met; at least one.
    """
    case, file = played.file.case, played.file
    lines = [_headline(found[0]), "", f"{shown_path(file.path)}:{file.line}: {case.scenario}"]
    lines += [f"  {case.about}"] if case.about else []
    if played.refused:
        lines += ["", f"the budget of {played.budget} evaluations is too small: {played.refused}"]
    for finding in found:
        lines += ["", *_finding(finding)]
    about = {finding.turn for finding in found}
    for taken in played.taken:
        if taken.number in about:
            lines += ["", *_turn(taken, case.user)]
    return "\n".join([*lines, "", f"cost of the scenario: {spending(played.spent)}"])


def spending(spent: Ledger) -> str:
    """What was spent, in words."""
    return (
        f"{spent.evaluations:,} evaluations ({spent.cache_hits:,} known before), "
        f"{spent.live:,} calls, {spent.rounds:,} rounds, {spent.tokens:,} tokens"
    )


def shown_path(path: Path) -> str:
    """A path as it can be passed again from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _headline(first: Finding) -> str:
    """The first line, which test runners show by itself."""
    record = f"record {first.record!r} " if first.record else ""
    came = first.came.splitlines()[0]
    return _short(f"turn {first.turn}: {record}expected {first.expected}, came {came}")


def _finding(finding: Finding) -> Iterator[str]:
    record = f" record {finding.record!r}:" if finding.record else ""
    yield f"turn {finding.turn}:{record} expected {finding.expected}"
    yield f"  came: {_indented(finding.came)}"
    if finding.judgement is not None:
        yield f"  because: {_reason(finding.judgement)}"
    if finding.do:
        yield f"  what to do: {finding.do}"


def _turn(taken: Taken, user: str) -> Iterator[str]:
    turn = taken.turn
    did = turn.say if turn.do is None else f"({turn.do} {turn.record})"
    yield f"turn {taken.number}, {taken.at:%Y-%m-%d %H:%M}: {turn.user or user}: {_short(did)}"
    if taken.reply is None:
        return
    decision = taken.reply.decision
    yield f"  decision of {decision.method}:"
    for judgement in decision.judgements:
        name = taken.names[judgement.record_id]
        text = taken.texts.get(name, "")
        yield f"    {verdict(judgement):<9} {name}{f': {_short(text)}' if text else ''}"
        yield f"              {_reason(judgement)}"
    if not decision.judgements:
        yield "    no record was proposed"
    yield f"  answer: {_short(taken.reply.text)}"
    yield f"  cost: {spending(taken.spent)}"


def _reason(judgement: Judgement) -> str:
    effect = "" if judgement.effect is None else f"; effect {judgement.effect:+.2f}"
    undecided = "" if judgement.decided else "; undecided"
    evidence = f"; evidence: {', '.join(judgement.evidence)}" if judgement.evidence else ""
    return f"{judgement.reason} [{judgement.method}{effect}{undecided}{evidence}]"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 4] + " ..."


def _indented(text: str) -> str:
    return "\n    ".join(text.splitlines())
