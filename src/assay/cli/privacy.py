"""``assay erase`` and ``assay export``: what a person may ask of who keeps their memories."""

import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.embedders import embedder_for, mismatch_names_the_option
from assay.cli.options import BankEmbedderOption, JsonOption
from assay.cli.places import BankPlace, existing_bank
from assay.errors import AssayError, BusError, ConfigError, RecordNotFound

if TYPE_CHECKING:
    from assay.runtime.facade import Runtime
    from assay.stores.erasure import Receipt
    from assay.stores.records import Namespace

_OUTSIDE = (
    "full text and vectors went with the records and turns; "
    "cassettes, exports and backups are files of their own and were not looked at: remove them; "
    "a backup restored over this bank leaves out what was erased from it"
)


def erase(  # noqa: PLR0913  # a command's options
    *,
    bank: BankPlace = None,
    subject: Annotated[str, typer.Option(help="All that is kept of this user.")] = "",
    tenant: Annotated[
        str, typer.Option(help="All users of this tenant; with --subject: that one.")
    ] = "",
    record: Annotated[str, typer.Option(help="This record, with all that holds its words.")] = "",
    bus: Annotated[
        str, typer.Option(help="nats://...: what waits there goes, too; default: serve.bus.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    embedder: BankEmbedderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a user, a tenant or a record from a bank for good, and print the receipt."""
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.stores.banks import shown  # noqa: PLC0415

    if not (subject or tenant or record):
        raise ConfigError("nothing to erase: pass --subject, --tenant or --record")
    if record and tenant:
        raise ConfigError("--record goes with --subject or alone, not with --tenant")
    place = existing_bank(bank)
    used = _bus_beside(place, bus)
    chosen = embedder_for(place, embedder)
    what = f"record {record}" if record else f"all of {subject or f'tenant {tenant}'}"
    if not yes and not _agreed(f"Erase {what} from {shown(place)} for good?"):
        raise typer.Exit(1)

    async def run() -> "list[Receipt]":
        async with _opened(place, chosen, used) as runtime, _half_done():
            if record:
                return [await _erase_record(runtime, record, subject)]
            if subject:
                return [await runtime.erase_user(_known(tenant, subject))]
            return await runtime.erase_tenant(tenant)

    with mismatch_names_the_option():
        receipts = anyio.run(run)
    _print(receipts, shown(place), as_json=as_json)


def export(
    *,
    bank: BankPlace = None,
    subject: Annotated[str, typer.Option(help="Of which user.", show_default=False)],
    tenant: Annotated[str, typer.Option(help="Of a service with tenants: whose user.")] = "",
    embedder: BankEmbedderOption = None,
) -> None:
    """Print all that a bank holds of a user, decisions included, as one JSON object."""
    import anyio  # noqa: PLC0415  # --help stays fast
    import msgspec  # noqa: PLC0415

    from assay.cli.consent import say_forbidden  # noqa: PLC0415
    from assay.runtime.exporting import SubjectExport, export_subject  # noqa: PLC0415
    from assay.stores.banks import shown  # noqa: PLC0415

    place = existing_bank(bank)
    chosen = embedder_for(place, embedder)

    async def run() -> SubjectExport:
        async with _opened(place, chosen) as runtime:
            return await export_subject(runtime, _known(tenant, subject))

    with mismatch_names_the_option():
        found = anyio.run(run)
    say_forbidden(found.forbidden)
    told = {"bank": shown(place)} | msgspec.to_builtins(found)
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")


def _bus_beside(place: Path | str, bus: str) -> str | None:
    """The bus that may hold what users said: the one given, else that of the settings."""
    from assay.runtime.settings import Settings  # noqa: PLC0415

    if bus or isinstance(place, Path):
        return bus or None
    return Settings.load().serve.bus or None


def _agreed(question: str) -> bool:
    # Not typer.confirm: it puts a blank on stdout, where --json promises one object only.
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    agreed = sys.stdin.readline().strip().casefold() in {"y", "yes"}
    if not agreed:
        typer.echo("nothing was erased", err=True)
    return agreed


@asynccontextmanager
async def _opened(
    bank: Path | str, embedder: str, bus: str | None = None
) -> "AsyncGenerator[Runtime]":
    from assay.runtime.wiring import open_runtime  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        opening = open_runtime(
            model="scripted", guard="no_memory", bank=bank, embedder=embedder, bus=bus
        )
        try:
            runtime = await stack.enter_async_context(opening)
        except BusError as error:
            raise BusError(f"{error}; nothing was erased") from error
        yield runtime


@asynccontextmanager
async def _half_done() -> "AsyncGenerator[None]":
    """The bank comes first: where the bus failed, it is erased already."""
    try:
        yield
    except BusError as error:
        raise BusError(
            f"{error}; the bank is erased, what waits on the bus is not: erase again when it is back"
        ) from error


async def _erase_record(runtime: "Runtime", record: str, subject: str) -> "Receipt":
    from assay.stores.records import RecordId  # noqa: PLC0415

    users = [subject] if subject else await runtime.bank.eraser.namespaces()
    holders: list[str] = []
    for user in users:
        try:
            await runtime.bank.store.get(_known("", user), [RecordId(record)])
        except RecordNotFound:
            continue
        holders.append(user)
    if len(holders) != 1:
        found = f"{len(holders)} users have it; pass --subject" if holders else "nobody has it"
        raise AssayError(f"record {record!r} is not one record of the bank: {found}")
    return await runtime.forget(holders[0], record)


def _known(tenant: str, subject: str) -> "Namespace":
    from assay.runtime.limits import checked_user, namespace_of  # noqa: PLC0415

    try:
        return namespace_of(tenant, subject) if tenant else checked_user(subject)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _print(receipts: "list[Receipt]", bank: str, *, as_json: bool) -> None:
    import msgspec  # noqa: PLC0415

    told = {
        "bank": bank,
        "subjects": len(receipts),
        "records": sum(len(r.record_ids) for r in receipts),
        "caches": sum(r.cache_rows for r in receipts),
        "archive": sum(r.turns for r in receipts),
        "journal": sum(r.entries for r in receipts),
        "outside": _OUTSIDE,
        "receipts": receipts,
    }
    if not any(v for k, v in told.items() if isinstance(v, int) and k != "subjects"):
        typer.echo("nothing of it was in the bank: see that the name is spelled right", err=True)
    if as_json:
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        return
    from rich.console import Console  # noqa: PLC0415

    from assay.cli.tables import FigureTable  # noqa: PLC0415

    places = [(k, f"{v:,}") for k, v in told.items() if isinstance(v, int)]
    console = Console()
    console.print(FigureTable(title=f"Erased from {bank}", head=("place", "rows"), rows=places))
    for receipt in receipts:
        for record_id, sealed in zip(receipt.record_ids, receipt.hashes, strict=True):
            console.print(f"{record_id} {sealed}", markup=False)
    console.print(_OUTSIDE, markup=False)
