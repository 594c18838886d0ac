"""The addresses of the service."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.errors import StoreError
from assay.runtime.http.answers import model_body, models_body
from assay.runtime.http.bodies import HeardOut
from assay.runtime.http.chat import chat_completions, require_model
from assay.runtime.http.errors import ApiError, internal_error, json_response, log_broken
from assay.runtime.http.metrics import TEXT_FORMAT
from assay.runtime.http.service import Service

OPEN: Final = frozenset({"/health", "/ready"})
"""Addresses that need no key."""

READY_SECONDS = 2.0
"""How long the bank may take to show that it can be read; whoever asks waits seconds, not minutes."""

OWN_SIGN_IN: Final = "/inspect"
"""The inspector asks for the key in a form of its own."""


def make_app(service: Service, *, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The application over an open service.

    Args:
        service: Open for as long as the application is used.
        routes: Of the inspector; they ask for the key themselves.
    """
    return Starlette(
        routes=[
            Route("/health", _health),
            Route("/ready", _over(service, _ready)),
            Route("/metrics", _over(service, _metrics)),
            Route("/v1/models", _over(service, _models)),
            Route("/v1/models/{name:path}", _over(service, _model)),
            Route("/v1/chat/completions", _over(service, chat_completions), methods=["POST"]),
            *routes,
        ],
        middleware=[
            Middleware(HeardOut),
            Middleware(Contained),
            Middleware(KeyRequired, service=service),
        ],
        exception_handlers={HTTPException: _http_error},
    )


class Contained:
    """Ends a bug here: further out it would be logged with its message, which may quote somebody.

    Args:
        app: What is inside.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001  # one request must not end the service
            log_broken(error)
            if not has_begun:
                await internal_error().response()(scope, receive, send)


class KeyRequired:
    """Lets nobody in without a key, before anything else is looked at.

    Args:
        app: What is inside.
        service: Knows the keys.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and not _is_open(scope["path"]):
            tenant = self._service.tenant_of(_key(Request(scope)))
            if tenant is None:
                await _no_key().response()(scope, receive, send)
                return
            scope.setdefault("state", {})["tenant"] = tenant
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in OPEN or path == OWN_SIGN_IN or path.startswith(OWN_SIGN_IN + "/")


def _key(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.casefold() == "bearer" else ""


def _no_key() -> ApiError:
    return ApiError(
        401,
        "no valid API key; send `Authorization: Bearer KEY` with a key of this service",
        code="invalid_api_key",
    )


_Handler = Callable[[Service, Request], Awaitable[Response]]


def _over(service: Service, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            return await handler(service, request)
        except ApiError as error:
            return error.response()

    return handle


async def _health(request: Request) -> Response:
    return json_response({"status": "ok"})


async def _ready(service: Service, request: Request) -> Response:
    """Whether work should be sent here: not while it stops, nor when the bank cannot be read."""
    if service.is_stopping:
        return json_response({"status": "stopping"}, status=503)
    with anyio.move_on_after(READY_SECONDS), suppress(StoreError):
        await service.runtime.memories("ready")
        return json_response({"status": "ready"})
    return json_response({"status": "the bank cannot be read"}, status=503)


async def _metrics(service: Service, request: Request) -> Response:
    text = service.metrics.text(active=service.gate.active, waiting=service.gate.waiting)
    return Response(text, headers={"Content-Type": TEXT_FORMAT})


async def _models(service: Service, request: Request) -> Response:
    return json_response(models_body(service.model, _created(service)))


async def _model(service: Service, request: Request) -> Response:
    require_model(service, request.path_params["name"])
    return json_response(model_body(service.model, _created(service)))


def _created(service: Service) -> int:
    return int(service.opened.timestamp())


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise AssertionError("unreachable")  # noqa: TRY004  # only HTTPException comes here
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    return ApiError(error.status_code, message, code="unknown_url").response()
