"""A table of figures that never cuts one: what does not fit beside the names goes below."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_PADDING = 3
"""Cells a column takes beside its text: a blank on either side and a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """Rows of figures, printed as one table or as several, each with the names repeated.

    Names and figures stay whole on any console that holds the widest name beside the widest
    figure; on a narrower one they go on in the next line. Headings break between words first.

    Attributes:
        title: Printed above, with ``(1 of 2)`` where the table is split.
        head: One heading per column.
        rows: Cells as text, as many as headings; a cell may have several lines.
        names: How many columns, the first ones, tell the rows apart; every part repeats them.
        dim: First cells whose rows are of lesser weight, such as figures that are not ours.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    dim: Collection[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The parts, as wide as the console allows."""
        parts = list(self._parts(options.max_width))
        for at, columns in enumerate(parts, start=1):
            count = f" ({at} of {len(parts)})" if len(parts) > 1 else ""
            yield Text(self.title + count, style="bold")
            yield self._table(columns, options.max_width)

    def _parts(self, room: int) -> Iterator[list[int]]:
        """Columns of each part; the names are in all of them."""
        part = names = list(range(self.names))
        for column in range(self.names, len(self.head)):
            if part != names and _total(map(self._least, [*part, column])) > room:
                yield part
                part = names
            part = [*part, column]
        yield part

    def _table(self, columns: Sequence[int], room: int) -> Table:
        table = Table()
        for column, width in zip(columns, self._widths(columns, room), strict=True):
            # Not no_wrap: with it rich crops what is too long, whatever the overflow.
            table.add_column(
                Text(self.head[column]),
                justify="left" if column < self.names else "right",
                overflow="fold",
                width=width,
            )
        for row in self.rows:
            style = "dim" if row[0] in self.dim else None
            table.add_row(*(Text(row[column]) for column in columns), style=style)
        return table

    def _widths(self, columns: Sequence[int], room: int) -> list[int] | list[None]:
        """Whole headings if they fit, else headings by word, else what rich makes of it."""
        for measure in (self._most, self._least):
            widths = [measure(column) for column in columns]
            if _total(widths) <= room:
                return widths
        return [None] * len(columns)

    def _most(self, column: int) -> int:
        return max(self._cells(column), cell_len(self.head[column]))

    def _least(self, column: int) -> int:
        return max(self._cells(column), *map(cell_len, self.head[column].split()), 1)

    def _cells(self, column: int) -> int:
        lines = (line for row in self.rows for line in row[column].splitlines())
        return max(map(cell_len, lines), default=0)


def _total(widths: Iterable[int]) -> int:
    return sum(width + _PADDING for width in widths) + 1
