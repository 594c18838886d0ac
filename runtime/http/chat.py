"""``/v1/chat/completions``: whole answers and streams."""

from collections.abc import AsyncGenerator
from urllib.parse import quote

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from assay.runtime.http.answers import Chunks, completion_body, sse
from assay.runtime.http.asking import asked_of
from assay.runtime.http.bodies import read_body, until_gone
from assay.runtime.http.errors import ApiError, api_error, json_response
from assay.runtime.http.service import Service
from assay.runtime.http.turn import Turn
from assay.runtime.http.wire import ChatRequest, decode

DECISION_HEADER = "X-Assay-Decision"

HEAD_SECONDS = 10.0
"""How long a stream's status waits for the first piece, so that an early failure has a status of its own."""

PING_SECONDS = 15.0
"""Silence after which a stream says that it lives."""


async def chat_completions(service: Service, request: Request) -> Response:
    """Answer a chat request.

    Raises:
        ApiError: If it gets no answer.
    """
    tenant: str = request.state.tenant
    service.rates.take(tenant)
    try:
        chat = decode(await read_body(request, service.settings))
        turn = _turn(service, tenant, chat, request)
        turn.begin()
        if chat.stream:
            return await _streamed(service, turn, chat, request)
        return await _whole(service, turn, request)
    except ClientDisconnect:
        return Response(status_code=499)


def _turn(service: Service, tenant: str, chat: ChatRequest, request: Request) -> Turn:
    require_model(service, chat.model)
    tokens = service.settings.history_tokens
    asked = asked_of(chat, request.headers, history_tokens=tokens)
    try:
        namespace = service.namespace_of(tenant, asked.user)
    except ValueError as error:
        raise api_error(error) from error
    return Turn(service, tenant, namespace, asked)


def require_model(service: Service, name: str) -> None:
    """Refuse another model than the one there is.

    Raises:
        ApiError: 404.
    """
    if name != service.model:
        raise ApiError(
            404,
            f"there is no model {name[:100]!r} here; this service has {service.model!r}",
            code="model_not_found",
            param="model",
        )


async def _whole(service: Service, turn: Turn, request: Request) -> Response:
    await _or_gone(turn, request, first=False)
    reply = await turn.over()
    body = completion_body(reply, name=turn.name, model=service.model, at=service.runtime.now())
    return json_response(body, headers=_headers(turn))


async def _streamed(
    service: Service, turn: Turn, chat: ChatRequest, request: Request
) -> StreamingResponse:
    await _or_gone(turn, request, first=True)
    if turn.error is not None:
        raise turn.error
    with_usage = bool(chat.stream_options and chat.stream_options.include_usage)
    chunks = Chunks(turn.name, model=service.model, at=service.runtime.now())
    headers = {**_headers(turn), "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _events(turn, chunks, with_usage=with_usage),
        media_type="text/event-stream",
        headers=headers,
    )


async def _events(turn: Turn, chunks: Chunks, *, with_usage: bool) -> AsyncGenerator[bytes]:
    try:
        yield chunks.first()
        async for piece in turn.pieces(ping_seconds=PING_SECONDS):
            yield chunks.piece(piece) if piece else b": still here\n\n"
        yield chunks.last(await turn.over(), with_usage=with_usage)
    except ApiError as error:
        yield sse(error.body())
    finally:
        turn.drop()


async def _or_gone(turn: Turn, request: Request, *, first: bool) -> None:
    """Wait for the first piece, a while, or for the end; a client that goes away drops the turn."""

    async def watch() -> None:
        await until_gone(request)
        turn.drop()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            await (_first_or_late(turn) if first else _quietly_over(turn))
        except BaseException:
            turn.drop()
            raise
        group.cancel_scope.cancel()


async def _first_or_late(turn: Turn) -> None:
    # In here, so that a first piece that is late is not taken for a client that went away.
    with anyio.move_on_after(HEAD_SECONDS):
        await turn.first()


async def _quietly_over(turn: Turn) -> None:
    try:
        await turn.over()
    except ApiError:
        return


def _headers(turn: Turn) -> dict[str, str]:
    return {DECISION_HEADER: quote(turn.turn_id)} if turn.turn_id else {}
