"""What makes a file system keep its word."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file, or the renames and removals in a folder, are on the disk; blocks."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
