"""Where logs go: stderr, so that stdout holds only what was asked for."""

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stamina.instrumentation import RetryDetails


def log_to_stderr() -> None:
    """Warnings and worse, one line each; a retry in words."""
    import stamina.instrumentation  # noqa: PLC0415  # kept apart from what imports this file
    import structlog  # noqa: PLC0415

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # whatever stderr is then
    )
    stamina.instrumentation.set_on_retry_hooks([_tell])


def _tell(details: "RetryDetails") -> None:
    reason = str(details.caused_by)
    print(f"assay: {reason}; again in {details.wait_for:.1f} s", file=sys.stderr, flush=True)
