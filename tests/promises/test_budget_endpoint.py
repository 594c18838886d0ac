"""P9: the endpoint's own counter is the judge of a budget, retries and calls in flight included."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import BudgetExceeded
from assay.guards.budget import Budget, Limits, Price
from assay.guards.coalitions import Coalition
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import Ask, Message, Parameters, Request
from assay.runtime.clock import StoppedClock
from assay.runtime.models.calling import Waits
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.models.openai import OpenAIModel
from assay.runtime.settings import ModelSettings
from assay.stores.memory import InMemoryCache
from assay.stores.records import Namespace

from .conftest import Promise
from .virtual_time import virtually

STATEMENT = "a budget is never exceeded, retries and calls in flight included"
PRICE = Price(prompt=3.0, completion=15.0)
NAME = "m"


class Fault(NamedTuple):
    """What the endpoint does with one attempt.

    Attributes:
        status: HTTP status; 0 closes the connection.
        seconds: Before it answers.
        retry_after: The header, if any.
    """

    status: int = 200
    seconds: float = 0.0
    retry_after: str = ""


class CountingEndpoint:
    """Answers by a list of faults, one an attempt, then rightly; counts what it is sent and bills."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self.attempts = 0
        self.running = 0
        self.most_running = 0
        self.billed = 0
        self.money = 0.0
        self.answered: Counter[str] = Counter()

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        fault = self._faults[self.attempts] if self.attempts < len(self._faults) else Fault()
        self.attempts += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await anyio.sleep(fault.seconds)
        finally:
            self.running -= 1
            self._bill(request, written=0)
        return self._response(request, fault)

    def _response(self, request: httpx2.Request, fault: Fault) -> httpx2.Response:
        if fault.status == 0:
            raise httpx2.ReadError("closed")
        if fault.status != 200:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            return httpx2.Response(fault.status, json={"error": {}}, headers=headers)
        self.answered[request.content.decode()] += 1
        self._bill(request, written=1, read=0)
        return httpx2.Response(200, json=_completion())

    def _bill(self, request: httpx2.Request, *, written: int, read: int = 20) -> None:
        self.billed += read + written
        self.money += PRICE.of(read, written)


def _completion() -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 1}
    return {"model": NAME, "choices": [choice], "usage": usage}


class Line:
    """One SDK client for all runs, connected to the endpoint of the run."""

    def __init__(self) -> None:
        self.endpoint = CountingEndpoint([])
        transport = httpx2.MockTransport(self._answer)
        http = httpx2.AsyncClient(transport=transport)
        self._client = openai.AsyncOpenAI(
            api_key="k", base_url="http://fake/v1", max_retries=0, http_client=http
        )
        # A client asks in a thread what machine this is, once; a thread has no virtual time.
        anyio.run(self.model(0).complete, render(Ask(Coalition(0))))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return await self.endpoint.answer(request)

    def model(self, retries: int) -> OpenAIModel:
        return OpenAIModel(
            Endpoint(name=NAME, base_url="http://fake/v1", key="k"),
            client=self._client,
            settings=ModelSettings(timeout=3.0, retries=retries, retry_seconds=20.0),
            waits=Waits(0.5, 4.0),
            clock=StoppedClock(),
        )


def render(ask: Ask) -> Request:
    message = Message(role="user", content=f"candidates {ask.coalition:b}")
    return Request(model=NAME, messages=(message,), parameters=Parameters(max_tokens=4))


def laboratory(model: OpenAIModel, budget: Budget, concurrency: int) -> Laboratory:
    return Laboratory(
        model=model,
        render=render,
        cache=InMemoryCache(),
        namespace=Namespace("ann"),
        budget=budget,
        concurrency=concurrency,
        price=PRICE,
    )


batches = st.lists(
    st.lists(st.integers(0, 15).map(Coalition).map(Ask), min_size=1, max_size=5),
    min_size=1,
    max_size=4,
)
faults = st.lists(
    st.builds(
        Fault,
        status=st.sampled_from([200, 200, 500, 429, 400, 0]),
        seconds=st.sampled_from([0.0, 0.1, 1.0, 5.0]),
        retry_after=st.sampled_from(["", "1", "61", "soon"]),
    ),
    max_size=24,
)


class Trial(NamedTuple):
    """One random run.

    Attributes:
        asked: Questions of each concurrent caller.
        fuses: Virtual seconds after which a caller gives up.
        calls: Limit of calls.
        tokens: Limit of tokens.
    """

    asked: list[list[Ask]]
    faults: list[Fault]
    fuses: list[float]
    calls: int
    tokens: int
    retries: int
    concurrency: int


trials = st.builds(
    Trial,
    asked=batches,
    faults=faults,
    fuses=st.lists(st.sampled_from([0.05, 2.0, 60.0]), min_size=4, max_size=4),
    calls=st.integers(2, 20),
    tokens=st.integers(300, 5000),
    retries=st.integers(0, 3),
    concurrency=st.integers(1, 4),
)


async def run(line: Line, trial: Trial) -> tuple[CountingEndpoint, Budget, Laboratory]:
    """Every caller asks at the same time; who is refused goes without."""
    endpoint = line.endpoint = CountingEndpoint(trial.faults)
    budget = Budget(Limits(calls=trial.calls, tokens=trial.tokens, money=0.01))
    lab = laboratory(line.model(trial.retries), budget, trial.concurrency)

    async def ask(batch: list[Ask], seconds: float) -> None:
        with anyio.move_on_after(seconds):
            try:
                await lab.outcomes(batch)
            except BudgetExceeded:
                return

    async with anyio.create_task_group() as callers:
        for batch, seconds in zip(trial.asked, trial.fuses, strict=False):
            callers.start_soon(ask, batch, seconds)
    return endpoint, budget, lab


@pytest.mark.promise("P9", STATEMENT)
def test_the_endpoint_counts_no_more_than_the_budget(promise: Promise) -> None:
    line, runs = Line(), list[int]()

    def check(trial: Trial) -> None:
        endpoint, budget, lab = virtually(run(line, trial))

        assert endpoint.attempts <= trial.calls
        assert endpoint.billed <= trial.tokens
        assert endpoint.money <= 0.01
        assert endpoint.most_running <= trial.concurrency
        assert endpoint.attempts <= lab.ledger().live == budget.spent().calls
        assert endpoint.billed <= budget.spent().tokens
        runs.append(endpoint.attempts)

    searched(check, promise.times(120, 3000))

    promise.kept(f"budget overshoot = 0 over {len(runs):,} random runs, {sum(runs):,} attempts")


@pytest.mark.promise("P9", "no coalition is paid for twice")
def test_no_answer_is_bought_twice(promise: Promise) -> None:
    line, answers = Line(), list[int]()

    def check(trial: Trial) -> None:
        endpoint, _, _ = virtually(run(line, trial))

        assert set(endpoint.answered.values()) <= {1}
        answers.append(len(endpoint.answered))

    searched(check, promise.times(80, 2000))

    promise.kept(f"{sum(answers):,} answers over {len(answers):,} random runs, none bought twice")


def searched(check: Callable[[Trial], None], examples: int) -> None:
    """Try a property on so many random trials."""
    settings(max_examples=examples, deadline=None, database=None)(given(trial=trials)(check))()
