"""Any OpenAI-compatible endpoint, through the openai SDK.

The SDK's own retries are off, see ``calling``. What the endpoint sends is decoded here, strictly; nothing partial gets out.
"""

import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import openai
import structlog.stdlib

from assay.errors import MalformedAnswer
from assay.guards.protocols import Completion, DeltaSink, Message, Request, Usage
from assay.runtime.clock import SystemClock
from assay.runtime.models.assembling import Assembler
from assay.runtime.models.calling import WAITS, Calls, Failed, Waits, open_client
from assay.runtime.models.counting import bound_tokens, require_room
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.models.requests import body_of
from assay.runtime.settings import ModelSettings
from assay.stores.protocols import Clock

CONTEXT_TOKENS = 128_000
"""Context taken for granted where nobody says; the endpoint's own refusal is understood too."""

_PATH = "/chat/completions"
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)


class OpenAIModel:
    """A chat model behind an OpenAI-compatible endpoint; open it with :func:`open_endpoint`.

    Tokens are bounded from above by bytes, since the endpoint's tokenizer is not at hand.

    Args:
        endpoint: Model name, URL and key.
        client: An SDK client with its retries off.
        settings: Timeout, retries, rate, concurrency, context.
        waits: Back-off between attempts.
        clock: For a ``Retry-After`` given as a date.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        client: openai.AsyncOpenAI,
        settings: ModelSettings,
        waits: Waits,
        clock: Clock,
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._settings = settings
        self._calls = Calls(endpoint, settings=settings, waits=waits, clock=clock)
        # Through the standard logger, so that a program that embeds Assay hears it where it listens.
        self._log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
            logging.getLogger("assay.models"),
            processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        self._noticed: set[str] = set()

    @property
    def identity(self) -> str:
        """``openai:NAME@URL``."""
        return self._endpoint.identity

    @property
    def context_tokens(self) -> int:
        """As set, else :data:`CONTEXT_TOKENS`."""
        return self._settings.context_tokens or CONTEXT_TOKENS

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """A bound from above, in the order of the bytes of the text."""
        return bound_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        require_room(self, request)
        with_logprobs = request.parameters.top_logprobs > 0
        assembler = Assembler(sink=sink, with_logprobs=with_logprobs)

        async def once() -> Completion:
            nonlocal assembler
            assembler = Assembler(sink=sink, with_logprobs=with_logprobs)
            await self._ask(request, assembler, streamed=sink is not None)
            self._notice_another_model(assembler.model)
            return assembler.finish(lambda text: self._counted(request, text))

        return await self._calls.make(once, is_out=lambda: assembler.has_text)

    async def _ask(self, request: Request, assembler: Assembler, *, streamed: bool) -> None:
        body = body_of(request, model=self._endpoint.name, limit_field=self._endpoint.limit_field)
        await (self._stream if streamed else self._fetch)(body, assembler)

    async def _fetch(self, body: dict[str, object], assembler: Assembler) -> None:
        response = await self._client.post(_PATH, cast_to=httpx2.Response, body=body)
        assembler.add(self._json_of(response), streamed=False)

    async def _stream(self, body: dict[str, object], assembler: Assembler) -> None:
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        stream = await self._client.post(
            _PATH, cast_to=object, body=body, stream=True, stream_cls=openai.AsyncStream[object]
        )
        async with stream:
            if _kind(stream.response).startswith("application/json"):
                # Some endpoints do not stream whatever they are asked for.
                await stream.response.aread()
                assembler.add(self._json_of(stream.response), streamed=False)
                return
            try:
                async for chunk in stream:
                    assembler.add(chunk, streamed=True)
            except _NO_JSON as error:
                raise MalformedAnswer(f"expected JSON in the stream: {error}") from error
        if not assembler.is_finished:
            self._require_events(stream.response, assembler)
            raise Failed("the stream was cut off", is_final=assembler.has_text)

    def _json_of(self, response: httpx2.Response) -> object:
        try:
            answer: object = json.loads(response.content)
        except _NO_JSON as error:
            raise MalformedAnswer(
                f"expected JSON from {self.identity}, got {_kind(response)!r} "
                f"starting {self._endpoint.start_of(response.content)}"
            ) from error
        return answer

    def _require_events(self, response: httpx2.Response, assembler: Assembler) -> None:
        """A page that is no stream was not cut off: asking again would bring the same page."""
        kind = _kind(response)
        if not assembler.has_text and not kind.startswith("text/event-stream"):
            raise MalformedAnswer(f"expected a stream from {self.identity}, got {kind!r}")

    def _counted(self, request: Request, text: str) -> Usage:
        answer = min(len(text.encode()), request.parameters.max_tokens)
        return Usage(prompt_tokens=self.count_tokens(request.messages), completion_tokens=answer)

    def _notice_another_model(self, answered: str | None) -> None:
        asked = self._endpoint.name
        if answered is None or answered.startswith(asked) or answered in self._noticed:
            return
        if len(self._noticed) < 100:  # noqa: PLR2004 - an endpoint that invents names must not fill memory
            self._noticed.add(answered)
        self._log.warning("model.answered_as_another", asked=asked, answered=answered[:100])


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "no content type")


@asynccontextmanager
async def open_endpoint(  # noqa: PLR0913 - what a test or a user may set, each by name
    name: str,
    *,
    settings: ModelSettings,
    base_url: str | None,
    env: Mapping[str, str],
    waits: Waits = WAITS,
    clock: Clock | None = None,
) -> AsyncGenerator[OpenAIModel]:
    """Open a model at an endpoint; its connections are closed when the block ends.

    Args:
        name: The model's name there.
        settings: Timeout, retries, rate, concurrency, context.
        base_url: The API's root; ``None`` takes ``OPENAI_BASE_URL``, else OpenAI's.
        env: Where ``OPENAI_API_KEY`` is looked up.
        waits: Back-off between attempts.
        clock: For a ``Retry-After`` given as a date; ``None`` is the machine's.

    Raises:
        ConfigError: If the URL is unusable or the key is missing.
    """
    endpoint = Endpoint.of(name, base_url=base_url, env=env)
    async with open_client(endpoint, settings) as client:
        yield OpenAIModel(
            endpoint, client=client, settings=settings, waits=waits, clock=clock or SystemClock()
        )
