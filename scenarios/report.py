"""One self-contained HTML page per run: tables that sort, plots, light and dark, nothing fetched.

The page carries a content policy that forbids every outside address, and every text that comes from
data, a model or a user is escaped.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from assay.errors import ScenarioError


class Cell(NamedTuple):
    """One cell of a table.

    Attributes:
        text: What is shown.
        sort: What the column is sorted by; ``None`` sorts by the text.
        note: Shown small below the text, an interval for example.
        kind: Style: ``number``, ``good``, ``bad``, ``muted``, ``text``.
    """

    text: str
    sort: float | None = None
    note: str = ""
    kind: str = "text"


class Column(NamedTuple):
    """A column's heading, and what it means."""

    name: str
    meaning: str = ""


class Table(NamedTuple):
    """A table; its columns sort."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


class Figure(NamedTuple):
    """A plot from ``assay.scenarios.charts`` and the sentence that says what it shows."""

    svg: str
    caption: str


class Card(NamedTuple):
    """One decision to open and read: a title, chips beside it, a table and closing lines."""

    title: str
    chips: Sequence[Cell]
    table: Table
    lines: Sequence[tuple[str, str]] = ()
    is_open: bool = False


class Section(NamedTuple):
    """A heading, what to know, then tables, figures and cards."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    cards: Sequence[Card] = ()


class Report(NamedTuple):
    """A page.

    Attributes:
        title: Its heading.
        summary: One or two sentences: what was found.
        facts: Where every number comes from: command, seed, model identity, intervals, ...
        headlines: Big figures at the top: figure, what it is, small note.
        sections: In order.
        warning: What a reader must know first, such as that the run has not finished.
    """

    title: str
    summary: str
    facts: Sequence[tuple[str, str]]
    headlines: Sequence[tuple[str, str, str]]
    sections: Sequence[Section]
    warning: str = ""


def number(value: float | None, *, digits: int = 3, note: str = "", kind: str = "number") -> Cell:
    """A figure as a cell; ``None`` is shown as a dash and sorts last."""
    if value is None:
        return Cell("\N{EN DASH}", sys.float_info.max, note, "muted")
    return Cell(f"{value:,.{digits}f}", value, note, kind)


def render(report: Report) -> str:
    """The page as HTML."""
    environment = Environment(
        loader=PackageLoader("assay.scenarios"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = _svg
    return environment.get_template("report.html.j2").render(report=report)


def write(report: Report, path: Path) -> None:
    """Write the page, complete or not at all.

    Raises:
        ScenarioError: If the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(render(report), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise ScenarioError(f"cannot write the report {str(path)!r}: {error.strerror}") from error


def _svg(svg: str) -> Markup:
    """Charts are serialised from an element tree, which has escaped every text in them."""
    return Markup(svg)  # noqa: S704
