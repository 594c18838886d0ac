import re
from pathlib import Path

import pytest

from assay.errors import ConfigError
from assay.runtime.http.inspector.export import export
from assay.runtime.limits import namespace_of

from .desks import PLANTED, WEB, open_desk, poison

USER = "<b>ann</b>/../x"


def pages_in(folder: Path) -> list[str]:
    return [page.read_text(encoding="utf-8") for page in folder.glob("*.html")]


def linked(folder: Path) -> set[str]:
    """Files that any page links to."""
    found = {
        link for page in pages_in(folder) for link in re.findall(r'(?:href|src)="([^"]+)"', page)
    }
    return {link.partition("#")[0] for link in found if not link.startswith("#")}


async def test_every_link_of_an_export_leads_to_a_file_in_it(tmp_path: Path) -> None:
    async with open_desk() as desk:
        planted = await poison(desk, USER)
        await poison(desk, "ben")
        await desk.runtime.vouch(namespace_of("clinic", USER), planted)

        written = await export(desk.runtime, tmp_path / "out", tenant="clinic")

    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert linked(tmp_path / "out") <= files
    assert written.first.name == "index.html"
    assert set(written.users) == {USER, "ben"}
    assert written.pages == sum(name.endswith(".html") for name in files)


async def test_an_export_shows_the_decision_and_has_no_forms(tmp_path: Path) -> None:
    async with open_desk() as desk:
        await poison(desk)

        await export(desk.runtime, tmp_path, tenant="clinic", user="ann")

    pages = pages_in(tmp_path)
    assert any(PLANTED in page and "withheld" in page for page in pages)
    assert not any("<form" in page or "data-live" in page for page in pages)
    assert all("default-src &#39;none&#39;" in page for page in pages)


async def test_markup_in_names_and_records_stays_text(tmp_path: Path) -> None:
    async with open_desk() as desk:
        await desk.runtime.remember(
            namespace_of("clinic", USER), "<script>alert(1)</script>", origin=WEB
        )
        await desk.say("clinic", USER, "Is <script>alert(1)</script> here?")

        await export(desk.runtime, tmp_path, tenant="clinic")

    pages = pages_in(tmp_path)
    assert not any("<script>alert" in page or "<b>ann" in page for page in pages)


async def test_users_of_other_tenants_are_not_exported(tmp_path: Path) -> None:
    async with open_desk() as desk:
        await poison(desk)
        await desk.say("shop", "zoe", "My dog is called Rex.")

        await export(desk.runtime, tmp_path, tenant="clinic")

    assert not any("zoe" in page or "Rex" in page for page in pages_in(tmp_path))


async def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    async with open_desk() as desk:
        await poison(desk)

        with pytest.raises(ConfigError, match="not empty"):
            await export(desk.runtime, tmp_path, tenant="clinic")
        with pytest.raises(ConfigError, match="is a file"):
            await export(desk.runtime, tmp_path / "mine.txt", tenant="clinic")

    assert pages_in(tmp_path) == []


async def test_nobody_to_export_says_what_to_do(tmp_path: Path) -> None:
    async with open_desk() as desk:
        with pytest.raises(ConfigError, match="assay chat --bank PATH"):
            await export(desk.runtime, tmp_path)
        await poison(desk)
        with pytest.raises(ConfigError, match="did you mean 'ann'"):
            await export(desk.runtime, tmp_path, tenant="clinic", user="anne")
