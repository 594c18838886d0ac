"""A model without a model: it answers by rules, so that users can test without a network or weights.

Without rules it is a plain reader: it answers with the record in the prompt that shares most
content words with the question, and says that it does not know where none shares any.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from assay.errors import MalformedAnswer, ModelRefused, ModelUnavailable
from assay.guards.protocols import (
    Completion,
    DeltaSink,
    Message,
    Request,
    TokenLogprob,
    Usage,
)
from assay.runtime.models.counting import bound_tokens, require_room
from assay.runtime.models.reader import question_of, read

Script: TypeAlias = Callable[[Request], str | Completion]
"""Answers a request; pure, so that a run can be repeated."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule; the first whose conditions all hold answers.

    Attributes:
        question: Regular expression searched in the last user message, case ignored; empty: any.
        prompt: Regular expression searched in all messages together, case ignored; empty: any.
        reply: The answer.
        fails: Instead of an answer, the error the model raises.
    """

    question: str = ""
    prompt: str = ""
    reply: str = ""
    fails: Literal["", "unavailable", "refused", "malformed"] = ""


class ScriptedModel:
    """Answers by rules, by a function, or as a plain reader; equal requests get equal answers.

    Tokens are words here: a reply is cut after ``max_tokens`` of them, and every token's
    log-probability is 0 where log-probabilities are asked for.

    Args:
        script: Rules in order, or a function of the request; ``None`` is the reader. Where no rule
            holds, the reader answers.
        identity: Name in cache keys; give another one for another script.
        context_tokens: Longest prompt and answer together, in tokens.
    """

    def __init__(
        self,
        script: Sequence[Rule] | Script | None = None,
        *,
        identity: str = "scripted",
        context_tokens: int = 32_768,
    ) -> None:
        self._script = _as_function(script)
        self._identity = identity
        self._context_tokens = context_tokens
        self.asked: list[Request] = []
        """Every request that reached the model, in order."""

    @property
    def identity(self) -> str:
        """The name given to the script."""
        return self._identity

    @property
    def context_tokens(self) -> int:
        """As given."""
        return self._context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """A bound from above."""
        return bound_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        require_room(self, request)
        self.asked.append(request)
        answer = self._script(request)
        completion = answer if isinstance(answer, Completion) else _completion(request, answer)
        if sink is not None:
            for piece in _pieces(completion.text):
                sink(piece)
        return completion

    async def log_likelihood(self, request: Request, answer: str) -> float:
        """Mean over the answer's words: ln 0.9 for a word of the own reply, ln 0.1 for another."""
        require_room(self, request)
        self.asked.append(request)
        given = self._script(request)
        own = set(_words(given.text if isinstance(given, Completion) else given))
        words = _words(answer)
        if not words:
            raise MalformedAnswer("expected an answer with at least one word, got none")
        return sum(math.log(0.9 if word in own else 0.1) for word in words) / len(words)


def _as_function(script: Sequence[Rule] | Script | None) -> Script:
    if script is None:
        return read
    if callable(script):
        return script
    rules = tuple(script)

    def by_rules(request: Request) -> str:
        for rule in rules:
            if _holds(rule, request):
                return _answer(rule)
        return read(request)

    return by_rules


def _holds(rule: Rule, request: Request) -> bool:
    everything = "\n".join(message.content for message in request.messages)
    matched = re.search(rule.question, question_of(request), re.IGNORECASE)
    return bool(matched and re.search(rule.prompt, everything, re.IGNORECASE))


def _answer(rule: Rule) -> str:
    match rule.fails:
        case "unavailable":
            raise ModelUnavailable("the script says: unavailable")
        case "refused":
            raise ModelRefused("the script says: refused")
        case "malformed":
            raise MalformedAnswer("the script says: malformed")
        case "":
            return rule.reply


def _completion(request: Request, answer: str) -> Completion:
    pieces = _pieces(answer)
    limit = request.parameters.max_tokens
    kept = pieces[:limit]
    logprobs = tuple(TokenLogprob(piece, 0.0, ((piece, 0.0),)) for piece in kept)
    return Completion(
        text="".join(kept),
        finish_reason="length" if len(pieces) > limit else "stop",
        usage=Usage(
            prompt_tokens=sum(len(_pieces(message.content)) for message in request.messages),
            completion_tokens=len(kept),
        ),
        logprobs=logprobs if request.parameters.top_logprobs else None,
    )


def _pieces(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
