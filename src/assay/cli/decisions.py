"""A decision as people like to read it: what was admitted and withheld, why, and what it cost."""

import unicodedata
from collections.abc import Mapping, Sequence

from assay.cli.decision_trace import trace_lines
from assay.errors import RecordNotFound
from assay.guards.protocols import Decision, Judgement, Ledger
from assay.runtime.reply import PastDecision
from assay.stores.protocols import MemoryStore
from assay.stores.records import Namespace, RecordId

_GONE = "(forgotten)"


def plain(text: str) -> str:
    """A text for the terminal: control characters cannot move the cursor or clear the screen."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else " " for c in text
    )


def one_line(text: str, *, limit: int = 200) -> str:
    """The same on one line, cut visibly."""
    line = plain(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 4] + " ..."


async def texts_of(
    store: MemoryStore, namespace: Namespace, record_ids: Sequence[RecordId]
) -> dict[RecordId, str]:
    """The texts of those of these records that are still there."""
    found: dict[RecordId, str] = {}
    for record_id in record_ids:
        try:
            [record] = await store.get(namespace, [record_id])
        except RecordNotFound:
            continue
        found[record_id] = record.text
    return found


def decision_lines(past: PastDecision, texts: Mapping[RecordId, str]) -> list[str]:
    """A decision, line by line.

    Args:
        past: The decision.
        texts: Texts of its records; one that is missing was forgotten.
    """
    decision = past.decision
    heading = f"decision {past.id} by {decision.method}, {past.at:%Y-%m-%d %H:%M} UTC"
    lines = [heading, f"  asked: {one_line(past.question)}"]
    lines += _remarks(decision)
    lines += judgement_lines(decision.judgements, texts) or ["  no memory was proposed"]
    if decision.trace is not None:
        lines += trace_lines(decision.trace, decision.judgements)
    return [*lines, f"  spent: {spend_line(decision.spent)}"]


def judgement_lines(judgements: Sequence[Judgement], texts: Mapping[RecordId, str]) -> list[str]:
    """Two lines for each candidate: what, and why."""
    return [
        line
        for judgement in judgements
        for line in (
            f"  {_verdict(judgement):<9} {judgement.record_id}  "
            f"{one_line(texts.get(judgement.record_id, _GONE))}",
            f"            {one_line(judgement.reason)}{_effect(judgement)}",
        )
    ]


def spend_line(spent: Ledger) -> str:
    """What was spent, in words."""
    money = f", {spent.money:.4f} money" if spent.money else ""
    return (
        f"{spent.evaluations} questions ({spent.cache_hits} from the cache), {spent.live} calls, "
        f"{spent.rounds} rounds, {spent.tokens} tokens, {spent.seconds:.1f} s{money}"
    )


def _remarks(decision: Decision) -> list[str]:
    saved = decision.tokens_saved
    remarks = {
        "verified": decision.certificate,
        "saved": f"about {saved} tokens of the prompt" if saved else "",
        "policy": decision.fallback,
        "because": decision.failure,
        "to ask": decision.ask,
    }
    return [f"  {name}: {one_line(text)}" for name, text in remarks.items() if text]


def _verdict(judgement: Judgement) -> str:
    if judgement.flagged:
        return "doubtful"
    return "admitted" if judgement.admitted else "withheld"


def _effect(judgement: Judgement) -> str:
    evidence = f"; evidence: {', '.join(judgement.evidence)}" if judgement.evidence else ""
    effect = "" if judgement.effect is None else f"; effect {judgement.effect:+.2f}"
    return f" [{judgement.method}{effect}{plain(evidence)}]"
