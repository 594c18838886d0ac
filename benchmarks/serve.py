"""Time to the first token through ``assay serve``, beside the bare endpoint it stands in front of.

Run: ``python benchmarks/serve.py [--seconds 0.05] [--rounds 20]``. The endpoint is a small one on this machine that
waits ``--seconds`` before its first token. Five records lie in each user's memory. Prints a table: milliseconds to
the first token (median), model calls a turn, and the ratio to the bare endpoint.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import openai
import uvicorn
from rich.console import Console
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from assay.runtime.http.app import make_app
from assay.runtime.http.service import open_service
from assay.runtime.http.serving import bind, listen
from assay.runtime.settings import ServeSettings, Settings
from assay.runtime.wiring import open_runtime
from assay.stores.records import Origin

KEY = "sk-benchmark"
WORDS = "My cat is called Miso and she sleeps a lot .".split()
FACTS = [
    f"My {what} is called {name}."
    for what, name in zip(
        ["cat", "dog", "boat", "street", "sister"],
        ["Miso", "Rex", "Gull", "Elm", "Ida"],
        strict=True,
    )
]
ROUNDS_MOST = 50
QUESTION = "What is my cat called?"


class Endpoint:
    """A model that takes its time; counts how often it was asked."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls = 0

    async def answer(self, request: Request) -> Response:
        """Answer a chat request."""
        body = await request.json()
        self.calls += 1
        await anyio.sleep(self.seconds)
        if body.get("stream"):
            return StreamingResponse(_chunks(), media_type="text/event-stream")
        message = {"role": "assistant", "content": " ".join(WORDS)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 11, "total_tokens": 20}
        return JSONResponse({"id": "x", "model": "bench", "choices": [choice], "usage": usage})


async def _chunks() -> AsyncGenerator[bytes]:
    for word in WORDS:
        yield _event({"content": word + " "}, None)
    yield _event({}, "stop") + b"data: [DONE]\n\n"


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "x", "object": "chat.completion.chunk", "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@asynccontextmanager
async def bare(endpoint: Endpoint) -> AsyncGenerator[str]:
    """The endpoint at an address of its own."""
    app = Starlette(routes=[Route("/v1/chat/completions", endpoint.answer, methods=["POST"])])
    with await bind(ServeSettings(port=0)) as listening:
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            server.should_exit = True


@asynccontextmanager
async def guarded(base_url: str, guard: str, bank: Path) -> AsyncGenerator[str]:
    """The service in front of it, every user with five records."""
    serve = ServeSettings(port=0)
    stop, started = anyio.Event(), anyio.Event()
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            open_runtime(
                model="openai:bench",
                base_url=base_url,
                bank=bank,
                guard=guard,
                settings=Settings(serve=serve),
                embedder="hashing",
            )
        )
        service = await stack.enter_async_context(
            open_service(runtime, model="bench", keys={KEY: ""})
        )
        origin = Origin(writer="user", channel="import")
        for number in range(ROUNDS_MOST):
            for fact in FACTS:
                await runtime.remember(f"u{number}", fact, origin=origin)
        listening = stack.enter_context(await bind(serve))
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await listen(make_app(service), service, listening, started=started.set, stop=stop)

            group.start_soon(run)
            await started.wait()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            stop.set()


async def first_token(client: openai.AsyncOpenAI, user: str) -> float:
    """Milliseconds until the first token of one streamed answer; the rest is read."""
    began = time.perf_counter()
    stream = await client.chat.completions.create(
        model="bench", user=user, messages=[{"role": "user", "content": QUESTION}], stream=True
    )
    first = 0.0
    async for chunk in stream:
        if not first and chunk.choices and chunk.choices[0].delta.content:
            first = time.perf_counter() - began
    return 1000 * first


async def measured(
    base_url: str, endpoint: Endpoint, rounds: int, *, same: bool
) -> tuple[float, float]:
    """Median milliseconds and model calls a turn; ``same`` asks as one user, so that answers are known."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY) as client:
        await first_token(client, "u0")  # connections, caches
        before = endpoint.calls
        users = ["u0" if same else f"u{number}" for number in range(1, rounds + 1)]
        times = [await first_token(client, user) for user in users]
    return statistics.median(times), (endpoint.calls - before) / rounds


async def main(seconds: float, rounds: int) -> None:
    """Measure and print."""
    endpoint = Endpoint(seconds)
    table = Table("way", "first token, ms", "calls a turn", "ratio")
    async with bare(endpoint) as base_url:
        base, calls = await measured(base_url, endpoint, rounds, same=False)
        table.add_row("bare endpoint", f"{base:.1f}", f"{calls:.1f}", "1.00")
        for name, guard, same in (
            ("assay, no guard", "vector", False),
            ("assay, panel", "panel", False),
            ("assay, panel, asked before", "panel", True),
        ):
            with tempfile.TemporaryDirectory() as folder:
                async with guarded(base_url, guard, Path(folder)) as url:
                    took, calls = await measured(url, endpoint, rounds, same=same)
            table.add_row(name, f"{took:.1f}", f"{calls:.1f}", f"{took / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.05, help="the endpoint's own wait")
    parser.add_argument(
        "--rounds", type=int, default=20, help=f"turns each, at most {ROUNDS_MOST - 1}"
    )
    arguments = parser.parse_args()
    anyio.run(main, arguments.seconds, min(arguments.rounds, ROUNDS_MOST - 1))
