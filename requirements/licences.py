"""Print the licence of every locked package that is installed: ``python requirements/licences.py``.

Exit code 1 if one has no licence on record, or one that would bind whoever ships Assay.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCKED = re.compile(r"^([A-Za-z0-9_.-]+)==", re.MULTILINE)
BINDING = re.compile(r"\b(?:A?GPL|SSPL|CC-BY-NC|proprietary)", re.IGNORECASE)
FREE = re.compile(r"\b(?:MIT|BSD|Apache|ISC|PSF)", re.IGNORECASE)
RUNTIME = ("tests.txt", "weights.txt")
"""Locks of what `make setup` installs."""


def locked(*files: str) -> list[str]:
    """Names of the packages in these lock files, sorted."""
    found = {name for file in files for name in LOCKED.findall((HERE / file).read_text())}
    return sorted(found, key=str.lower)


def licence(package: Distribution) -> str:
    """What a package says of its licence; empty if it says nothing."""
    told = package.metadata.get("License-Expression") or ""
    classifiers = package.metadata.get_all("Classifier") or []
    names = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License ::")]
    return told or "; ".join(names) or (package.metadata.get("License") or "").split("\n")[0]


def rows() -> Iterator[tuple[str, str, str]]:
    """Name, version and licence of each locked package that is installed here."""
    for name in locked(*RUNTIME):
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # locked for another platform
        yield name, package.version, licence(package)


def main() -> None:
    """Print the list."""
    doubtful: list[str] = []
    for name, version, told in rows():
        print(f"{name:32} {version:14} {told or 'not on record'}")  # noqa: T201  # its output
        # Under several licences one may choose.
        if not told or (BINDING.search(told) and not FREE.search(told)):
            doubtful.append(name)
    if doubtful:
        sys.exit(f"to be looked at: {', '.join(doubtful)}")


if __name__ == "__main__":
    main()
