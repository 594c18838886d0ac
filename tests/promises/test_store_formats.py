"""Banks of every released format open with all their content; a newer one is refused."""

import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.support import NOON, memory

from assay.errors import NewerFormat
from assay.stores.bank import FILE_NAME
from assay.stores.inspection import inspect_bank
from assay.stores.schema import FORMAT

from .bank_content import content_of, filled, opened
from .conftest import Promise

FORMATS = Path(__file__).parents[1] / "stores" / "formats"
"""One file per format before the current one, written by the code of its time."""

STATEMENT = "every released bank format opens, a newer one is refused"


def unpacked(source: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(gzip.decompress(source.read_bytes()))
    return folder


@pytest.mark.promise("P20", STATEMENT)
async def test_every_older_format_opens_with_all_its_content(
    promise: Promise, tmp_path: Path
) -> None:
    truth = await filled(tmp_path / "new")
    sources = sorted(FORMATS.glob("*.gz"))

    folders = [unpacked(source, tmp_path / source.stem) for source in sources]
    found = [inspect_bank(folder).format for folder in folders]
    contents = [await content_of(folder) for folder in folders]
    for folder in folders:
        async with opened(folder) as bank:
            await bank.store.write([memory("after", "Rex sleeps", at=NOON)])

    assert found == list(range(1, FORMAT))
    assert contents == [truth] * len(sources)
    assert [inspect_bank(folder).format for folder in folders] == [FORMAT] * len(sources)
    promise.kept(f"formats {found} opened as {FORMAT}, all rows equal")


@pytest.mark.promise("P20", STATEMENT)
async def test_a_newer_format_is_refused_and_left_alone(promise: Promise, tmp_path: Path) -> None:
    await filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    before = (tmp_path / FILE_NAME).read_bytes()

    refusal = re.escape(f"has format {FORMAT + 1}, this Assay reads up to {FORMAT}; upgrade Assay")
    with pytest.raises(NewerFormat, match=refusal):
        await content_of(tmp_path)
    with pytest.raises(NewerFormat, match=refusal):
        inspect_bank(tmp_path)

    assert (tmp_path / FILE_NAME).read_bytes() == before
    promise.kept(f"format {FORMAT + 1} refused by name, the file untouched")
