"""A real server on a free port of this machine, in the test's own loop."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec

from assay.guards.protocols import ChatModel, Completion, DeltaSink, Message, Request
from assay.runtime.http.app import make_app
from assay.runtime.http.inspector.routes import inspector_routes
from assay.runtime.http.service import Service, open_service
from assay.runtime.http.serving import bind, listen
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import ServeSettings, Settings
from assay.runtime.wiring import open_runtime

KEY = "sk-test-0001"
OTHER_KEY = "sk-test-0002"
KEYS = {KEY: "acme", OTHER_KEY: "umbrella"}
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Served:
    """A service and its address."""

    service: Service
    address: str
    stop: anyio.Event

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def figures(self) -> str:
        return self.service.metrics.text(active=0, waiting=0).decode()

    def client(self, key: str = KEY) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"}
        limits = httpx2.Limits(max_connections=None)
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=60, limits=limits)


@asynccontextmanager
async def served(
    *,
    model: ChatModel | None = None,
    guard: str = "panel",
    bank: Path | None = None,
    keys: Mapping[str, str] = KEYS,
    name: str = "scripted",
    **serve: object,
) -> AsyncGenerator[Served]:
    """A service over a scripted model; ``serve`` are its settings."""
    settings = Settings(serve=with_serve(**serve))
    stop, started = anyio.Event(), anyio.Event()
    async with (
        open_runtime(
            model=model or ScriptedModel(),
            guard=guard,
            bank=bank,
            settings=settings,
            embedder="hashing",
        ) as runtime,
        open_service(runtime, model=name, keys=keys) as service,
    ):
        with await bind(settings.serve) as listening:
            host, port = listening.getsockname()[:2]
            app = make_app(service, routes=inspector_routes(service))

            async def run() -> None:
                await listen(app, service, listening, started=started.set, stop=stop)

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await started.wait()
                try:
                    yield Served(service, f"http://{host}:{port}", stop)
                finally:
                    stop.set()


def with_serve(**fields: object) -> ServeSettings:
    return msgspec.convert({"port": 0, **fields}, ServeSettings)


def body(*texts: str, user: str = "ann", **more: object) -> dict[str, object]:
    """A chat request: messages of the user and the assistant in turn, the user's last."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return {"model": "scripted", "user": user, "messages": messages, **more}


class SlowModel(ScriptedModel):
    """Says its answer in pieces, each when it is allowed to; or after some seconds."""

    def __init__(self, *args: Any, seconds: float = 0.0, **more: Any) -> None:
        super().__init__(*args, **more)
        self.seconds = seconds
        self.may_end: anyio.Event | None = None
        self.entered = anyio.Event()

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        if self.seconds:
            await anyio.sleep(self.seconds)
        if sink is not None:
            self.entered.set()
            if self.may_end is not None:
                sink("Well")
                await self.may_end.wait()
        return await super().complete(request, sink=sink)


def texts_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)
