"""What a model and its laboratory tell each other about the call under way.

Only the model knows that it sends a call again, or that a recording answers it; only the laboratory
knows the budget. The call is ambient for its task, so that a model without either need not care.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class CallUnderWay(Protocol):
    """One call of a model, as the one who pays for it sees it."""

    def try_again(self) -> bool:
        """Pay for one more attempt; False where the budget has none left: then none may be sent."""
        ...

    def recorded(self) -> None:
        """Say that the answer comes from a recording: nobody is asked."""
        ...


class _Unpaid:
    """Outside of a laboratory nobody counts."""

    def try_again(self) -> bool:
        return True

    def recorded(self) -> None:
        return


_UNPAID: CallUnderWay = _Unpaid()
_current: ContextVar[CallUnderWay] = ContextVar("assay.call", default=_UNPAID)


def call_under_way() -> CallUnderWay:
    """The call this task is in; one that allows everything where there is none."""
    return _current.get()


@contextmanager
def under_way(call: CallUnderWay) -> Generator[None]:
    """Make a call the current one for the length of a block."""
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)
