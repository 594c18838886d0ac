"""Calls to one endpoint: attempts, waits, deadlines and the number in flight, bounded in one place."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import aiolimiter
import anyio
import anyio.to_thread
import httpx2
import openai
import stamina

from assay.errors import MalformedAnswer, ModelError, ModelUnavailable
from assay.guards.calls import call_under_way
from assay.runtime.models.bodies import BodyTooLarge, bound_body
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.models.sdk_errors import brief, translate
from assay.runtime.models.wire_log import only_names_logged
from assay.runtime.settings import ModelSettings
from assay.stores.protocols import Clock

T = TypeVar("T")


class Waits(NamedTuple):
    """Seconds between attempts where the endpoint does not say: ``first``, doubling to ``longest``."""

    first: float = 0.5
    longest: float = 20.0


WAITS = Waits()


class Failed(ModelUnavailable):
    """One attempt failed in a way worth retrying.

    Its own text is what may be logged, as who retries does: never the endpoint's words, which may
    repeat the prompt.

    Args:
        brief: What happened, in our words.
        told: The same with what the endpoint said, for the caller; empty: it said nothing.
        wait: Seconds the endpoint asks to wait.
        is_final: Text went out already, so another attempt would say it twice.
    """

    def __init__(
        self, brief: str, *, told: str = "", wait: float | None = None, is_final: bool = False
    ) -> None:
        super().__init__(brief)
        self.told = told or brief
        self.wait = wait
        self.is_final = is_final


def _nothing_out() -> bool:
    return False


class Calls:
    """Makes calls to one endpoint.

    Args:
        endpoint: Name, URL and key; for messages, which never show the key.
        settings: Timeout, retries, rate, concurrency.
        waits: Back-off between attempts.
        clock: For a ``Retry-After`` given as a date.
    """

    def __init__(
        self, endpoint: Endpoint, *, settings: ModelSettings, waits: Waits, clock: Clock
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._waits = waits
        self._clock = clock
        self._limiter = anyio.CapacityLimiter(settings.concurrency)
        rate = settings.requests_per_minute
        self._rate = aiolimiter.AsyncLimiter(rate, 60) if rate else None

    async def make(
        self, once: Callable[[], Awaitable[T]], *, is_out: Callable[[], bool] = _nothing_out
    ) -> T:
        """Make one call, with as many attempts as it takes and the settings and budget allow.

        Args:
            once: Makes one attempt; raises the SDK's errors, ``Failed`` or a ``ModelError``.
            is_out: Whether a part of the answer went out in this attempt: it is the last then.

        Raises:
            ModelUnavailable: When no attempt is left, with the last one's failure.
            ModelError: At once, where another attempt would not help.
        """
        started = anyio.current_time()
        tried: list[str] = []
        try:
            with anyio.fail_after(self._settings.retry_seconds):
                return await self._with_retries(once, is_out, tried, started)
        except Failed as error:
            tried = tried or [error.told]
        except ModelError as error:
            # What is wrong with an answer quotes it, and an answer may quote the key.
            raise type(error)(self._endpoint.without_key(str(error))) from error.__cause__
        except TimeoutError:
            tried.append(f"no answer within {self._settings.retry_seconds:g} s in all")
        seconds = anyio.current_time() - started
        raise ModelUnavailable(
            f"{self._endpoint.identity} could not be reached: {len(tried)} "
            f"attempt{'s' if len(tried) > 1 else ''} in {seconds:.1f} s, "
            f"the last: {tried[-1]}; check the base URL and that the endpoint is up"
        )

    async def _with_retries(
        self,
        once: Callable[[], Awaitable[T]],
        is_out: Callable[[], bool],
        tried: list[str],
        started: float,
    ) -> T:
        def backoff(error: Exception) -> bool | float:
            if not isinstance(error, Failed) or error.is_final:
                return False
            left = self._settings.retry_seconds - (anyio.current_time() - started)
            if error.wait is not None and error.wait >= left:
                return False
            return True if error.wait is None else error.wait

        async for attempt in stamina.retry_context(
            on=backoff,
            attempts=self._settings.retries + 1,
            timeout=self._settings.retry_seconds,
            wait_initial=self._waits.first,
            wait_max=self._waits.longest,
            wait_jitter=self._waits.first,
        ):
            with attempt:
                if attempt.num > 1 and not call_under_way().try_again():
                    tried[-1] += "; the budget has no attempt left"
                    raise Failed("the budget has no attempt left", is_final=True)
                try:
                    return await self._attempt(once, is_out)
                except Failed as error:
                    tried.append(error.told)
                    raise
        raise AssertionError("unreachable")

    async def _attempt(self, once: Callable[[], Awaitable[T]], is_out: Callable[[], bool]) -> T:
        if self._rate is not None:
            await self._rate.acquire()
        async with self._limiter:
            with anyio.move_on_after(self._settings.timeout), only_names_logged():
                try:
                    return await once()
                except openai.OpenAIError as error:
                    raise self._translated(error, is_final=is_out()) from error
                except httpx2.TransportError as error:
                    raise self._transport_error(error, is_final=is_out()) from error
        raise Failed(f"no answer within {self._settings.timeout:g} s", is_final=is_out())

    def _translated(self, error: openai.OpenAIError, *, is_final: bool) -> ModelError:
        if isinstance(error.__cause__, BodyTooLarge):
            return MalformedAnswer(str(error.__cause__))
        kind, message, wait = translate(error, secret=self._endpoint.key, now=self._clock.now())
        if kind is ModelUnavailable:
            return Failed(brief(error), told=message, wait=wait, is_final=is_final)
        return kind(f"{self._endpoint.identity}: {message}")

    def _transport_error(self, error: httpx2.TransportError, *, is_final: bool) -> ModelError:
        if isinstance(error, BodyTooLarge):
            return MalformedAnswer(str(error))
        name = type(error).__name__
        told = self._endpoint.without_key(f"{name}: {error}")
        return Failed(name, told=told, is_final=is_final)


@asynccontextmanager
async def open_client(
    endpoint: Endpoint, settings: ModelSettings
) -> AsyncGenerator[openai.AsyncOpenAI]:
    """A client of an endpoint that makes one attempt a call; its connections end with the block.

    Args:
        endpoint: Whose.
        settings: Timeout and concurrency.
    """
    # Building a client reads certificates: tens of milliseconds of file access.
    http = await anyio.to_thread.run_sync(_http_client, settings)
    async with http:
        yield openai.AsyncOpenAI(
            api_key=endpoint.key, base_url=endpoint.base_url, max_retries=0, http_client=http
        )


def _http_client(settings: ModelSettings) -> httpx2.AsyncClient:
    """Connections to an endpoint: bounded, unpacked, never redirected; blocks, so for a thread."""
    # Loads what counts retries where it is installed: else the first retry reads files on the loop.
    stamina.instrumentation.get_on_retry_hooks()
    return httpx2.AsyncClient(
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [bound_body]},
        timeout=httpx2.Timeout(settings.timeout),
        limits=httpx2.Limits(max_connections=settings.concurrency),
    )
