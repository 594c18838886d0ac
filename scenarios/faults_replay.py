"""Fault cases on a model: verify each, then clear it by every method, in one laboratory per case."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from assay.errors import BudgetExceeded, GuardError
from assay.guards.baselines_asking import Reflection
from assay.guards.budget import Budget, Limits
from assay.guards.clearance import RIGHT
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.live import graded
from assay.guards.clearing.probes import Batch, Clearing, ProbedValue, Spending, conduct
from assay.guards.coalitions import (
    Coalition,
    Utilities,
    coalition_of,
    grand,
    is_subset,
    size,
    subsets,
    without,
)
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import (
    Case,
    ChatModel,
    EvidenceSource,
    LikelihoodModel,
    Parameters,
    ValueFunction,
)
from assay.guards.values import ArchiveAgreement
from assay.runtime.prompts import make_renderer
from assay.runtime.settings import Settings
from assay.scenarios.faults_cohort import Cohort, Posed, archive_of, pose
from assay.scenarios.faults_folder import FaultsFolder
from assay.scenarios.faults_utility import ReferenceUtility, UtilityName, reference_utility
from assay.scenarios.faults_verifying import VERIFIED, verified
from assay.scenarios.games_methods import Method
from assay.scenarios.games_runner import all_methods
from assay.scenarios.games_scoring import CONCURRENCIES, GameScore
from assay.scenarios.locomo_faults import FaultCase, FaultStructure
from assay.stores.bank import memory_bank
from assay.stores.hybrid import EvidenceSearch
from assay.stores.protocols import Cache, Clock, Embedder
from assay.stores.records import Namespace

Protocol: TypeAlias = Literal["reference", "blind"]

LLM_FILTER = "llm_filter"
"""One prompt that asks the model which records it needs; the rest is withheld, unverified."""

METHODS: tuple[str, ...] = (
    "leave_one_out",
    "meclear_l4",
    "meclear_l8",
    "meclear",
    "shapley_exact",
    "exact_deletion",
    "contextcite",
    "banzhaf",
    LLM_FILTER,
    "levelwise",
    "pivot",
    "core_grow",
    "adaptive",
)
"""Compared by default; outside peers only when named."""

ASKING_ALL = frozenset({"shapley_exact", "exact_deletion", "banzhaf"})
"""Each asks every coalition; then all are asked in one batch first, so that prompts share prefixes."""

_A_MONTH = timedelta(days=30)


class FaultsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a case's row says; two equal ones write the same rows.

    Attributes:
        data_sha256: Of the cases and turns.
        protocol: ``reference``: methods are given the reference utility; ``blind``: agreement with
            the archive. Cases are verified and results judged by the reference either way.
        utility: Which reference utility.
        methods: In the order of the tables.
        model: As named by the user.
        base_url: Of the endpoint, for models behind one.
        embedder: For evidence, under the blind protocol.
        seed: Of prompts, of the choice of cases and of the methods' own choices.
        concurrency: Calls in flight, and the column of rounds.
        budget: Most evaluations per case and method; ``None``: as many as a method wants.
        bar: Agreement at which a context counts as right for the methods, under the blind protocol.
        settings: Prompt and endpoint settings.
    """

    data_sha256: str
    protocol: Protocol
    utility: UtilityName
    methods: tuple[str, ...]
    model: str
    base_url: str | None
    embedder: str
    seed: int
    concurrency: int
    budget: int | None
    settings: Settings
    bar: float = RIGHT


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one case came to.

    Attributes:
        case: Its id.
        conversation: Its LoCoMo id.
        structure: How its faults harm.
        verdict: ``verified``, or what the model does otherwise.
        scores: By method; empty unless verified.
        evaluations: Distinct questions asked for the case in all, cached or not.
        live: Calls that reached the model.
        seconds: Wall time.
    """

    case: str
    conversation: str
    structure: FaultStructure
    verdict: str
    scores: dict[str, GameScore] = {}
    evaluations: int = 0
    live: int = 0
    seconds: float = 0.0


class Bench(NamedTuple):
    """What a run works with, opened and closed by the caller.

    Attributes:
        model: What answers.
        likelihood: The same model, where it can tell likelihoods.
        embedder: For evidence, under the blind protocol.
        cache: Answers paid for, in this run and before.
        clock: Times the cases.
    """

    model: ChatModel
    likelihood: LikelihoodModel | None
    embedder: Embedder
    cache: Cache
    clock: Clock


Watcher: TypeAlias = Callable[[FaultRow], None]


async def replay(  # noqa: PLR0913  # what a run is made of
    folder: FaultsFolder[FaultRow],
    cohort: Cohort,
    cases: Sequence[FaultCase],
    config: FaultsConfig,
    bench: Bench,
    *,
    watch: Watcher = lambda _: None,
) -> list[FaultRow]:
    """Make every row that is not in the folder yet; gives all of them, in the order of the cases.

    Raises:
        ModelUnavailable: If the model does not answer; what was done stays in the folder.
    """
    rows = {row.case: row for row in await folder.rows()}
    numbers = {name: place for place, name in enumerate(sorted(cohort.turns))}
    methods = methods_named(config.methods)
    archives = _Archives(cohort, bench, used=config.protocol == "blind")
    for case in cases:
        if case.id not in rows:
            stage = _Stage(
                posed=pose(case, cohort.turns[case.conversation], seed=config.seed),
                number=numbers[case.conversation],
                evidence=await archives.of(case.conversation),
                config=config,
                bench=bench,
            )
            rows[case.id] = await stage.row(methods)
            await folder.append(rows[case.id])
        watch(rows[case.id])
    return [rows[case.id] for case in cases]


def methods_named(names: Sequence[str]) -> dict[str, Method | None]:
    """The searches by name; ``None`` for the one that is no search."""
    known = all_methods()
    return {name: None if name == LLM_FILTER else known[name] for name in names}


class Counted:
    """A value function as a search's source, with what the search asked of it (``ProbedValue``).

    Args:
        value: Asked once per distinct coalition.
        limit: Most of them; ``None``: any number.
    """

    def __init__(self, value: ValueFunction | ReferenceUtility, limit: int | None) -> None:
        self._value = value
        self._limit = limit
        self._known: dict[Coalition, float] = {}
        self.spending = Spending()

    async def __call__(self, probes: Batch) -> Utilities:
        asked = [probe.coalition for probe in probes]
        new = list(dict.fromkeys(c for c in asked if c not in self._known))
        left = len(new) if self._limit is None else self._limit - self.spending.evaluations
        if len(new) > left:
            raise BudgetExceeded("evaluations", needed=len(new), left=left)
        if new:
            self._known.update(zip(new, map(float, await self._value(new)), strict=True))
            self.spending.stages.append(len(new))
        return np.array([self._known[c] for c in asked], dtype=np.float64)


class _Stage(NamedTuple):
    """One case, ready to be verified and cleared."""

    posed: Posed
    number: int
    evidence: EvidenceSource
    config: FaultsConfig
    bench: Bench

    async def row(self, methods: Mapping[str, Method | None]) -> FaultRow:
        started = self.bench.clock.monotonic()
        laboratory = self._laboratory()
        reference = self._reference(laboratory)
        verdict = await verified(self.posed, reference)
        scores: dict[str, GameScore] = {}
        if verdict == VERIFIED:
            if ASKING_ALL & methods.keys():
                await reference(list(subsets(grand(len(self.posed.candidates)))))
            for name, method in methods.items():
                scores[name] = await self._scored(name, method, laboratory, reference)
        spent = laboratory.ledger()
        return FaultRow(
            case=self.posed.case.id,
            conversation=self.posed.case.conversation,
            structure=self.posed.case.structure,
            verdict=verdict,
            scores=scores,
            evaluations=spent.evaluations,
            live=spent.live,
            seconds=round(self.bench.clock.monotonic() - started, 3),
        )

    async def _scored(
        self,
        name: str,
        method: Method | None,
        laboratory: Laboratory,
        reference: ReferenceUtility,
    ) -> GameScore:
        n = len(self.posed.candidates)
        if method is None:
            found, spending = await self._filtered(laboratory)
        else:
            ask = Counted(self._value(laboratory, reference), self.config.budget)
            rng = np.random.default_rng(
                [self.config.seed, *map(zlib.crc32, (self.posed.case.id.encode(), name.encode()))]
            )
            source: ProbedValue = ask
            found = await conduct(method(n, Answers(), rng), source)
            spending = ask.spending
        [after] = await reference([without(grand(n), found.cleared)])
        return self._score(found, spending, right=bool(after >= RIGHT))

    def _value(
        self, laboratory: Laboratory, reference: ReferenceUtility
    ) -> ValueFunction | ReferenceUtility:
        if self.config.protocol == "reference":
            return reference
        agreement = ArchiveAgreement(
            laboratory, question=self.posed.case.question, evidence=self.evidence
        )
        return _Barred(agreement, self.config.bar)

    async def _filtered(self, laboratory: Laboratory) -> tuple[Clearing, Spending]:
        """What one prompt withholds; nothing where the model does not say."""
        case = Case(
            question=self.posed.case.question,
            candidates=self.posed.candidates,
            evidence=self.evidence,
        )
        try:
            decision = await Reflection(on_undecided="admit_flagged").review(case, laboratory)
        except GuardError:
            return Clearing(order=tuple(range(len(self.posed.candidates)))), Spending([1])
        out = [i for i, judgement in enumerate(decision.judgements) if not judgement.admitted]
        kept = [i for i in range(len(self.posed.candidates)) if i not in out]
        cleared = coalition_of(out)
        return Clearing(flagged=cleared, cleared=cleared, order=(*out, *kept)), Spending([1])

    def _score(self, found: Clearing, spending: Spending, *, right: bool) -> GameScore:
        harmful = self.posed.harmful
        top = coalition_of(found.order[: size(harmful)])
        return GameScore(
            conversation=self.number,
            structure=self.posed.case.structure,
            evaluations=spending.evaluations,
            rounds=tuple(spending.rounds(concurrency) for concurrency in CONCURRENCIES),
            found=size(Coalition(top & harmful)),
            harmful=size(harmful),
            complete=is_subset(harmful, found.flagged),
            exact=harmful == found.flagged,
            recovery=right,
            recovery_draw=right,
            extra=size(without(found.flagged, harmful)),
            extra_cleared=size(without(found.cleared, harmful)),
            silent=found.certificate == "recovered" and not right,
            stopped=found.stopped,
        )

    def _reference(self, laboratory: Laboratory) -> ReferenceUtility:
        case = self.posed.case
        return reference_utility(
            self.config.utility,
            laboratory,
            answer=case.answer,
            foil=case.foil,
            clean=without(grand(len(self.posed.candidates)), self.posed.harmful),
        )

    def _laboratory(self) -> Laboratory:
        settings = self.config.settings
        latest = max(candidate.record.ingested_at for candidate in self.posed.candidates)
        renderer = make_renderer(
            model=self.bench.model.identity,
            question=self.posed.case.question,
            candidates=self.posed.candidates,
            now=latest + _A_MONTH,
            seed=self.config.seed,
            parameters=Parameters(
                max_tokens=settings.guard.answer_tokens,
                temperature=settings.prompt.temperature,
                seed=self.config.seed,
            ),
            renderings={},
            instructions=settings.prompt.instructions or None,
        )
        return Laboratory(
            model=self.bench.model,
            render=renderer,
            cache=self.bench.cache,
            namespace=self.posed.namespace,
            budget=Budget(Limits()),
            concurrency=self.config.concurrency,
            record_ids=[candidate.record.id for candidate in self.posed.candidates],
            likelihood=self.bench.likelihood,
        )


class _Barred:
    """A value whose bar is one half, as the searches take it to be."""

    low = 0.0
    high = 1.0

    def __init__(self, value: ValueFunction, bar: float) -> None:
        self._value = value
        self._bar = bar

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        worth = await self._value(coalitions)
        return graded(worth, low=self._value.low, high=self._value.high, height=self._bar)


class _Archives:
    """The conversations as archives, each filled when its first case comes."""

    def __init__(self, cohort: Cohort, bench: Bench, *, used: bool) -> None:
        self._cohort = cohort
        self._embedder = bench.embedder
        self._bank = memory_bank(embedder=bench.embedder, clock=bench.clock)
        self._used = used
        self._filled: set[str] = set()

    async def of(self, conversation: str) -> EvidenceSource:
        namespace = Namespace(conversation)
        if self._used and conversation not in self._filled:
            turns = archive_of(self._cohort.turns[conversation], namespace)
            await self._bank.archive.append(turns)
            self._filled.add(conversation)
        return EvidenceSearch(self._bank.archive, self._embedder, namespace)
