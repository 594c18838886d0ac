"""``assay bank backup`` and ``assay bank restore``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import JsonOption
from assay.cli.places import local_path

if TYPE_CHECKING:
    from assay.stores.backup import Copied

BankArgument = Annotated[
    str, typer.Argument(help="Folder of the bank, or postgresql://...", show_default=False)
]
FileArgument = Annotated[str, typer.Argument(help="File of the backup.", show_default=False)]


def backup(path: BankArgument, file: FileArgument, *, as_json: JsonOption = False) -> None:
    """Write a bank into one file; it may be in use meanwhile.

    A damaged bank is not copied: `assay bank salvage` brings back what is intact.
    """
    target = local_path(file)
    copied = _database_backed_up(path, target) if _is_url(path) else _backed_up(Path(path), target)
    _print(copied, f"{copied.records:,} records, {copied.bytes:,} bytes in {file}", as_json)


def restore(file: FileArgument, path: BankArgument, *, as_json: JsonOption = False) -> None:
    """Make a bank what a backup holds; what was erased from it since stays erased.

    Nobody may have the bank open.
    """
    from assay.stores.banks import shown  # noqa: PLC0415  # --help stays fast

    source = local_path(file)
    copied = _database_restored(source, path) if _is_url(path) else _restored(source, Path(path))
    place = shown(path)
    said = f"{copied.records:,} records in {place}; {copied.erased:,} erased since were left out"
    _print(copied, said, as_json)


def _is_url(path: str) -> bool:
    from assay.stores.banks import is_in_database  # noqa: PLC0415  # --help stays fast

    return is_in_database(path)


def _backed_up(path: Path, file: Path) -> "Copied":
    from assay.stores.backup import back_up  # noqa: PLC0415  # --help stays fast

    _require_whole(path)
    return back_up(path, file)


def _database_backed_up(url: str, file: Path) -> "Copied":
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.stores.banks import require_driver  # noqa: PLC0415

    require_driver()
    from assay.stores.postgres.backup import back_up  # noqa: PLC0415

    return anyio.run(back_up, url, file)


def _restored(file: Path, path: Path) -> "Copied":
    from assay.stores.backup import restore as restore_bank  # noqa: PLC0415  # --help stays fast

    return restore_bank(file, path)


def _database_restored(file: Path, url: str) -> "Copied":
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.stores.banks import require_driver  # noqa: PLC0415

    require_driver()
    from assay.stores.postgres.backup import restore as restore_bank  # noqa: PLC0415

    return anyio.run(restore_bank, file, url)


def _require_whole(path: Path) -> None:
    from assay.errors import StoreCorrupt  # noqa: PLC0415
    from assay.stores.inspection import inspect_bank  # noqa: PLC0415

    found = inspect_bank(path)
    rows = [damage for damage in found.damage if not damage.startswith("vectors")]
    if rows:
        raise StoreCorrupt(
            f"the bank {path} is damaged and was not copied: {rows[0]}; see `assay bank check`, "
            "then run `assay bank salvage`"
        )


def _print(copied: object, said: str, as_json: bool) -> None:  # noqa: FBT001  # the command's own flag
    import msgspec  # noqa: PLC0415  # --help stays fast

    line = msgspec.json.encode(copied).decode() if as_json else said
    sys.stdout.write(line + "\n")
