"""Runs examples through methods, one decision at a time, so that it can stop anywhere and go on.

Nothing in this file can see a key: it takes ``Example``s only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from assay.errors import BudgetExceeded, ModelUnavailable
from assay.guards.budget import Budget, Limits
from assay.guards.coalitions import coalition_of, grand, members
from assay.guards.failing import review_with_policy
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import (
    Ask,
    Case,
    ChatModel,
    Decision,
    EvidenceSource,
    Experimenter,
    Guard,
    Ledger,
    LikelihoodModel,
    OnGuardFailure,
    Outcome,
    Parameters,
    Renderer,
)
from assay.guards.tasks import SUMMARISE
from assay.runtime.prompts import canonical_order, make_renderer
from assay.runtime.summaries import summary_candidate
from assay.scenarios.folder import RunFolder
from assay.scenarios.paying import NotedCache
from assay.scenarios.runs import Paid, Row, RunConfig, Unit
from assay.scenarios.schema import Example
from assay.stores.bank import memory_bank
from assay.stores.hybrid import EvidenceSearch
from assay.stores.protocols import Bank, Cache, Clock, Embedder
from assay.stores.records import Candidate, Namespace

WHOLE_BANK = frozenset({"full_history"})
"""Methods that are shown every record of the bank instead of the best K."""


Guards: TypeAlias = Callable[[str], Guard]
"""From a method's name to the guard."""


class Equipment(NamedTuple):
    """What a run works with, opened and closed by the caller.

    Attributes:
        model: What answers.
        likelihood: The same model, where it can tell likelihoods.
        embedder: For retrieval and evidence.
        cache: Answers paid for, in this run and before.
        guard: From a method's name to the guard.
        renderings: Perturbations by name.
        clock: Times the decisions.
    """

    model: ChatModel
    likelihood: LikelihoodModel | None
    embedder: Embedder
    cache: Cache
    guard: Guards
    renderings: Mapping[str, Callable[[str], str]]
    clock: Clock


class Progress(NamedTuple):
    """After a decision: how many of how many are taken, and which one it was."""

    done: int
    total: int
    row: Row | None


Watcher = Callable[[Progress], None]


async def run(
    folder: RunFolder,
    examples: Sequence[Example],
    config: RunConfig,
    equipment: Equipment,
    *,
    watch: Watcher = lambda _: None,
) -> list[Row]:
    """Take every decision that is not in the folder yet; gives all of them, in a fixed order.

    Methods of one example run one after the other in the order of the configuration, so which of
    them pays for a shared question does not depend on timing.

    Raises:
        ModelUnavailable: If the model does not answer; what was decided stays in the folder.
        CassetteMiss: If a replay does not know a question.
    """
    rows = {row.unit: row for row in await folder.rows()}
    earlier = _by_unit(await folder.paid())
    total = len(examples) * len(config.methods)
    for example in examples:
        missing = [m for m in config.methods if (example.id, m) not in rows]
        if not missing:
            continue
        watch(Progress(len(rows), total, None))
        bench = await _prepare(example, config, equipment)
        for method in missing:
            unit = (example.id, method)
            row = await bench.decide(method, folder, earlier.get(unit, {}))
            await folder.append(row)
            rows[unit] = row
            watch(Progress(len(rows), total, row))
    return [rows[example.id, method] for example in examples for method in config.methods]


def _by_unit(paid: Sequence[Paid]) -> dict[Unit, dict[str, Paid]]:
    units: dict[Unit, dict[str, Paid]] = {}
    for one in paid:
        units.setdefault((one.example, one.method), {})[one.key] = one
    return units


async def _prepare(example: Example, config: RunConfig, equipment: Equipment) -> "_Bench":
    """Fill a bank with an example; memories and archive only, nothing of its key."""
    bank = memory_bank(embedder=equipment.embedder, clock=equipment.clock)
    await bank.store.write(example.records)
    await bank.archive.append(example.turns)
    namespace = Namespace(f"{config.suite}/{example.id}")
    evidence = EvidenceSearch(bank.archive, equipment.embedder, namespace)
    return _Bench(example, namespace, bank, evidence, config, equipment)


class _Bench(NamedTuple):
    """One example, its bank filled, ready for every method."""

    example: Example
    namespace: Namespace
    bank: Bank
    evidence: EvidenceSource
    config: RunConfig
    equipment: Equipment

    async def decide(self, method: str, folder: RunFolder, earlier: dict[str, Paid]) -> Row:
        started = self.equipment.clock.monotonic()
        candidates = await self._candidates(method)
        cache = NotedCache(
            self.equipment.cache,
            (self.example.id, method),
            model=self.equipment.model,
            note=folder.append_paid,
        )
        laboratory = self._laboratory(candidates, cache)
        case = Case(question=self.example.question, candidates=candidates, evidence=self.evidence)
        on_failure = self.config.settings.guard.on_guard_failure
        # A deadline makes "no answer" an outcome; without one the run stops here and goes on later.
        has_deadline = self.config.settings.budget.seconds is not None
        experimenter = laboratory if has_deadline else Insisting(laboratory)
        decision = await reviewed(self.equipment.guard(method), case, experimenter, on_failure)
        status, answer = await self._answer(decision, candidates, laboratory)
        lost = [paid for key, paid in earlier.items() if key not in cache.noted]
        return Row(
            example=self.example.id,
            method=method,
            candidates=tuple(candidate.record.id for candidate in candidates),
            decision=decision,
            status=status,
            answer=answer,
            spent=_with_earlier(laboratory.ledger(), lost),
            seconds=self.equipment.clock.monotonic() - started,
        )

    async def _candidates(self, method: str) -> tuple[Candidate, ...]:
        limit = len(self.example.records) if method in WHOLE_BANK else self.config.k
        found = await self.bank.retriever.retrieve(
            self.namespace, self.example.question, limit=limit, at=self.example.now
        )
        return canonical_order(found, seed=self.config.seed)

    def _laboratory(self, candidates: Sequence[Candidate], cache: Cache) -> Laboratory:
        budget = self.config.settings.budget
        return Laboratory(
            model=self.equipment.model,
            render=self._renderer(candidates, frozenset()),
            cache=cache,
            namespace=self.namespace,
            budget=Budget(
                Limits(
                    calls=budget.calls,
                    tokens=budget.tokens,
                    money=budget.money,
                    seconds=budget.seconds,
                )
            ),
            concurrency=self.config.concurrency,
            record_ids=[candidate.record.id for candidate in candidates],
            likelihood=self.equipment.likelihood,
            price=self.config.settings.price_of(self.equipment.model.identity),
        )

    def _renderer(self, candidates: Sequence[Candidate], flagged: frozenset[int]) -> Renderer:
        settings = self.config.settings
        return make_renderer(
            model=self.equipment.model.identity,
            question=self.example.question,
            candidates=candidates,
            now=self.example.now,
            seed=self.config.seed,
            parameters=Parameters(
                max_tokens=settings.guard.answer_tokens,
                temperature=settings.prompt.temperature,
                seed=self.config.seed,
            ),
            renderings=self.equipment.renderings,
            instructions=settings.prompt.instructions or None,
            recent_tokens=settings.prompt.recent_tokens,
            flagged=coalition_of(flagged),
        )

    async def _answer(
        self, decision: Decision, candidates: Sequence[Candidate], laboratory: Laboratory
    ) -> tuple[str, str]:
        """Status and text of the final answer; flagged records are marked in its prompt."""
        admitted = [i for i, j in enumerate(decision.judgements) if j.admitted]
        flagged = frozenset(i for i, j in enumerate(decision.judgements) if j.flagged)
        ask = Ask(coalition_of(admitted))
        try:
            if decision.shown_as == "summary" and admitted:
                return await self._answer_from_summary(ask, candidates, laboratory)
            if flagged:
                request = self._renderer(candidates, flagged)(ask)
                shown = [candidates[i].record.id for i in admitted]
                completion = await laboratory.answer(request, record_ids=shown)
                return "answered", completion.text
            outcome = await laboratory.outcome(ask)
        except BudgetExceeded as error:
            return "over_budget", str(error)
        if outcome.status == "unavailable":
            raise ModelUnavailable(outcome.detail)
        return outcome.status, outcome.text

    async def _answer_from_summary(
        self, ask: Ask, candidates: Sequence[Candidate], laboratory: Laboratory
    ) -> tuple[str, str]:
        """The same, with the summary that the guard asked for in the place of the records."""
        asked = msgspec.structs.replace(ask, rendering=SUMMARISE)
        summary = await laboratory.outcome(asked)
        shown = [candidates[i] for i in members(ask.coalition)]
        candidate = summary_candidate(summary, shown, now=self.example.now)
        request = self._renderer([candidate], frozenset())(Ask(grand(1)))
        ids = [candidate.record.id for candidate in shown]
        completion = await laboratory.answer(request, record_ids=ids)
        return "truncated" if completion.finish_reason == "length" else "answered", completion.text


class Insisting:
    """A laboratory in which a model that cannot be reached ends the run, which can be resumed.

    A decision made in spite of it would stand in the results, and no resume would take it again.

    Args:
        laboratory: The real one.
    """

    def __init__(self, laboratory: Experimenter) -> None:
        self._laboratory = laboratory

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        """One outcome per ask.

        Raises:
            ModelUnavailable: If one of them is that; those answered are in the cache.
        """
        outcomes = await self._laboratory.outcomes(asks)
        for outcome in outcomes:
            if outcome.status == "unavailable":
                raise ModelUnavailable(outcome.detail)
        return outcomes

    def ledger(self) -> Ledger:
        """Of the real one."""
        return self._laboratory.ledger()


async def reviewed(
    guard: Guard,
    case: Case,
    laboratory: Experimenter,
    on_failure: OnGuardFailure = "withhold_all",
) -> Decision:
    """The guard's decision; where it cannot decide, the policy's, and the decision says so.

    Raises:
        GuardFailed: If the policy is ``fail_turn``: the run ends.
    """
    return await review_with_policy(guard, case, laboratory, on_failure, None)


def _with_earlier(ledger: Ledger, lost: Sequence[Paid]) -> Ledger:
    """Add what an interrupted attempt at this decision had already paid for."""
    return msgspec.structs.replace(
        ledger,
        cache_hits=ledger.cache_hits - len(lost),
        live=ledger.live + len(lost),
        tokens=ledger.tokens + sum(paid.tokens for paid in lost),
    )
