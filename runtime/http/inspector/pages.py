"""Templates to pages: one environment for the served inspector and for its static export.

Every text is escaped; pictures come from an element tree that escapes too.
"""

from typing import NamedTuple, Protocol
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from assay.runtime.http.inspector import pictures, shown

STATIC = {
    "style": ("inspector.css", "text/css; charset=utf-8"),
    "script": ("inspector.js", "text/javascript; charset=utf-8"),
    "icon": ("icon.svg", "image/svg+xml"),
}
"""Name in a template to file and media type."""


class Addresses(Protocol):
    """Where a page lies; ``None`` where it does not exist."""

    def __call__(self, page: str, **parameters: str) -> str | None:
        """The address to link to, relative to the page that links."""
        ...


class Frame(NamedTuple):
    """What stands around a page.

    Attributes:
        user: Whose page it is; ``None`` on pages of no user.
        tab: The user's section it belongs to.
        token: Proof that a form comes from this page; empty: nobody may act here.
        live: Address of the stream of news; empty: the page does not change.
        policy: A content policy for pages that have no headers.
        done: What was just done.
    """

    user: str | None = None
    tab: str = ""
    token: str = ""
    live: str = ""
    policy: str = ""
    done: str = ""


def served(page: str, **parameters: str) -> str:
    """Addresses below one path, with names in the query: no name can be taken for a path."""
    if page in STATIC:
        return f"static/{STATIC[page][0]}"
    path = "./" if page == "users" else page
    return f"{path}?{urlencode(parameters)}" if parameters else path


class Pages:
    """Renders pages.

    Args:
        at: Where other pages lie.
    """

    def __init__(self, at: Addresses) -> None:
        self._environment = Environment(
            loader=PackageLoader("assay.runtime.http.inspector"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._helpers: dict[str, object] = {
            "at": at,
            "balance": pictures.balance,
            "columns": pictures.columns,
            "count": shown.count,
            "day": shown.day,
            "glyph": pictures.glyph,
            "listed": shown.listed,
            "matrix": pictures.matrix,
            "meter": pictures.meter,
            "origin": shown.origin_words,
        }

    def render(self, page: str, frame: Frame, **data: object) -> str:
        """One page as HTML.

        Args:
            page: Name of the template.
            frame: What stands around it.
            data: What the template shows.
        """
        return self._environment.get_template(f"{page}.html.j2", globals=self._helpers).render(
            frame=frame, **data
        )
