"""Where the bank of a command is: a folder, or a database."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from assay.errors import ConfigError

BankPlace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Folder of the bank, or postgresql://...; by default in the user's data folder."
    ),
]
GivenBank: TypeAlias = Annotated[
    str, typer.Option("--bank", help="Folder of the bank, or postgresql://...; made if missing.")
]


def bank_at(given: str | None) -> Path | str:
    """The bank a command means: a folder as a path, a database as its URL."""
    from assay.runtime.paths import bank_path  # noqa: PLC0415  # --help stays fast
    from assay.stores.banks import is_in_database  # noqa: PLC0415

    if not given:
        return bank_path()
    return given if is_in_database(given) else Path(given)


def existing_bank(given: str | None) -> Path | str:
    """The same, of a command that makes none: opening a folder would.

    Raises:
        ConfigError: If there is no bank in the folder.
    """
    from assay.stores.bank import FILE_NAME, VECTORS_NAME  # noqa: PLC0415  # --help stays fast

    place = bank_at(given)
    # With its vectors only, opening tells what is missing.
    if isinstance(place, Path) and not any(
        (place / name).exists() for name in (FILE_NAME, VECTORS_NAME)
    ):
        raise ConfigError(f"no bank at {str(place)!r}; `assay chat --bank PATH` makes one")
    return place
