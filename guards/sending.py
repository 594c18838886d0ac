"""One live call: reserved before, limited, cut at the deadline, settled and counted after."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio

from assay.errors import BudgetExceeded, CassetteMiss, ContextOverflow, ModelUnavailable
from assay.guards.accounting import Accounts
from assay.guards.budget import Budget, Hold, Price, Spend
from assay.guards.calls import under_way
from assay.guards.keys import Question
from assay.guards.outcomes import (
    FAILURES,
    Answer,
    Failure,
    checked_completion,
    checked_likelihood,
)
from assay.guards.protocols import ChatModel, DeltaSink, LikelihoodModel, Message, Usage
from assay.stores.records import RecordId


class Asked(NamedTuple):
    """A question with its name, ready to be looked up or sent.

    Attributes:
        key: Its cache key.
        question: What is asked.
        encoded: Its JSON.
        record_ids: Records whose text is in it.
    """

    key: str
    question: Question
    encoded: bytes
    record_ids: tuple[RecordId, ...]


class Sender:
    """Takes questions to the model.

    Args:
        model: What is asked.
        likelihood: Answers the questions that carry an answer.
        budget: Charged per call.
        limiter: Shared by everyone who may call at once.
        accounts: Where calls are counted.
        price: What tokens cost.
    """

    def __init__(  # noqa: PLR0913  # one name per collaborator
        self,
        *,
        model: ChatModel,
        likelihood: LikelihoodModel | None,
        budget: Budget,
        limiter: anyio.CapacityLimiter,
        accounts: Accounts,
        price: Price,
    ) -> None:
        self._model = model
        self._likelihood = likelihood
        self._budget = budget
        self._limiter = limiter
        self._accounts = accounts
        self._price = price

    def reserve(self, batch: Sequence[Asked]) -> list[Hold]:
        """Hold what the whole batch may cost, or nothing: who cannot finish must not begin.

        Raises:
            BudgetExceeded: If the batch does not fit.
        """
        return self._budget.hold_all([self._most_spent(asked) for asked in batch])

    async def send(self, asked: Asked, hold: Hold, sink: DeltaSink | None) -> Answer | Failure:
        """Ask the model and settle the hold.

        On cancellation a call in flight is counted and its whole reservation spent; one that still
        waited for its turn leaves the hold open and no trace.

        Raises:
            CassetteMiss: As the model raised it; nothing is counted.
        """
        result: Answer | Failure | None = None
        with anyio.move_on_after(self._budget.seconds_left()):
            async with self._limiter:
                result = await self._call(asked, hold, sink)
        if result is None:
            self._accounts.unsent(asked.key)
            return ModelUnavailable("the time of the budget ran out before the model had answered")
        return result

    async def _call(self, asked: Asked, hold: Hold, sink: DeltaSink | None) -> Answer | Failure:
        call = _Call(self._budget, self._accounts, asked.key, self._most_spent(asked), hold)
        try:
            with under_way(call):
                answer, usage = await self._answer_of(asked, sink)
        except CassetteMiss:
            call.unsent()
            raise
        except ContextOverflow as error:
            call.unsent()
            self._accounts.unsent(asked.key)
            return error
        except FAILURES as error:
            call.lost()
            return error
        except BaseException:
            call.lost()
            raise
        call.answered(usage, self._price)
        return answer

    async def _answer_of(self, asked: Asked, sink: DeltaSink | None) -> tuple[Answer, Usage]:
        question = asked.question
        if question.answer is None or self._likelihood is None:
            completion = await self._model.complete(question.request, sink=sink)
            return checked_completion(completion), completion.usage
        value = await self._likelihood.log_likelihood(question.request, question.answer)
        return checked_likelihood(value), Usage(prompt_tokens=self._prompt_tokens(asked))

    def _most_spent(self, asked: Asked) -> Spend:
        if not self._budget.counts_tokens:
            return Spend(calls=1)
        prompt, answer = self._prompt_tokens(asked), 0
        if asked.question.answer is None:
            answer = asked.question.request.parameters.max_tokens
        return Spend(calls=1, tokens=prompt + answer, money=self._price.of(prompt, answer))

    def _prompt_tokens(self, asked: Asked) -> int:
        """Tokens read: for a likelihood the given answer is read, not written."""
        messages = asked.question.request.messages
        if asked.question.answer is not None:
            messages = (*messages, Message(role="assistant", content=asked.question.answer))
        return self._model.count_tokens(messages)


class _Call:
    """One question's attempts, each reserved before it is sent.

    Args:
        budget: Pays for more attempts.
        accounts: Where attempts are counted.
        key: Of the question.
        most: What one attempt may cost.
        hold: Pays for the first one.
    """

    def __init__(
        self, budget: Budget, accounts: Accounts, key: str, most: Spend, hold: Hold
    ) -> None:
        self._budget = budget
        self._accounts = accounts
        self._key = key
        self._most = most
        self._hold = hold
        self._is_recorded = False

    def try_again(self) -> bool:
        try:
            again = self._budget.hold(self._most)
        except BudgetExceeded:
            return False
        self.lost()
        self._hold = again
        return True

    def recorded(self) -> None:
        self._is_recorded = True

    def answered(self, usage: Usage, price: Price) -> None:
        """A recorded answer is charged like the call it stands for: a replay decides the same."""
        money = price.of(usage.prompt_tokens, usage.completion_tokens)
        self._hold.settle(tokens=usage.total, money=money)
        if self._is_recorded:
            self._accounts.hit(self._key)
        else:
            self._accounts.sent(self._key, usage, money)

    def lost(self) -> None:
        """What a lost attempt cost is unknown, so the whole reservation stays spent."""
        self._hold.settle()
        self._accounts.sent(self._key, Usage(), 0.0)

    def unsent(self) -> None:
        self._hold.release()
