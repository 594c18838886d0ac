"""What can be watched from outside: log events and trace spans. Ids and figures, never texts.

Logs go through structlog into the standard logger ``assay.turns``, so a program that embeds Assay
sees nothing until it sets a level. Spans go to whatever OpenTelemetry provider is installed.
"""

import logging
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

import structlog
from opentelemetry import trace

from assay.guards.protocols import Decision
from assay.stores.protocols import Clock

TURN_STARTED = "turn.started"
TURN_FINISHED = "turn.finished"
TURN_FAILED = "turn.failed"
TURN_NOT_CLOSED = "turn.not_closed"
TURN_RESUMED = "turn.resumed"
COMMAND_FINISHED = "command.finished"


def places(error: BaseException) -> list[str]:
    """Where an error came from, for a log: files, lines and functions, and no message."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]


@contextmanager
def span(
    tracer: trace.Tracer,
    name: str,
    *,
    kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    attributes: Mapping[str, str | bool | int] | None = None,
) -> Generator[trace.Span]:
    """A span that notes the kind of an error; left alone, it would note what the error quotes."""
    with tracer.start_as_current_span(
        name,
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except Exception as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise


class Log(Protocol):
    """The part of a structlog logger used here."""

    def info(self, event: str, **fields: object) -> object:
        """Log an event with fields."""
        ...

    def warning(self, event: str, **fields: object) -> object:
        """Log an event someone may have to act on."""
        ...


class Observation:
    """Spans and log events of one session.

    Args:
        clock: For durations.
        fields: What every log event of the session carries.
    """

    def __init__(self, clock: Clock, **fields: str) -> None:
        self._clock = clock
        self._tracer = trace.get_tracer("assay")
        self._log: Log = structlog.wrap_logger(
            logging.getLogger("assay.turns"),
            processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
            wrapper_class=structlog.stdlib.BoundLogger,
        ).bind(**fields)

    @contextmanager
    def turn(self, turn_id: str, *, resumed: bool) -> Generator[None]:
        """A span around a turn, its start in the log, and its failure."""
        start = self._clock.monotonic()
        self._log.info(TURN_RESUMED if resumed else TURN_STARTED, turn_id=turn_id)
        attributes: dict[str, str | bool] = {"assay.turn": turn_id, "assay.resumed": resumed}
        with span(self._tracer, "assay.turn", attributes=attributes):
            try:
                yield
            except Exception as error:
                # The message may quote what the user said; the kind does not.
                self._log.info(TURN_FAILED, turn_id=turn_id, kind=type(error).__name__)
                raise
        seconds = self._clock.monotonic() - start
        self._log.info(TURN_FINISHED, turn_id=turn_id, seconds=seconds)

    @contextmanager
    def command(self, name: str, turn_id: str) -> Generator[None]:
        """A span around a command, and its duration in the log."""
        start = self._clock.monotonic()
        with span(self._tracer, f"assay.{name}"):
            yield
        seconds = self._clock.monotonic() - start
        self._log.info(COMMAND_FINISHED, command=name, turn_id=turn_id, seconds=seconds)

    def not_closed(self, error: Exception) -> None:
        """A turn that was given up could not be closed in the journal."""
        self._log.warning(TURN_NOT_CLOSED, kind=type(error).__name__)

    def decision(self, decision: Decision) -> None:
        """The figures of a decision, on the current span."""
        current = trace.get_current_span()
        current.set_attribute("assay.admitted", len(decision.admitted))
        current.set_attribute("assay.withheld", len(decision.withheld))
        current.set_attribute("assay.fallback", decision.fallback)
        current.set_attribute("assay.evaluations", decision.spent.evaluations)
