"""From chat-completion JSON, whole or in streamed chunks, to a ``Completion``; strict about types.

Log-probabilities that are no numbers are no measurement: they are dropped, never read as certainty.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from assay.errors import MalformedAnswer, ModelRefused
from assay.guards.protocols import Completion, DeltaSink, TokenLogprob, ToolCall, Usage

UsageCounter: TypeAlias = Callable[[str], Usage]
"""Counts what an answer took where the endpoint does not tell."""

_FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
_FINISH_REASONS: dict[str, _FinishReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Piece(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Alternative(msgspec.Struct, frozen=True):
    token: str
    logprob: float | None = None


class _Token(msgspec.Struct, frozen=True):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Piece | None = None
    delta: _Piece | None = None
    finish_reason: str | None = None
    logprobs: object = None


class _Body(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    model: str | None = None
    usage: object = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int


class _Total(msgspec.Struct, frozen=True):
    total_tokens: int


class _OpenCall:
    """A tool call whose parts are still coming in."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, call: _Call) -> None:
        self.id = call.id or self.id
        if call.function is not None:
            self.name = call.function.name or self.name
            self.arguments.append(call.function.arguments or "")

    def closed(self) -> ToolCall:
        if not self.name:
            raise MalformedAnswer("expected a tool call with a name, got one without")
        return ToolCall(id=self.id, name=self.name, arguments="".join(self.arguments) or "{}")


class Assembler:
    """Puts an answer together.

    Args:
        sink: Gets each piece of text as it comes in.
        with_logprobs: Whether log-probabilities were asked for.
    """

    def __init__(self, *, sink: DeltaSink | None = None, with_logprobs: bool = False) -> None:
        self._sink = sink
        self._with_logprobs = with_logprobs
        self._texts: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._logprobs: list[TokenLogprob] | None = []
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self.model: str | None = None
        """The model that says it answered."""

    @property
    def has_text(self) -> bool:
        """Whether a piece of text went out already."""
        return bool(self._texts)

    @property
    def is_finished(self) -> bool:
        """Whether the endpoint said why it stopped."""
        return self._finish_reason is not None

    def add(self, body: object, *, streamed: bool) -> None:
        """Take in an answer or a chunk of one, as decoded JSON.

        Raises:
            MalformedAnswer: If it has not the shape of a completion.
        """
        try:
            parsed = msgspec.convert(body, _Body)
        except msgspec.ValidationError as error:
            raise MalformedAnswer(f"expected a chat completion: {error}") from error
        self.model = parsed.model or self.model
        self._usage = _usage(parsed.usage) or self._usage
        if parsed.choices:
            self._add_choice(parsed.choices[0])
        elif not streamed:
            raise MalformedAnswer("expected an answer, got an empty list of choices")

    def finish(self, count: UsageCounter) -> Completion:
        """The whole answer.

        Args:
            count: Asked for the usage if the endpoint gave none that can be believed.

        Raises:
            MalformedAnswer: If there is neither text nor a tool call.
            ModelRefused: If the endpoint's content filter cut the answer off.
        """
        if self._finish_reason == "content_filter":
            raise ModelRefused("the endpoint's content filter cut the answer off")
        text = _joined(self._texts)
        calls = tuple(self._calls[index].closed() for index in sorted(self._calls))
        if not text and not calls:
            raise MalformedAnswer(
                f"expected text or a tool call, got neither (finish_reason {self._finish_reason!r})"
            )
        return Completion(
            text=text,
            finish_reason=_FINISH_REASONS.get(self._finish_reason or "", "stop"),
            usage=self._usage or count(text),
            logprobs=tuple(self._logprobs) if self._with_logprobs and self._logprobs else None,
            tool_calls=calls,
        )

    def _add_choice(self, choice: _Choice) -> None:
        self._finish_reason = choice.finish_reason or self._finish_reason
        piece = choice.delta or choice.message or _Piece()
        if piece.refusal:
            raise ModelRefused(f"the model refused: {piece.refusal[:200]!r}")
        for position, call in enumerate(piece.tool_calls or ()):
            index = position if call.index is None else call.index
            self._calls.setdefault(index, _OpenCall()).add(call)
        if self._with_logprobs:
            self._add_logprobs(choice.logprobs)
        if piece.content:
            self._texts.append(piece.content)
            if self._sink is not None:
                self._sink(piece.content)

    def _add_logprobs(self, given: object) -> None:
        if given is None or self._logprobs is None:
            return
        try:
            tokens = msgspec.convert(given, _Logprobs).content or ()
        except msgspec.ValidationError:
            self._logprobs = None
            return
        measured = [_measured(token) for token in tokens]
        if None in measured:
            # One token without a number makes every mean over the answer wrong: drop them all.
            self._logprobs = None
            return
        self._logprobs.extend(token for token in measured if token is not None)


def _measured(token: _Token) -> TokenLogprob | None:
    if not _is_logprob(token.logprob):
        return None
    top: Sequence[_Alternative] = token.top_logprobs or ()
    return TokenLogprob(
        _joined([token.token]),
        min(token.logprob or 0.0, 0.0),
        tuple(
            (_joined([a.token]), min(a.logprob or 0.0, 0.0)) for a in top if _is_logprob(a.logprob)
        ),
    )


def _is_logprob(value: float | None) -> bool:
    """Rounding may put a certain token just above 0; anything beyond is no log-probability."""
    return value is not None and math.isfinite(value) and value <= 1e-3  # noqa: PLR2004


def _usage(given: object) -> Usage | None:
    try:
        usage = msgspec.convert(given, _Usage)
    except msgspec.ValidationError:
        return _usage_of_total(given)
    if usage.prompt_tokens <= 0 or usage.completion_tokens < 0:
        return None
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def _usage_of_total(given: object) -> Usage | None:
    """Some tell the sum alone; which part was written is not known then."""
    try:
        total = msgspec.convert(given, _Total).total_tokens
    except msgspec.ValidationError:
        return None
    return Usage(prompt_tokens=total) if total > 0 else None


def _joined(texts: list[str]) -> str:
    """One text; surrogate pairs cut apart by streaming are put together, lone halves replaced."""
    return "".join(texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
