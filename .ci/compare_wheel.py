"""Fail unless the wheel holds exactly the package files that git tracks."""

import subprocess
import sys
import zipfile
from pathlib import Path

LINKED = ("runtime", "guards", "stores", "scenarios")


def tracked() -> set[str]:
    """Package paths of the tracked files, as they stand in a wheel."""
    listing = subprocess.run(
        ["git", "ls-files", "-s", *LINKED, "src/assay"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths: set[str] = set()
    for line in listing.splitlines():
        mode, path = line.split()[0], line.split("\t", 1)[1]
        if mode != "120000":
            paths.add(path.removeprefix("src/") if path.startswith("src/") else f"assay/{path}")
    return paths


def packed(folder: Path) -> set[str]:
    """Package paths in the one wheel of a folder."""
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("assay/")}


def main() -> int:
    """Compare and report."""
    expected, found = tracked(), packed(Path(sys.argv[1]))
    for path in sorted(expected - found):
        print(f"tracked, but not in the wheel: {path}")
    for path in sorted(found - expected):
        print(f"in the wheel, but not tracked: {path}")
    print(f"wheel: {len(found)} files, {len(expected)} tracked")
    return int(expected != found)


if __name__ == "__main__":
    raise SystemExit(main())
