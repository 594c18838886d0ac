"""From a mistake in a scenario to the line it stands on and what was probably meant."""

import re
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from assay.errors import ScenarioError
from assay.runtime.naming import close_names

Place: TypeAlias = tuple[str | int, ...]
"""Way to a value: names of fields and places in lists, such as ``("turn", 0, "say")``."""

_AT = re.compile(r" - at `\$(?P<place>[^`]*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<item>\d+)\]")
_HEADING = re.compile(r"^\[(?P<list>\[)?\s*(?P<name>[^\[\]]+?)\s*\]")


class Located(NamedTuple):
    """Where a scenario was read: ``text`` is that of a TOML file, empty for a line of a JSONL one."""

    path: Path
    text: str
    line: int


def explained(
    error: msgspec.ValidationError, kind: type[msgspec.Struct], located: Located
) -> ScenarioError:
    """The error as a user can act on it: file, line, what was expected and the nearest name."""
    sentence = str(error)
    at = _AT.search(sentence)
    place = _place(at["place"]) if at else ()
    sentence = _AT.sub("", sentence)
    unknown = _UNKNOWN.match(sentence)
    if unknown:
        field = unknown["field"]
        line = line_of(located, (*place, field))
        known = _fields_at(kind, place)
        return ScenarioError(
            f"{located.path}, line {line}: unknown field {field!r}{_inside(place)}"
            f"{close_names(field, known)}"
        )
    shown = sentence[:1].lower() + sentence[1:]
    line = line_of(located, place)
    return ScenarioError(f"{located.path}, line {line}: {shown}{_inside(place)}".replace("`", ""))


def line_of(located: Located, place: Place) -> int:
    """The line a value stands on; of what it belongs to where the value has no line of its own."""
    tables: dict[Place, int] = {(): located.line}
    heading: Place = ()
    for number, raw in enumerate(located.text.splitlines(), start=1):
        line = raw.strip()
        if found := _HEADING.match(line):
            heading = _absolute(found["name"].split("."), tables, new=found["list"] is not None)
            tables[heading] = number
        elif "=" in line:
            key = (part.strip().strip("\"'") for part in line.partition("=")[0].split("."))
            tables.setdefault((*heading, *key), number)
    return next(tables[place[:end]] for end in range(len(place), -1, -1) if place[:end] in tables)


def _absolute(names: list[str], tables: dict[Place, int], *, new: bool) -> Place:
    """Where a heading leads: the last item of each list on the way, a new one for ``[[...]]``."""
    place: Place = ()
    for number, name in enumerate(names, start=1):
        place = (*place, name.strip().strip("\"'"))
        items = sum(len(t) == len(place) + 1 and t[:-1] == place for t in tables if _is_item(t))
        if new and number == len(names):
            place = (*place, items)
        elif items:
            place = (*place, items - 1)
    return place


def _is_item(place: Place) -> bool:
    return bool(place) and isinstance(place[-1], int)


def _place(text: str) -> Place:
    return tuple(
        step["field"] if step["field"] is not None else int(step["item"])
        for step in _STEP.finditer(text)
    )


def _inside(place: Place) -> str:
    """Such as `` in turn 2, expect``; lists count from 1 as people do."""
    words: list[str] = []
    for step in place:
        if isinstance(step, int) and words:
            words[-1] = f"{words[-1]} {step + 1}"
        else:
            words.append(str(step))
    return f" in {', '.join(words)}" if words else ""


def _fields_at(kind: type[msgspec.Struct], place: Place) -> list[str]:
    """Names of the fields of the object at a place; none where it is no object of ours."""
    inner: inspect.Type | None = inspect.type_info(kind)
    for step in place:
        inner = _below(inner, step)
    return [field.name for field in inner.fields] if isinstance(inner, inspect.StructType) else []


def _below(kind: inspect.Type | None, step: str | int) -> inspect.Type | None:
    match kind:
        case inspect.Metadata():
            return _below(kind.type, step)
        case inspect.StructType():
            types = {field.name: field.type for field in kind.fields}
            found = types.get(str(step))
            return found.type if isinstance(found, inspect.Metadata) else found
        case inspect.VarTupleType():
            return kind.item_type
        case _:
            return None
