"""The head of a GGUF file: its metadata, read without loading the model.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias

from assay.errors import ConfigError

Value: TypeAlias = bool | int | float | str | list["Value"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_LONGEST = 64 * 1024 * 1024


def read_metadata(path: Path, is_wanted: Callable[[str], bool]) -> dict[str, Value]:
    """Those metadata whose key is wanted.

    Raises:
        ConfigError: If the file cannot be read or is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            return _read(file, is_wanted)
    except OSError as error:
        raise ConfigError(f"cannot read the model file {path}: {error.strerror}") from error
    except (struct.error, UnicodeDecodeError, KeyError, EOFError) as error:
        raise ConfigError(f"{path} is no complete GGUF file: {error!r}") from error


def _read(file: BinaryIO, is_wanted: Callable[[str], bool]) -> dict[str, Value]:
    magic = file.read(4)
    if magic != _MAGIC:
        raise ConfigError(f"{file.name} is no GGUF file: it starts with {magic!r}, not {_MAGIC!r}")
    version = _scalar(file, "<I")
    if version not in _VERSIONS:
        raise ConfigError(f"{file.name} is GGUF version {version}; expected one of {_VERSIONS}")
    _scalar(file, "<Q")  # number of tensors
    found: dict[str, Value] = {}
    for _ in range(_scalar(file, "<Q")):
        key = _string(file)
        value = _value(file, _scalar(file, "<I"))
        if is_wanted(key):
            found[key] = value
    return found


def _value(file: BinaryIO, kind: int) -> Value:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _SCALARS[kind])
    element = _scalar(file, "<I")
    count = _scalar(file, "<Q")
    if element in _SCALARS:
        return _numbers(file, _SCALARS[element], count)
    return [_value(file, element) for _ in range(count)]


def _numbers(file: BinaryIO, form: str, count: int) -> list[Value]:
    packed = _exactly(file, count * struct.calcsize(form))
    return [number for (number,) in struct.iter_unpack(form, packed)]


def _number(file: BinaryIO, form: str) -> bool | int | float:
    (number,) = struct.unpack(form, _exactly(file, struct.calcsize(form)))
    return number  # type: ignore[no-any-return]  # the form decides


def _scalar(file: BinaryIO, form: str) -> int:
    return int(_number(file, form))


def _string(file: BinaryIO) -> str:
    return _exactly(file, _scalar(file, "<Q")).decode()


def _exactly(file: BinaryIO, size: int) -> bytes:
    if size > _LONGEST:
        raise EOFError(f"a field of {size} bytes")
    data = file.read(size)
    if len(data) != size:
        raise EOFError(f"{size} bytes expected, {len(data)} left")
    return data
