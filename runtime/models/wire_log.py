"""What the HTTP library may log of our calls: the names of its steps.

At DEBUG it logs the headers of each answer and quotes what it cannot read, and an endpoint may repeat
the prompt or the key anywhere. Only our calls are cut: other users of the library in the same program
keep their log as it is.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGERS = ("connection", "http11", "http2", "http_proxy", "proxy", "socks", "socks_proxy")
_is_ours = ContextVar("_is_ours", default=False)


class _NamesOnly(logging.Filter):
    """Cuts a record to its first word, such as ``receive_response_headers.complete``."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _is_ours.get():
            record.msg, record.args = record.getMessage().partition(" ")[0], ()
        return True


_NAMES_ONLY = _NamesOnly()


@contextmanager
def only_names_logged() -> Generator[None]:
    """For the length of a call."""
    for name in _LOGGERS:
        logging.getLogger(f"httpcore2.{name}").addFilter(_NAMES_ONLY)  # once, however often added
    token = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(token)
