"""``assay`` with the most verbose logging there is: ``log_child.py LOG-FILE ARGUMENTS...``."""

import logging
import sys
from pathlib import Path

import stamina.instrumentation as retries
import structlog
from tests.promises.log_canaries import Everything

import assay.cli
from assay.cli.logs import log_to_stderr


class ToFile(Everything):
    """Writes each record at once: the process may be stopped at any time."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
            file.write(self.lines.pop() + "\n")


def _as_the_command_line_does_but_louder() -> None:
    log_to_stderr()
    logging.basicConfig(level=logging.DEBUG, handlers=[ToFile()])
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
    own = retries.get_on_retry_hooks()
    retries.set_on_retry_hooks([*own, retries.StructlogOnRetryHook, retries.LoggingOnRetryHook])


setattr(assay.cli, "log_to_stderr", _as_the_command_line_does_but_louder)  # noqa: B010  # type checkers know the name as final
assay.cli.main(sys.argv[2:])
