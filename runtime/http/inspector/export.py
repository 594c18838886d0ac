"""The inspector as files: the same pages, without a service, without forms, opened in any browser."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from assay.errors import ConfigError
from assay.runtime.facade import Runtime
from assay.runtime.http.inspector.pages import STATIC, Frame, Pages
from assay.runtime.http.inspector.reading import Reader, users_of
from assay.runtime.http.inspector.routes import CHOICES, around, spending_data, static_file
from assay.runtime.limits import namespace_of
from assay.runtime.naming import close_names
from assay.stores.records import Namespace

POLICY: Final = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
"""A page opened from a folder has no headers, and its own address is no origin."""

_NOT_EXPORTED: Final = frozenset({"question", "sign-out"})


class Exported(NamedTuple):
    """What was written.

    Attributes:
        first: The page to open.
        pages: How many.
        users: Whose.
        forbidden: Records left out because their consent forbids an export.
    """

    first: Path
    pages: int
    users: tuple[str, ...]
    forbidden: int


class _Files:
    """A file name for each page, in order of first mention: names of users are no paths."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {("users",): "index.html"}

    def __call__(self, page: str, **parameters: str) -> str | None:
        """The file of a page; ``None`` for pages that an export leaves out."""
        if page in STATIC:
            return STATIC[page][0]
        if page in _NOT_EXPORTED:
            return None
        key = (page, *(parameters[name] for name in sorted(parameters)))
        return self._names.setdefault(key, f"{page}-{len(self._names)}.html")


async def export(
    runtime: Runtime,
    folder: Path,
    *,
    tenant: str = "",
    user: str | None = None,
    told: Callable[[int, int], None] = lambda _done, _total: None,
) -> Exported:
    """Write the pages of one user, or of all users of a tenant.

    Args:
        runtime: Over the bank.
        folder: Where to; made if missing, and it has to be empty.
        tenant: Whose users; empty: of a bank without tenants.
        user: One of them; ``None``: all.
        told: Told how many of how many users are done.

    Raises:
        ConfigError: If the folder holds something, or nobody is remembered.
    """
    await _require_empty(folder)
    users = await users_of(runtime.bank.journal, tenant)
    if user is not None and user not in users:
        await _require_records(runtime, namespace_of(tenant, user), user, users)
    wanted = _wanted(users, user)
    at = _Files()
    site = _Site(Pages(at), at, folder)
    await site.begin()
    forbidden = 0
    for done, name in enumerate(wanted):
        told(done, len(wanted))
        await _export_user(runtime, site, name, namespace_of(tenant, name))
        forbidden += await _forbidden(runtime, namespace_of(tenant, name))
    listed = [{"user": name, "conversations": users.get(name, 0)} for name in wanted]
    frame = Frame(policy=POLICY)
    await site.write("users", frame, None, users=listed, many=0, search="", **_NO_WORDS)
    told(len(wanted), len(wanted))
    return Exported(folder / "index.html", site.written, tuple(wanted), forbidden)


async def _forbidden(runtime: Runtime, namespace: Namespace) -> int:
    changes = await runtime.bank.store.changes(namespace, after=0)
    return sum(not record.consent.export for record in changes.records)


class _Site:
    """Writes pages under the names others link to."""

    def __init__(self, pages: Pages, at: _Files, folder: Path) -> None:
        self._pages = pages
        self._at = at
        self._folder = anyio.Path(folder)
        self.written = 0

    async def begin(self) -> None:
        """The folder, with style sheet, script and picture."""
        await self._folder.mkdir(parents=True, exist_ok=True)
        for name, _ in STATIC.values():
            await (self._folder / name).write_bytes(static_file(name))

    async def write(
        self, page: str, frame: Frame, address: Mapping[str, str] | None, **data: object
    ) -> None:
        """One page."""
        name = self._at(page, **(address or {}))
        assert name is not None  # noqa: S101  # only pages with a file are written
        text = self._pages.render(page, frame, **data)
        await (self._folder / name).write_text(text, encoding="utf-8")
        self.written += 1


async def _export_user(runtime: Runtime, site: _Site, user: str, namespace: Namespace) -> None:
    reader = Reader(runtime, namespace, leaving=True)
    conversations, rows = await reader.conversations(), await reader.rows()
    whose = {"u": user}

    def frame(tab: str) -> Frame:
        return Frame(user=user, tab=tab, policy=POLICY)

    await site.write(
        "conversations",
        frame("conversations"),
        whose,
        conversations=conversations,
        memories=len(rows),
        **_NO_WORDS,
    )
    for each in conversations:
        turns = await reader.conversation(each.session)
        address = {**whose, "s": each.session}
        await site.write(
            "conversation", frame("conversations"), address, session=each.session, turns=turns
        )
        for turn_id in [turn.turn.id for turn in turns]:
            turn, order = await reader.turn(turn_id)
            place = around(turn_id, order)
            address = {**whose, "id": turn_id}
            await site.write("turn", frame("conversations"), address, turn=turn, **place)
    await site.write(
        "memories",
        frame("memories"),
        whose,
        rows=rows,
        total=len(rows),
        search="",
        only="",
        choices=CHOICES,
    )
    for row in rows:
        shown = await reader.record(row.record.id)
        await site.write("record", frame("memories"), {**whose, "id": row.record.id}, shown=shown)
    await site.write("review", frame("review"), whose, shown=await reader.review())
    await site.write("spending", frame("spending"), whose, **spending_data(await reader.spending()))


_NO_WORDS: Final[Mapping[str, object]] = {
    "first_words": "Talk to it, and export again:",
    "first_command": "assay chat",
}


def _wanted(users: Iterable[str], user: str | None) -> list[str]:
    known = list(users)
    if user is not None:
        return [user]
    if not known:
        raise ConfigError("no conversation yet in this bank; `assay chat --bank PATH` begins one")
    return known


async def _require_records(
    runtime: Runtime, namespace: Namespace, user: str, known: Iterable[str]
) -> None:
    """Somebody who never spoke may still be remembered, through an import."""
    if not await runtime.memories(namespace):
        near = close_names(user, known) if known else ""
        raise ConfigError(f"nothing is known of user {user!r} in this bank{near}")


async def _require_empty(folder: Path) -> None:
    path = anyio.Path(folder)
    if await path.exists() and not await path.is_dir():
        raise ConfigError(f"expected a folder to write to, {str(folder)!r} is a file")
    if await path.exists() and [each async for each in path.iterdir()]:
        raise ConfigError(f"{str(folder)!r} is not empty; name a new folder")
