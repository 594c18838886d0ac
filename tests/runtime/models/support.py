"""What the tests of the models share."""

from contextlib import AbstractAsyncContextManager

from assay.guards.protocols import Message, Parameters, Request
from assay.runtime.models.calling import Waits
from assay.runtime.models.embedding import EndpointEmbedder, open_embedding_endpoint
from assay.runtime.models.openai import OpenAIModel, open_endpoint
from assay.runtime.settings import ModelSettings

QUICK = Waits(first=0.001, longest=0.002)
KEY = "sk-canary-1234567890"


def asking(
    text: str = "Where does Ann live?", *, model: str = "m", system: str = "", **parameters: object
) -> Request:
    """A request of one user message."""
    head = (Message(role="system", content=system),) if system else ()
    return Request(
        model=model,
        messages=(*head, Message(role="user", content=text)),
        parameters=Parameters(**{"max_tokens": 16, **parameters}),  # type: ignore[arg-type]
    )


def endpoint(  # noqa: PLR0913
    url: str,
    *,
    timeout: float = 5.0,
    retries: int = 2,
    retry_seconds: float = 10.0,
    concurrency: int = 4,
    requests_per_minute: int = 0,
    context_tokens: int = 0,
) -> AbstractAsyncContextManager[OpenAIModel]:
    """A model at a fault server, with short waits."""
    settings = ModelSettings(
        timeout=timeout,
        retries=retries,
        retry_seconds=retry_seconds,
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        context_tokens=context_tokens,
    )
    return open_endpoint(
        "m", settings=settings, base_url=url, env={"OPENAI_API_KEY": KEY}, waits=QUICK
    )


def embedding_endpoint(
    url: str, *, timeout: float = 5.0, retries: int = 2, retry_seconds: float = 10.0
) -> AbstractAsyncContextManager[EndpointEmbedder]:
    """An embedder at a fault server, with short waits."""
    settings = ModelSettings(timeout=timeout, retries=retries, retry_seconds=retry_seconds)
    return open_embedding_endpoint(
        "e", settings=settings, base_url=url, env={"OPENAI_API_KEY": KEY}, waits=QUICK
    )
