"""One turn as a request sees it: it runs beside the request and may outlive it.

A client that goes away before the reply is there ends the turn, and nothing of it is remembered.
Once the reply is there, the turn ends on its own: what it leaves behind is written whole.
"""

from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
from opentelemetry import trace

from assay.errors import AssayError
from assay.runtime.commands import ToolResult
from assay.runtime.events import AnyEvent, MessageReceived, ReplyProduced, ToolResultsReceived
from assay.runtime.http.asking import Asked
from assay.runtime.http.errors import (
    ApiError,
    api_error,
    internal_error,
    log_broken,
    log_failed,
    stopping,
)
from assay.runtime.http.gate import RETRY_SECONDS, overloaded
from assay.runtime.http.service import Service
from assay.runtime.http.sessions import OpenSession
from assay.runtime.observe import span
from assay.runtime.reply import Reply
from assay.stores.records import Namespace

MOST_OF_ONE_USER = 16
"""Requests of one user that may wait for one another."""

_tracer = trace.get_tracer("assay")


class Turn:
    """A turn under way.

    Args:
        service: Where it runs.
        tenant: Whose user.
        namespace: The user's.
        asked: What is asked.

    Attributes:
        turn_id: Its id, and its decision's; empty before it began.
        reply: What came of it.
        error: Why nothing came of it.
    """

    def __init__(self, service: Service, tenant: str, namespace: Namespace, asked: Asked) -> None:
        self.turn_id = ""
        self.reply: Reply | None = None
        self.error: ApiError | None = None
        self._service = service
        self._tenant = tenant
        self._namespace = namespace
        self._asked = asked
        self._pieces: deque[str] = deque()
        self._moved = anyio.Event()
        self._scope = anyio.CancelScope()
        self._is_replied = False
        self._is_over = False
        self._started = anyio.current_time()
        self._has_first = False

    @property
    def name(self) -> str:
        """Of its answer: one turn has several where tools are called, and two users may have equal turns."""
        return "\0".join([self._namespace, self.turn_id, *sorted(self._asked.results)])

    def begin(self) -> None:
        """Start it; it runs on its own from here."""
        self._service.tasks.start_soon(self._run)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        if not self._is_over and not self._is_replied:
            self._service.metrics.dropped.inc()
            self._scope.cancel()

    def stop(self) -> None:
        """The service stops, and waits for it no longer; once the reply is there, it goes on."""
        if not self._is_over and not self._is_replied:
            self.error = stopping()
            self._scope.cancel()

    async def first(self) -> None:
        """Wait until there is a piece of the reply, or it is over."""
        while not self._pieces and not self._is_over:
            await self._next_move()

    async def over(self) -> Reply:
        """Wait until it is over.

        Raises:
            ApiError: If no reply came of it.
        """
        while not self._is_over:
            await self._next_move()
        if self.reply is None:
            raise self.error or _gone()
        return self.reply

    async def pieces(self, *, ping_seconds: float) -> AsyncGenerator[str]:
        """The pieces of the reply as they come; an empty one when none came for a while."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._is_over:
                return
            with anyio.move_on_after(ping_seconds) as waited:
                await self._next_move()
            if waited.cancelled_caught:
                yield ""

    async def _next_move(self) -> None:
        if self._moved.is_set():
            self._moved = anyio.Event()
        await self._moved.wait()

    async def _run(self) -> None:
        try:
            with self._service.under_way(self.stop), self._scope:
                await self._traced()
        except ApiError as error:
            self.error = error
        except (AssayError, ValueError) as error:
            self.error = api_error(error)
            if self.error.status >= 500:  # noqa: PLR2004  # the service's fault, not the client's
                log_failed(error)
        except Exception as error:  # noqa: BLE001  # one request must not end the service
            log_broken(error)
            self.error = internal_error()
        finally:
            self._is_over = True
            self._count()
            self._moved.set()
            self._service.tell(self._tenant, self._namespace)

    async def _traced(self) -> None:
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "assay",
            "gen_ai.request.model": self._service.model,
            "gen_ai.conversation.id": self._asked.session_id,
        }
        name = f"chat {self._service.model}"
        kind = trace.SpanKind.SERVER
        with span(_tracer, name, kind=kind, attributes=attributes) as current:
            reply = self.reply = await self._in_line()
            self.turn_id = reply.turn_id
            current.set_attribute("gen_ai.response.id", reply.turn_id)
            current.set_attribute("gen_ai.usage.input_tokens", reply.usage.prompt_tokens)
            current.set_attribute("gen_ai.usage.output_tokens", reply.usage.completion_tokens)

    async def _in_line(self) -> Reply:
        """Behind the user's own earlier requests first: they must not fill the places of others."""
        lock = self._service.in_order(self._namespace)
        if lock.statistics().tasks_waiting >= MOST_OF_ONE_USER:
            raise overloaded(
                "too many requests of this user wait; send one at a time", RETRY_SECONDS
            )
        async with lock, self._service.gate.turn(self._tenant):
            return await self._said(
                await self._service.sessions.open(self._namespace, self._asked.session_id)
            )

    async def _said(self, opened: OpenSession) -> Reply:
        asked, session, now = self._asked, opened.session, self._service.runtime.now()
        with session.subscribe(self._saw):
            calls = await session.awaited_calls()
            if asked.results and {call.id for call in calls} == set(asked.results):
                results = [ToolResult(call=call, output=asked.results[call.id]) for call in calls]
                return await session.answer_tools(
                    results,
                    sink=self._take,
                    conversation=asked.conversation,
                    request=asked.request,
                )
            history = [*asked.conversation.history, *asked.followed]
            # By its name the session knows it better than by its words.
            repeated = not asked.request and opened.is_repeated(
                asked.text, times=asked.times, at=now
            )
            reply = await session.send(
                asked.text,
                tools=asked.tools,
                sink=self._take,
                conversation=replace(asked.conversation, history=history, is_repeated=repeated),
                request=asked.request,
            )
        if not repeated:
            self._service.sessions.took(opened, asked.text, now, request=asked.request)
        return reply

    def _saw(self, event: AnyEvent) -> None:
        if isinstance(event, MessageReceived | ToolResultsReceived):
            self.turn_id = event.turn_id
        elif isinstance(event, ReplyProduced) and event.turn_id == self.turn_id:
            self._is_replied = True
        self._service.tell(self._tenant, self._namespace)

    def _take(self, piece: str) -> None:
        if not self._has_first:
            self._has_first = True
            waited = anyio.current_time() - self._started
            self._service.metrics.first_seconds.observe(waited)
        self._pieces.append(piece)
        self._moved.set()

    def _count(self) -> None:
        metrics = self._service.metrics
        metrics.turn_seconds.observe(anyio.current_time() - self._started)
        error = self.error or (None if self.reply else _gone())
        metrics.requests.labels(status=str(error.status if error else 200)).inc()
        if self.reply is not None:
            metrics.tokens.inc(self.reply.ledger.tokens)
            metrics.calls.inc(self.reply.ledger.live)
            metrics.records.labels(decision="admitted").inc(len(self.reply.decision.admitted))
            metrics.records.labels(decision="withheld").inc(len(self.reply.decision.withheld))


def _gone() -> ApiError:
    return ApiError(499, "the client went away", code="client_closed_request")
