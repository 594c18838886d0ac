"""The words guards, models and the laboratory share. Plain data and protocols, no I/O."""

from collections.abc import Callable, Sequence
from typing import Literal, NewType, Protocol, TypeAlias

import msgspec

from assay.guards.coalitions import Coalition, Utilities
from assay.guards.trace import Trace
from assay.stores.records import ArchiveTurn, Candidate, RecordId

DecisionId = NewType("DecisionId", str)

# ---- asking a model


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call the model asks its caller to make; ``arguments`` is JSON text, passed through as is."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Parameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to generate.

    Attributes:
        max_tokens: Most tokens of the answer.
        temperature: 0 is greedy.
        seed: Passed to the endpoint where it takes one.
        top_logprobs: How many alternatives per token to report; 0: no log-probabilities.
        stop: Texts that end the answer.
        tools: JSON text of the OpenAI ``tools`` array; empty: none.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    top_logprobs: int = 0
    stop: tuple[str, ...] = ()
    tools: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what is asked of a model; two equal requests may share one answer."""

    model: str
    messages: tuple[Message, ...]
    parameters: Parameters


class TokenLogprob(msgspec.Struct, frozen=True):
    """One generated token, its log-probability and the reported alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the endpoint reports them, or as counted here where it does not."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


class Completion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model answered.

    Attributes:
        text: The answer; empty only beside ``tool_calls``.
        finish_reason: ``stop``, ``length`` or ``tool_calls``.
        usage: Tokens spent.
        logprobs: One per generated token; ``None`` when not asked for or not given.
        tool_calls: Calls the model wants made.
    """

    text: str
    finish_reason: Literal["stop", "length", "tool_calls"] = "stop"
    usage: Usage = Usage()
    logprobs: tuple[TokenLogprob, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()


DeltaSink: TypeAlias = Callable[[str], None]
"""Takes streamed pieces of text; must not block."""


class ChatModel(Protocol):
    """A language model behind chat messages. Retries, rate limit and queue live inside it.

    A model that sends a call again asks ``assay.guards.calls.call_under_way()`` before it does.

    Every method raises only ``ModelError``s (and cancellation).
    """

    @property
    def identity(self) -> str:
        """What answers: name, revision or file hash, base URL. Part of every cache key."""
        ...

    @property
    def context_tokens(self) -> int:
        """Longest prompt and answer together, in tokens."""
        ...

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt; exact where the tokenizer is at hand, else a bound from above."""
        ...

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        """Answer a request.

        Raises:
            ContextOverflow: Before sending, if the prompt and the answer do not fit.
            ModelUnavailable: After the retries of its own policy.
            ModelRefused: At once.
            MalformedAnswer: If the answer is no completion.
        """
        ...


class LikelihoodModel(Protocol):
    """A model that can tell how likely a given answer is."""

    async def log_likelihood(self, request: Request, answer: str) -> float:
        """Mean log-probability per token of ``answer`` after ``request``; at most 0."""
        ...


# ---- what a coalition leads to


class Ask(msgspec.Struct, frozen=True):
    """One question to the laboratory.

    Attributes:
        coalition: Candidates shown.
        rendering: How they are shown: ``plain``, or the name of a perturbation or another wording.
        draw: Number of the draw; another number asks afresh on purpose.
        answer: When set, asks for the likelihood of this answer instead of for an answer.
    """

    coalition: Coalition
    rendering: str = "plain"
    draw: int = 0
    answer: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model did with a coalition. A failure is an outcome, never a missing one.

    Attributes:
        status: ``answered``, or why there is no measurement.
        text: The answer; partial when ``truncated`` (cut by ``max_tokens``), empty on other failures.
        log_likelihood: For likelihood asks; never NaN (that is ``malformed``).
        logprobs: Token log-probabilities where asked for.
        usage: Tokens spent when it was asked live.
        detail: For failures, what happened.
    """

    status: Literal["answered", "refused", "unavailable", "truncated", "malformed", "overflow"]
    text: str = ""
    log_likelihood: float | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    usage: Usage = Usage()
    detail: str = ""


Renderer: TypeAlias = Callable[[Ask], Request]
"""Makes the prompt for an ask; pure, so that equal asks give equal requests."""


class Experimenter(Protocol):
    """What a guard may do with the laboratory (``assay.guards.laboratory.Laboratory``)."""

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        """One outcome per ask, in order; identical asks are paid for once.

        Raises:
            BudgetExceeded: If the new questions of this batch do not fit; none of them has run.
        """
        ...

    def ledger(self) -> "Ledger":
        """What has been spent so far."""
        ...


class ValueFunction(Protocol):
    """Outcome to utility. ``low`` and ``high`` bound what it gives."""

    low: float
    high: float

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        """Utilities of a batch, shape ``(m,)``; NaN where there was no measurement."""
        ...


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What has been spent.

    Attributes:
        evaluations: Distinct questions put to the laboratory, cached or not.
        cache_hits: Of those, answered without a call.
        live: Calls that reached the model, retries included; an answer from a cassette is none.
        rounds: Sequential depth of the live and cached work at the stated concurrency.
        tokens: Prompt and completion tokens of the live calls.
        money: In the currency of the price list; 0 without one.
        seconds: Wall time inside the laboratory.
    """

    evaluations: int = 0
    cache_hits: int = 0
    live: int = 0
    rounds: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Ledger") -> "Ledger":
        return Ledger(
            evaluations=self.evaluations + other.evaluations,
            cache_hits=self.cache_hits + other.cache_hits,
            live=self.live + other.live,
            rounds=self.rounds + other.rounds,
            tokens=self.tokens + other.tokens,
            money=self.money + other.money,
            seconds=self.seconds + other.seconds,
        )


# ---- deciding


class EvidenceSource(Protocol):
    """The past turns of this namespace, as evidence."""

    async def __call__(self, texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        """For each text, at most ``limit`` turns that bear on it, best first."""
        ...


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard may know. No label, no expected answer, no source ids: those do not exist here.

    Attributes:
        question: What the user asked.
        candidates: Retrieved records in canonical prompt order; candidate ``i`` is bit ``i``.
        evidence: Looks things up in the archive.
    """

    question: str
    candidates: tuple[Candidate, ...]
    evidence: EvidenceSource


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided about one candidate, and why.

    Attributes:
        record_id: The record.
        admitted: Whether it enters the prompt.
        flagged: Admitted, but marked as doubtful in the prompt.
        decided: False when nothing decided and the ``on_undecided`` policy acted.
        reason: A sentence a user can read, without the record's text.
        method: Which mechanism decided.
        effect: Its measured effect in units of utility, where measured.
        evidence: Archived turns that bore on it.
    """

    record_id: RecordId
    admitted: bool
    reason: str
    method: str
    flagged: bool = False
    decided: bool = True
    effect: float | None = None
    evidence: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Admitted and withheld candidates with reasons. The bank is not touched by it.

    Attributes:
        method: Name of the guard.
        judgements: One per candidate, in the case's order.
        spent: What deciding cost.
        fallback: Name of the ``on_guard_failure`` policy that acted; empty when none had to.
        failure: What went wrong when a fallback acted.
        ask: A question for the user when the policy is to ask.
        certificate: What was verified about the admitted set (``recovered``, ``1-minimal``, ...).
        shown_as: Whether the prompt shows the admitted records, or a model's summary of them in
            their place (``assay.guards.tasks.SUMMARISE``, asked of the laboratory: it is cached).
        tokens_saved: Estimated prompt tokens of the texts that reduction left out.
        trace: What clearing tried on the way; ``None`` for methods that do not clear.
    """

    method: str
    judgements: tuple[Judgement, ...]
    spent: Ledger = Ledger()
    fallback: str = ""
    failure: str = ""
    ask: str = ""
    certificate: str = ""
    shown_as: Literal["records", "summary"] = "records"
    tokens_saved: int = 0
    trace: Trace | None = None

    @property
    def admitted(self) -> tuple[Judgement, ...]:
        """Judgements of the records that enter the prompt."""
        return tuple(j for j in self.judgements if j.admitted)

    @property
    def withheld(self) -> tuple[Judgement, ...]:
        """Judgements of the records kept out of this prompt."""
        return tuple(j for j in self.judgements if not j.admitted)

    def certified(self, verdict: str) -> "Decision":
        """The same decision with one more verdict in its certificate."""
        parts = [part for part in (self.certificate, verdict) if part]
        return msgspec.structs.replace(self, certificate="; ".join(parts))


class Guard(Protocol):
    """Decides which candidates enter the prompt."""

    @property
    def name(self) -> str:
        """The method's name, as on the command line."""
        ...

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Decide.

        Raises:
            GuardError: If it cannot; the caller's ``on_guard_failure`` policy acts then.
        """
        ...


OnUndecided: TypeAlias = Literal["withhold", "ask", "admit_flagged"]
OnGuardFailure: TypeAlias = Literal["fail_turn", "withhold_all", "admit_flagged", "last_decision"]
