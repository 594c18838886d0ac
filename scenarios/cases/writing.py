"""Writes scenario files: a first one, and one made from a conversation."""

import json
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import cast

import msgspec
import tomlkit

from assay.errors import ScenarioError
from assay.scenarios.cases.files import SUFFIXES
from assay.scenarios.cases.schema import Case
from assay.scenarios.folder import write_whole

FIRST = "first.toml"


def write_first(path: Path) -> None:
    """Write a first scenario, with every part explained. Blocking.

    Raises:
        ScenarioError: If there is such a file already, or its name ends otherwise.
    """
    text = files("assay.scenarios.cases").joinpath(FIRST).read_text(encoding="utf-8")
    if checked_target(path).suffix == ".jsonl":
        write_whole(path, to_line(msgspec.toml.decode(text, type=Case)))
    else:
        write_whole(path, text.encode())


def write_case(path: Path, case: Case, *, note: str) -> None:
    """Write a scenario, as TOML or as a line, after the file's name. Blocking.

    Args:
        path: The file; it must not be there.
        case: The scenario; what is as by default is left out.
        note: A comment for the top of a TOML file.

    Raises:
        ScenarioError: If there is such a file already, or its name ends otherwise.
    """
    jsonl = checked_target(path).suffix == ".jsonl"
    write_whole(path, to_line(case) if jsonl else f"# {note}\n\n{to_toml(case)}".encode())


def checked_target(path: Path) -> Path:
    """A path a scenario may be written to.

    Raises:
        ScenarioError: If there is such a file already, or its name ends otherwise.
    """
    if path.suffix not in SUFFIXES:
        raise ScenarioError(f"a scenario file ends in .toml or .jsonl, got {str(path)!r}")
    if path.exists():
        raise ScenarioError(f"{str(path)!r} is there already; name another file, or remove it")
    return path


def to_line(case: Case) -> bytes:
    """A scenario as a line of a JSONL file."""
    return json.dumps(_shown(case), ensure_ascii=False, default=datetime.isoformat).encode() + b"\n"


def to_toml(case: Case) -> str:
    """A scenario as the text of a TOML file."""
    return tomlkit.dumps(_shown(case))


def _shown(value: msgspec.Struct) -> dict[str, object]:
    """A struct as plain data without what is as by default; tables after values, as TOML needs it."""
    shown: dict[str, object] = {}
    for field in msgspec.structs.fields(value):
        given, default = getattr(value, field.name), field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if given != default:
            shown[field.name] = _plain(given)
    return dict(sorted(shown.items(), key=lambda pair: _is_table(pair[1])))


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return _shown(value)
    if isinstance(value, tuple):
        return [
            _plain(item) for item in cast("tuple[object, ...]", value)
        ]  # nothing else is in one
    return value


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and isinstance(value[0], dict))
