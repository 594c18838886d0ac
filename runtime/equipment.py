"""What the handlers of a turn work with; put together in ``wiring``."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from assay.guards.budget import Budget, Limits
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import ChatModel, Guard, Parameters, Renderer
from assay.runtime.bus import MakeBus
from assay.runtime.distributed.hub import Hub
from assay.runtime.jobs import JobQueue
from assay.runtime.settings import Settings
from assay.stores.checks import is_external
from assay.stores.protocols import Bank, Clock
from assay.stores.records import Namespace, RecordId


def new_name() -> str:
    """A name that no other process gives."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Everything concrete, behind protocols.

    Attributes:
        bank: Records, archive, journal and cache.
        model: Answers.
        guard: Decides.
        settings: Sizes, limits, policies.
        clock: Time.
        seed: Of prompts and generation.
        new_session: Makes ids of sessions.
        new_job: Makes ids of jobs, and names of requests that have none; unique over all processes.
        owner: Names this process among those that share the bank.
        make_bus: Makes the bus of a session's turns; ``None``: one in this process.
        jobs: Where the turns of sessions are handed out; ``None``: they run in this process.
        hub: The bus between processes; ``None``: there is none.
        evaluators: Gives the model that a namespace's experiments ask; ``None``: the model itself.
    """

    bank: Bank
    model: ChatModel
    guard: Guard
    settings: Settings
    clock: Clock
    seed: int
    new_session: Callable[[], str]
    new_job: Callable[[], str] = new_name
    owner: str = "this process"
    make_bus: MakeBus | None = None
    jobs: JobQueue | None = None
    hub: Hub | None = None
    evaluators: Callable[[Namespace], ChatModel] | None = None

    @property
    def is_remote(self) -> bool:
        """Whether what the model is shown leaves this machine."""
        return is_external(self.model.identity)

    def reply_parameters(self, tools: str) -> Parameters:
        """How the reply is generated."""
        prompt = self.settings.prompt
        return Parameters(
            max_tokens=prompt.answer_tokens,
            temperature=prompt.temperature,
            seed=self.seed,
            tools=tools,
        )

    def experiment_parameters(self, tools: str) -> Parameters:
        """How experiments generate: as the reply, but greedy and shorter."""
        return Parameters(max_tokens=self.settings.guard.answer_tokens, seed=self.seed, tools=tools)

    def experiments(
        self,
        namespace: Namespace,
        render: Renderer,
        record_ids: tuple[RecordId, ...],
        sources: tuple[RecordId, ...] = (),
    ) -> Laboratory:
        """The laboratory of one review, under the budget of a turn; ``sources``: turns it shows."""
        budget = self.settings.budget
        limits = Limits(
            calls=budget.calls, tokens=budget.tokens, money=budget.money, seconds=budget.seconds
        )
        model = self.evaluators(namespace) if self.evaluators else self.model
        return self._laboratory(
            model, namespace, render, limits, record_ids=record_ids, sources=sources
        )

    def reply_only(
        self, namespace: Namespace, render: Renderer, sources: tuple[RecordId, ...] = ()
    ) -> Laboratory:
        """The laboratory of one reply, which the budget does not buy: one call, and its retries."""
        limits = Limits(calls=1 + self.settings.model.retries)
        return self._laboratory(self.model, namespace, render, limits, sources=sources)

    def _laboratory(  # noqa: PLR0913  # what differs between the two
        self,
        model: ChatModel,
        namespace: Namespace,
        render: Renderer,
        limits: Limits,
        *,
        record_ids: tuple[RecordId, ...] = (),
        sources: tuple[RecordId, ...],
    ) -> Laboratory:
        return Laboratory(
            model=model,
            render=render,
            cache=self.bank.cache,
            namespace=namespace,
            budget=Budget(limits, monotonic=self.clock.monotonic),
            concurrency=self.settings.model.concurrency,
            record_ids=record_ids,
            sources=sources,
            price=self.settings.price_of(self.model.identity),
        )
