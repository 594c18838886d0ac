"""A request kept in a file, to be explained or asked again."""

from pathlib import Path

import msgspec

from assay.errors import ConfigError
from assay.guards.keys import Question
from assay.guards.protocols import Request


def read_question(path: Path) -> Question:
    """The question in a JSON file: a bare request, or one with ``request`` and ``answer``.

    Raises:
        ConfigError: If the file cannot be read or holds neither.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the request {str(path)!r}: {error.strerror}") from error
    try:
        return Question(request=msgspec.json.decode(content, type=Request))
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return msgspec.json.decode(content, type=Question)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: expected a request (model, messages, parameters): {error}"
        ) from error
