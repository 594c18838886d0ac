"""The inspector's addresses: pages to look at, and forms to act with.

Names of users, turns and records stand in the query, so that none can be taken for a path. Whatever
is asked for is looked up in the visitor's own tenant: another one's id is as unknown as any other.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from assay.errors import AssayError, ConfigError, RecordNotFound, StoreCorrupt
from assay.runtime.http.errors import is_away, log_failed
from assay.runtime.http.inspector.desk import Desk
from assay.runtime.http.inspector.doors import Door, FormRefused, Visitor, form_of
from assay.runtime.http.inspector.live import news_response
from assay.runtime.http.inspector.pages import STATIC, Frame, Pages, served
from assay.runtime.http.inspector.reading import COUNTED, MOST_ROWS, Reader, SpendingShown
from assay.stores.records import Namespace, TurnId

PATH: Final = "/inspect"

USERS_SHOWN: Final = 60
"""Users on the first page; the search finds the others."""

AWAY: Final = "The memory behind this service cannot be used now. Try again in a moment."

DAMAGED: Final = "The memory behind this service is damaged. Its log tells more."

CHOICES: Final = (
    ("", "all"),
    ("holds", "what holds now"),
    ("replaced", "replaced"),
    ("expired", "expired"),
    ("quarantined", "quarantined"),
    ("vouched", "vouched for"),
    ("user", "said by the user"),
    ("tool", "given by tools"),
    ("external", "from outside"),
)

DONE: Final[Mapping[str, str]] = {
    "vouch": "Let in: the next turn it is a candidate of admits it, and says so.",
    "quarantine": "Quarantined: it is in no prompt until somebody releases it.",
    "release": "Left to the guard again.",
    "correct": "Corrected. This is the new wording; the old one stays as history.",
    "erase": "Erased, with what was derived from it and the cached answers that showed it.",
}

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: browsers then send forms without the origin this page checks.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Show: TypeAlias = Callable[[Request, Visitor], Awaitable[Response]]


class Inspector:
    """The handlers.

    Args:
        desk: The service it shows.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._door = Door(desk.runtime.clock, path=PATH)
        self._pages = Pages(served)

    def routes(self) -> list[BaseRoute]:
        """Every address, below ``/inspect``."""
        shown: dict[str, _Show] = {
            "": self._users,
            "conversations": self._conversations,
            "conversation": self._conversation,
            "turn": self._turn,
            "question": self._question,
            "memories": self._memories,
            "record": self._record,
            "review": self._review,
            "spending": self._spending,
            "live": self._live,
        }
        done: dict[str, _Show] = {
            "vouch": self._act("vouch"),
            "quarantine": self._act("quarantine"),
            "release": self._act("release"),
            "correct": self._act("correct"),
            "erase": self._act("erase"),
            "sign-out": self._sign_out,
        }
        return [
            Route(PATH, _to_first_page),
            *(Route(f"{PATH}/{name}", self._guarded(show)) for name, show in shown.items()),
            *(
                Route(f"{PATH}/{name}", self._guarded(act), methods=["POST"])
                for name, act in done.items()
            ),
            Route(f"{PATH}/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route(f"{PATH}/static/{{name}}", _static),
        ]

    # ---- who may look

    def _guarded(self, show: _Show) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            visitor = self._door.visitor(request)
            if visitor is None:
                return self._ask_key(status=401)
            try:
                return await show(request, visitor)
            except FormRefused as error:
                return self._problem("Not done", str(error), request, visitor, status=403)
            except (AssayError, ValueError) as error:
                title, problem, status = _refusal(error)
                if status >= 500:  # noqa: PLR2004  # the service's fault, not the visitor's
                    log_failed(error)
                return self._problem(title, problem, request, visitor, status=status)

        return respond

    async def _sign_in(self, request: Request) -> Response:
        if request.method == "GET":
            return self._ask_key()
        try:
            fields = await form_of(request)
        except FormRefused as error:
            return self._ask_key(str(error), status=403)
        tenant = self._desk.tenant_of(fields.get("key", ""))
        if tenant is None:
            return self._ask_key("This is no key of this service.", status=401)
        response = RedirectResponse("./", status_code=303, headers=_HEADERS)
        self._door.let_in(tenant, response, secure=request.url.scheme == "https")
        return response

    async def _sign_out(self, request: Request, visitor: Visitor) -> Response:
        await form_of(request, visitor)
        response = RedirectResponse("sign-in", status_code=303, headers=_HEADERS)
        self._door.let_out(request, response)
        return response

    def _ask_key(self, problem: str = "", *, status: int = 200) -> Response:
        return _html(self._pages.render("sign_in", Frame(), problem=problem), status)

    def _problem(
        self, title: str, problem: str, request: Request, visitor: Visitor, *, status: int
    ) -> Response:
        user = request.query_params.get("u")
        frame = Frame(user=user or None, token=visitor.token)
        return _html(self._pages.render("problem", frame, title=title, problem=problem), status)

    # ---- pages

    async def _users(self, request: Request, visitor: Visitor) -> Response:
        search = request.query_params.get("q", "")
        users = await self._desk.users(visitor.tenant)
        fitting = [
            {"user": user, "conversations": conversations}
            for user, conversations in users.items()
            if search.casefold() in user.casefold()
        ]
        many = len(users) if len(users) > USERS_SHOWN else 0
        frame = Frame(token=visitor.token, live="live")
        return self._page(
            "users",
            frame,
            users=fitting[:USERS_SHOWN],
            many=many,
            search=search,
            **self._first_words(request),
        )

    async def _conversations(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "conversations")
        conversations = await reader.conversations()
        return self._page(
            "conversations",
            frame,
            conversations=conversations,
            memories=0 if conversations else len(await reader.rows()),
            **self._first_words(request),
        )

    async def _conversation(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "conversations")
        session = _wanted(request, "s")
        turns = await reader.conversation(session)
        return self._page("conversation", frame, session=session, turns=turns)

    async def _turn(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "conversations")
        turn, order = await reader.turn(_wanted(request, "id"))
        return self._page("turn", frame, turn=turn, **around(turn.turn.id, order))

    async def _question(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "conversations")
        turn, asked, question = await reader.question(
            _wanted(request, "id"), _wanted(request, "key")
        )
        return self._page("question", frame, turn=turn, asked=asked, question=question)

    async def _memories(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "memories")
        search, only = (request.query_params.get(name, "") for name in ("q", "only"))
        rows = await reader.rows(search=search, only=only)
        return self._page(
            "memories",
            frame,
            rows=rows[:MOST_ROWS],
            total=len(rows),
            search=search,
            only=only,
            choices=CHOICES,
        )

    async def _record(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "memories")
        return self._page("record", frame, shown=await reader.record(_wanted(request, "id")))

    async def _review(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "review")
        return self._page("review", frame, shown=await reader.review())

    async def _spending(self, request: Request, visitor: Visitor) -> Response:
        reader, frame = self._reader(request, visitor, "spending")
        return self._page("spending", frame, **spending_data(await reader.spending()))

    async def _live(self, request: Request, visitor: Visitor) -> Response:
        user = request.query_params.get("u")
        namespace = None if user is None else self._desk.namespace_of(visitor.tenant, user)
        return news_response(self._desk, visitor.tenant, namespace)

    # ---- what a person does

    def _act(self, action: str) -> _Show:
        async def act(request: Request, visitor: Visitor) -> Response:
            fields = await form_of(request, visitor)
            user, record = fields.get("u", ""), fields.get("id", "")
            namespace = self._desk.namespace_of(visitor.tenant, user)
            shown = await self._do(action, namespace, record, fields)
            query = {"u": user, "done": action}
            turn = fields.get("turn", "")
            if action == "erase":
                address = served("memories", **query)
            elif turn:
                address = f"{served('turn', **query, id=turn)}#{record}"
            else:
                address = served("record", **query, id=shown)
            return RedirectResponse(address, status_code=303, headers=_HEADERS)

        return act

    async def _do(
        self, action: str, namespace: Namespace, record: str, fields: Mapping[str, str]
    ) -> str:
        """Do it; gives the record to show afterwards."""
        runtime = self._desk.runtime
        match action:
            case "vouch":
                await runtime.vouch(namespace, record)
            case "quarantine":
                await runtime.quarantine(namespace, record)
            case "release":
                await runtime.release(namespace, record)
            case "correct":
                return (await runtime.correct(namespace, record, fields.get("text", "").strip())).id
            case _:
                if fields.get("sure") != "yes":
                    raise FormRefused("tick the box to erase for good; nothing was erased")
                await runtime.forget(namespace, record)
        return record

    # ---- together

    def _reader(self, request: Request, visitor: Visitor, tab: str) -> tuple[Reader, Frame]:
        user = _wanted(request, "u")
        namespace = self._desk.namespace_of(visitor.tenant, user)
        frame = Frame(
            user=user,
            tab=tab,
            token=visitor.token,
            live=served("live", u=user),
            done=DONE.get(request.query_params.get("done", ""), ""),
        )
        return Reader(self._desk.runtime, namespace), frame

    def _first_words(self, request: Request) -> dict[str, object]:
        """What to do when there is nothing to see yet."""
        body = {
            "model": self._desk.model,
            "user": request.query_params.get("u", "ann"),
            "messages": [{"role": "user", "content": "My cat is called Miso."}],
        }
        return {
            "first_words": "Send a first message through the API, as your chatbot would:",
            "first_command": (
                f"curl {request.base_url}v1/chat/completions \\\n"
                "  -H 'Authorization: Bearer YOUR-KEY' -H 'Content-Type: application/json' \\\n"
                f"  -d {shlex.quote(msgspec.json.encode(body).decode())}"
            ),
        }

    def _page(self, page: str, frame: Frame, **data: object) -> Response:
        return _html(self._pages.render(page, frame, **data), 200)


def inspector_routes(desk: Desk) -> list[BaseRoute]:
    """The pages of the inspector, for the application of the service it belongs to."""
    return Inspector(desk).routes()


def around(turn_id: str, order: list[TurnId]) -> dict[str, object]:
    """Where a turn stands in its conversation, for its page."""
    place = order.index(TurnId(turn_id))
    return {
        "place": place + 1,
        "total": len(order),
        "before": order[place - 1] if place else "",
        "after": order[place + 1] if place + 1 < len(order) else "",
    }


def spending_data(shown: SpendingShown) -> dict[str, object]:
    """What the page of spending shows."""
    return {
        "shown": shown,
        "counted": COUNTED,
        "tokens": [turn.spent.tokens for turn in shown.turns],
        "labels": [f"{turn.text[:60]}: {turn.spent.tokens:,} tokens" for turn in shown.turns],
    }


def _wanted(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if not value:
        raise ConfigError(f"the address names no {name!r}; follow a link from the users' page")
    return value


async def _to_first_page(request: Request) -> Response:
    return RedirectResponse(f"{request.url.path}/", status_code=307, headers=_HEADERS)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    kind = next((kind for file, kind in STATIC.values() if file == name), None)
    if kind is None:
        return Response("no such file", status_code=404, headers=_HEADERS)
    headers = {**_HEADERS, "Cache-Control": "public, max-age=300"}
    return Response(static_file(name), media_type=kind, headers=headers)


def static_file(name: str) -> bytes:
    """A style sheet, a script or a picture, as installed."""
    return (files("assay.runtime.http.inspector") / "static" / name).read_bytes()


def _refusal(error: AssayError | ValueError) -> tuple[str, str, int]:
    """Title, text and status of the page that says why another is not shown."""
    match error:
        case RecordNotFound():
            problem = f"There is no record {error.record_id!r} here, or it was erased."
            return "Nothing here", problem, 404
        case ConfigError():
            return "Nothing here", str(error), 404
        case StoreCorrupt():
            return "Not done", DAMAGED, 500
        case _ if is_away(error):
            return "Not now", AWAY, 503
        case _:
            return "Not done", str(error), 400


def _html(page: str, status: int) -> HTMLResponse:
    return HTMLResponse(page, status_code=status, headers=_HEADERS)
