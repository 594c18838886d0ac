"""Who may look: signing in with an API key, and proof that a form comes from a page of ours.

The cookie holds a random name of the sign-in, never the key. It is sent by this site's own pages
only, and every form carries a token besides that no other site can read.
"""

import hmac
import secrets
from collections import OrderedDict
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from assay.stores.protocols import Clock

COOKIE = "assay-inspector"
SECONDS = 12 * 3600
"""How long a sign-in lasts."""

MOST = 1_000
"""Sign-ins kept; the oldest go first."""

FORM_BYTES = 65_536
"""Longest form."""


class Visitor(NamedTuple):
    """Who signed in.

    Attributes:
        tenant: Whose users they see.
        token: What their forms carry.
    """

    tenant: str
    token: str


class FormRefused(Exception):
    """A form that may not be acted on; says why."""


class _SignIn(NamedTuple):
    visitor: Visitor
    until: float


class Door:
    """The sign-ins of one process; a restart ends them.

    Args:
        clock: When they end.
        path: Where the pages are; the cookie is sent there and nowhere else.
    """

    def __init__(self, clock: Clock, *, path: str) -> None:
        self._clock = clock
        self._path = path
        self._open: OrderedDict[str, _SignIn] = OrderedDict()

    def let_in(self, tenant: str, response: Response, *, secure: bool) -> None:
        """Begin a sign-in and put its cookie on a response.

        Args:
            tenant: Whose.
            response: Gets the cookie.
            secure: Whether the page came over TLS; the cookie goes over nothing else then.
        """
        name = secrets.token_urlsafe(32)
        visitor = Visitor(tenant, secrets.token_urlsafe(24))
        self._open[name] = _SignIn(visitor, self._clock.monotonic() + SECONDS)
        while len(self._open) > MOST:
            self._open.popitem(last=False)
        response.set_cookie(
            COOKIE,
            name,
            max_age=SECONDS,
            path=self._path,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def visitor(self, request: Request) -> Visitor | None:
        """Who sent a request; ``None`` if nobody signed in, or too long ago."""
        name = request.cookies.get(COOKIE, "")
        signed_in = self._open.get(name)
        if signed_in is None:
            return None
        if signed_in.until < self._clock.monotonic():
            del self._open[name]
            return None
        return signed_in.visitor

    def let_out(self, request: Request, response: Response) -> None:
        """End a sign-in."""
        self._open.pop(request.cookies.get(COOKIE, ""), None)
        response.delete_cookie(COOKIE, path=self._path, httponly=True, samesite="strict")


async def form_of(request: Request, visitor: Visitor | None = None) -> dict[str, str]:
    """The fields of a form, the last value of each.

    Args:
        request: What was posted.
        visitor: Who has to have sent it; ``None`` for the form to sign in with.

    Raises:
        FormRefused: If it is too long, no form, of another site, or without the visitor's token.
    """
    _require_own_site(request)
    fields = {name: values[-1] for name, values in parse_qs(await _body(request)).items()}
    if visitor is not None and not _is_same(fields.get("token", ""), visitor.token):
        raise FormRefused("this form is too old or not from this page; go back, reload and retry")
    return fields


async def _body(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise FormRefused(f"expected a form, got {kind!r}")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_BYTES:
            raise FormRefused(f"a form may have {FORM_BYTES:,} bytes; send less")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise FormRefused("expected a form in UTF-8") from error


def _require_own_site(request: Request) -> None:
    """Browsers name the site a form comes from; a page of another one is refused."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise FormRefused(f"a form of {origin!r} is not taken here")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise FormRefused("a form of another site is not taken here")


def _is_same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())
