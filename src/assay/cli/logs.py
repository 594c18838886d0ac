"""Where logs go: stderr, so that stdout holds only what was asked for."""

import logging
import sys


def log_to_stderr() -> None:
    """Warnings and worse, one line each."""
    import structlog  # noqa: PLC0415  # `assay --help` does without

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
