"""What a run is: its whole configuration, and what it writes down about each step. Plain data."""

from typing import Literal, TypeAlias

import msgspec

from assay.guards.protocols import Decision, Ledger, OnUndecided
from assay.runtime.settings import Settings
from assay.stores.records import RecordId

FORMAT = 1

Unit: TypeAlias = tuple[str, str]
"""Example id and method name: what a run decides in one step."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a run does; two equal ones do the same.

    Attributes:
        suite: Name of the benchmark.
        protocol: What the selectors may see.
        data: Absolute path of the data file.
        data_sha256: Of its bytes, so that a run never goes on over other data.
        methods: In the order of the report.
        model: As named by the user.
        base_url: Of the endpoint, for models behind one.
        cassette: File that every answer is also recorded to; empty: none.
        embedder: Name of the embedding model.
        k: Records retrieved per example.
        limit: Examples from the beginning of the file; ``None``: all.
        seed: Of ids, order, times, prompts, resampling.
        concurrency: Calls in flight.
        on_undecided: What becomes of records nothing decided about.
        perturbations: How many CMI shows of each candidate.
        tolerance: How far below 0 a stability may be, in units of utility.
        settings: Prompt, budget and endpoint settings.
    """

    suite: str
    protocol: Literal["blind", "published"]
    data: str
    data_sha256: str
    methods: tuple[str, ...]
    model: str
    base_url: str | None
    cassette: str
    embedder: str
    k: int
    limit: int | None
    seed: int
    concurrency: int
    on_undecided: OnUndecided
    settings: Settings
    perturbations: int = 1
    tolerance: float = 0.0


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What ``run.json`` holds.

    Attributes:
        format: Version of this layout.
        config: What the run does.
        identity: Identity of the model that answers.
        embedder: Identity of the embedder.
        command: As typed.
        started: When, ISO 8601.
        as_json: Whether the result is printed as JSON.
    """

    format: int
    config: RunConfig
    identity: str
    embedder: str
    command: str
    started: str
    as_json: bool = False


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One decision and the answer it led to. No label is in it.

    Attributes:
        example: Id of the example.
        method: Name of the guard.
        candidates: What was retrieved, in prompt order.
        decision: What the guard decided.
        status: Of the final answer: an outcome's status, or ``over_budget``.
        answer: The final answer; why there is none when over budget.
        spent: Everything asked for this example by this method, final answer included.
        seconds: Wall time of decision and answer.
    """

    example: str
    method: str
    candidates: tuple[RecordId, ...]
    decision: Decision
    status: str
    answer: str
    spent: Ledger
    seconds: float

    @property
    def unit(self) -> Unit:
        """What this row decides."""
        return (self.example, self.method)

    @property
    def admitted(self) -> tuple[RecordId, ...]:
        """Records that entered the prompt."""
        return tuple(judgement.record_id for judgement in self.decision.admitted)


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that reached the model: for which unit, under which cache key, for how many tokens."""

    example: str
    method: str
    key: str
    tokens: int
