"""What may still be spent: reserved before it happens, settled after. Pure, no I/O.

A reservation is a bound from above, so calls in flight can never push the spend over a limit.
Nothing here awaits, so within one event loop every operation is atomic.
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from assay.errors import BudgetExceeded

_Number = TypeVar("_Number", int, float)
_NANO = 1_000_000_000
_SHORTEST_CALL = 0.001
"""Seconds every reservation needs at least: with less left, no call can end in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Most that may be spent; ``None`` is no limit, 0 buys nothing.

    Attributes:
        calls: Calls that reach the model.
        tokens: Prompt and completion tokens.
        money: In the currency of the price list.
        seconds: Wall time from the first reservation on.

    Raises:
        ValueError: On a negative limit or NaN.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "money", "seconds"):
            limit: float | None = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"the limit of {name} must be at least 0, got {limit!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What tokens cost, in one currency.

    Attributes:
        prompt: Per million prompt tokens.
        completion: Per million completion tokens.
    """

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Money for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Spend(NamedTuple):
    """An amount of each resource but time, which passes by itself."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class _Amount:
    """Calls, tokens and billionths of money: integers, so that adding and taking away is exact."""

    __slots__ = ("calls", "nano", "tokens")

    def __init__(self, calls: int = 0, tokens: int = 0, nano: int = 0) -> None:
        self.calls = calls
        self.tokens = tokens
        self.nano = nano

    def add(self, other: "_Amount") -> None:
        self.calls += other.calls
        self.tokens += other.tokens
        self.nano += other.nano

    def take(self, other: "_Amount") -> None:
        self.calls -= other.calls
        self.tokens -= other.tokens
        self.nano -= other.nano


class _Scope:
    """One set of limits and what was taken from it."""

    __slots__ = ("held", "limits", "monotonic", "spent", "started")

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self.limits = limits
        self.monotonic = monotonic
        self.held = _Amount()
        self.spent = _Amount()
        self.started: float | None = None

    def begin(self) -> None:
        if self.started is None:
            self.started = self.monotonic()

    def left_calls(self) -> int | None:
        limit = self.limits.calls
        return None if limit is None else max(0, limit - self.held.calls - self.spent.calls)

    def left_tokens(self) -> int | None:
        limit = self.limits.tokens
        return None if limit is None else max(0, limit - self.held.tokens - self.spent.tokens)

    def left_money(self) -> float | None:
        limit = self.limits.money
        if limit is None:
            return None
        return max(0, _nano(limit) - self.held.nano - self.spent.nano) / _NANO

    def left_seconds(self) -> float | None:
        limit = self.limits.seconds
        if limit is None or self.started is None:
            return limit
        return max(0.0, limit - (self.monotonic() - self.started))


class Hold:
    """A reservation that stands until it is settled or released; made by ``Budget``."""

    __slots__ = ("_amount", "_open", "_scopes")

    def __init__(self, scopes: Sequence[_Scope], amount: _Amount) -> None:
        self._scopes = scopes
        self._amount = amount
        self._open = True

    @property
    def is_open(self) -> bool:
        """Whether the reservation still stands."""
        return self._open

    def settle(
        self, *, calls: int | None = None, tokens: int | None = None, money: float | None = None
    ) -> None:
        """Replace the reservation by what was really spent.

        More than was reserved counts as well: the bound was wrong, and the next one who reserves
        finds less.

        Args:
            calls: Calls made; ``None``: as reserved.
            tokens: Tokens used; ``None``: unknown, so as reserved.
            money: Money spent; ``None``: unknown, so as reserved.

        Raises:
            ValueError: If it was settled or released before.
        """
        if not self._open:
            raise ValueError("this reservation was settled before; reserve again")
        self._open = False
        spent = _Amount(
            calls=self._amount.calls if calls is None else calls,
            tokens=self._amount.tokens if tokens is None else tokens,
            nano=self._amount.nano if money is None else _nano(money),
        )
        for scope in self._scopes:
            scope.held.take(self._amount)
            scope.spent.add(spent)

    def release(self) -> None:
        """Give everything back: nothing was spent. Harmless after a settlement."""
        if self._open:
            self.settle(calls=0, tokens=0, money=0.0)


class Budget:
    """Limits and what was taken from them; what a child spends is spent in its parents too.

    Args:
        limits: Most that may be spent here.
        monotonic: Seconds from an arbitrary start, for ``limits.seconds``.
    """

    def __init__(self, limits: Limits, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._scopes: tuple[_Scope, ...] = (_Scope(limits, monotonic),)

    def child(self, limits: Limits) -> "Budget":
        """A narrower scope: what it spends is spent here as well; its limits are its own."""
        own = self._scopes[0]
        scope = Budget(limits, monotonic=own.monotonic)
        scope._scopes = (*scope._scopes, *self._scopes)
        return scope

    @property
    def limits(self) -> Limits:
        """Most that may be spent here; a scope above may have less left."""
        return self._scopes[0].limits

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens or money are limited, here or above; if not, no one need count them."""
        return any(s.limits.tokens is not None or s.limits.money is not None for s in self._scopes)

    def left(self) -> Limits:
        """What can be reserved now, reservations of calls in flight taken off; ``None``: no limit."""
        return Limits(
            calls=_least(scope.left_calls() for scope in self._scopes),
            tokens=_least(scope.left_tokens() for scope in self._scopes),
            money=_least(scope.left_money() for scope in self._scopes),
            seconds=self.seconds_left(),
        )

    def seconds_left(self) -> float | None:
        """``left().seconds`` alone."""
        return _least(scope.left_seconds() for scope in self._scopes)

    def spent(self) -> Spend:
        """What was settled here and in the scopes below; calls in flight are not in it."""
        spent = self._scopes[0].spent
        return Spend(spent.calls, spent.tokens, spent.nano / _NANO)

    def require(self, spend: Spend, *, seconds: float = 0.0) -> None:
        """Check that a reservation would fit; nothing is held.

        Args:
            spend: What is to be reserved.
            seconds: Time it is expected to take.

        Raises:
            BudgetExceeded: Naming the first resource that does not fit, what it needs, what is left.
        """
        left = self.left()
        needs = (
            ("calls", spend.calls, left.calls),
            ("tokens", spend.tokens, left.tokens),
            ("money", _nano(spend.money) / _NANO, left.money),
            ("seconds", max(seconds, _SHORTEST_CALL), left.seconds),
        )
        for what, needed, available in needs:
            if available is not None and needed > available:
                raise BudgetExceeded(what, needed=needed, left=available)

    def hold(self, spend: Spend, *, seconds: float = 0.0) -> Hold:
        """Reserve now; the caller settles or releases it.

        Raises:
            BudgetExceeded: If it does not fit here or in a scope above; nothing is held then.
        """
        [hold] = self.hold_all([spend], seconds=seconds)
        return hold

    def hold_all(self, spends: Sequence[Spend], *, seconds: float = 0.0) -> list[Hold]:
        """Reserve several amounts, all or none; each is settled by itself.

        Raises:
            BudgetExceeded: If their sum does not fit here or in a scope above; nothing is held then.
        """
        if not spends:
            return []
        amounts = [_Amount(s.calls, s.tokens, _nano(s.money)) for s in spends]
        total = _Amount()
        for amount in amounts:
            total.add(amount)
        self.require(Spend(total.calls, total.tokens, total.nano / _NANO), seconds=seconds)
        for scope in self._scopes:
            scope.begin()
            scope.held.add(total)
        return [Hold(self._scopes, amount) for amount in amounts]

    def reserve(
        self, *, calls: int = 1, tokens: int = 0, money: float = 0.0, seconds: float = 0.0
    ) -> AbstractAsyncContextManager[Hold]:
        """``async with budget.reserve(calls=1, tokens=300) as r: ...; r.settle(tokens=211)``.

        Left without a settlement, also by an error or a cancellation, the whole reservation counts
        as spent: what was sent may have been billed. ``r.release()`` says that nothing was sent.

        Raises:
            BudgetExceeded: On entry, if it does not fit; the block does not run.
        """
        return self._reserving(Spend(calls, tokens, money), seconds)

    @asynccontextmanager
    async def _reserving(self, spend: Spend, seconds: float) -> AsyncGenerator[Hold]:
        hold = self.hold(spend, seconds=seconds)
        try:
            yield hold
        finally:
            if hold.is_open:
                hold.settle()


def _nano(money: float) -> int:
    """Billionths, rounded: 0.1 is exactly a hundred million of them."""
    return round(money * _NANO)


def _least(amounts: Iterator[_Number | None]) -> _Number | None:
    return min((amount for amount in amounts if amount is not None), default=None)
