"""Words that must not be logged, and a search for them in any spelling."""

import base64
import logging
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from urllib.parse import quote

KEY = "sk-CANARY-key-0001"
SERVICE_KEY = "sk-CANARY-service-0002"
URL = "http://CANARY-user-0003:CANARY-password-0004@host.example/v1?key=CANARY-query-0005"
SAID = "My locker code is CANARY-said-0006."
RECORD = "The cat chip is CANARY-record-0007."
TOOL = "It rains in CANARY-tool-0008."
ANSWER = "Your answer is CANARY-answer-0009."
BODY = "You said CANARY-body-0010"
RAISED = "failed over CANARY-raised-0011"

SECRETS = ("key-0001", "service-0002", "user-0003", "password-0004", "query-0005")
TEXTS = ("said-0006", "record-0007", "tool-0008", "answer-0009", "body-0010", "raised-0011")


def found(content: str, names: tuple[str, ...]) -> list[str]:
    """Which canaries a text holds, plain, quoted, in hex or in base64."""
    return [name for name in names if any(word in content for word in _spellings(name))]


def _spellings(name: str) -> Iterator[str]:
    word = f"CANARY-{name}"
    yield word
    yield quote(word, safe="").replace("-", "%2D")
    yield word.replace("-", "\\u002d")
    yield word.encode().hex()
    for shift in range(3):
        # The part of a longer text's base64 that depends on the word alone.
        coded = base64.b64encode(b"\0" * shift + word.encode()).decode()
        yield coded[4 if shift else 0 : -4]


class Everything(logging.Handler):
    """Keeps all of each log record: message, arguments, extras, traceback."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        shown = f"{record.name}: {record.getMessage()} {record.__dict__!r}"
        if record.exc_info and record.exc_info[1]:
            shown += "".join(traceback.format_exception(record.exc_info[1]))
        self.lines.append(shown.replace("\n", "\\n"))


@contextmanager
def everything_logged() -> Generator[Everything]:
    """Each logger there is speaks, at every level, for the length of a block."""
    kept, root = Everything(), logging.getLogger()
    loggers = [
        each
        for each in logging.Logger.manager.loggerDict.values()
        if isinstance(each, logging.Logger)
    ]
    levels = [(each, each.level) for each in (root, *loggers)]
    for each, _ in levels:
        each.setLevel(logging.DEBUG)
    root.addHandler(kept)
    try:
        yield kept
    finally:
        root.removeHandler(kept)
        for each, level in levels:
            each.setLevel(level)
