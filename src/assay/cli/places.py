"""Where the bank of a command is: a folder, or a database."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from assay.errors import ConfigError

BankPlace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Folder of the bank, or postgresql://...; default: serve.bank of the settings, else the "
        "user's data folder."
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


def default_bank(given: str | None) -> Path | str:
    """The same; without one, the bank that ``assay serve`` has by the settings.

    Raises:
        ConfigError: If the settings cannot be read.
    """
    from assay.runtime.settings import Settings  # noqa: PLC0415  # --help stays fast

    return bank_at(given or Settings.load().serve.bank)


def local_path(given: str) -> Path:
    """A file or folder of this machine, whose name may be shown: a URL may hold a password.

    Raises:
        ConfigError: If it is a URL.
    """
    if "://" in given:
        raise ConfigError(
            "expected a file or folder of this machine, got a URL; see --help for what goes where"
        )
    return Path(given)


def existing_bank(given: str | None) -> Path | str:
    """The bank a command means that makes none; ``None``: as for ``default_bank``.

    Raises:
        ConfigError: If there is no bank in the folder.
    """
    from assay.stores.bank import FILE_NAME, VECTORS_NAME  # noqa: PLC0415  # --help stays fast

    place = default_bank(given)
    # With its vectors only, opening tells what is missing.
    if isinstance(place, Path) and not any(
        (place / name).exists() for name in (FILE_NAME, VECTORS_NAME)
    ):
        raise ConfigError(f"no bank at {str(place)!r}; `assay chat --bank PATH` makes one")
    return place
