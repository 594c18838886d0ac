"""Lines over time: a colour for each, named in rows above the chart."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from assay.scenarios.charts import Axis, Estimate
from assay.scenarios.vega import (
    Datum,
    Frame,
    point_layer,
    rendered,
    rule_layer,
    text_layer,
    within,
)

COLOURS = ("s1", "s2", "s3", "s4", "s5", "s6")
"""CSS variables of the page, for lines in their order; a seventh line begins again."""

_HEIGHT = 230
_LEFT = 44
_LETTER = 6.9  # mean width of a label's letter
_ROW = 20
_ABOVE = 36  # pixels between the plot and the lowest row of names
_APART = 3.0  # pixels between the intervals of one moment, so that none hides another


def draw_curves(lines: Mapping[str, Sequence[tuple[float, Estimate]]], x: Axis, y: Axis) -> str:
    """See ``assay.scenarios.charts.curves``."""
    rows = _named(list(lines))
    frame = Frame(x, y, _HEIGHT, _LEFT, rows=max(row for _, row, _ in rows) + 1)
    segments: list[Datum] = []
    whiskers: list[Datum] = []
    marks: list[Datum] = []
    told: list[str] = []
    for place, (name, line) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        shift = (place - (len(lines) - 1) / 2) * _APART
        shown = [(at, one) for at, one in line if one.value is not None]
        points = list(_points(name, shown, frame, shift, colour))
        marks += points
        segments += [Datum(a.x, a.y, name, b.x, b.y, colour) for a, b in pairwise(points)]
        whiskers += _whiskers(shown, frame, shift, colour)
        told += [point.text for point in points]
    labels = list(_labels(rows, frame))
    dots = [
        Datum(*frame.measures(left + 5, _top(row, frame)), name, colour=_colour(lines, name))
        for left, row, name in rows
    ]
    layers = [
        rule_layer(whiskers, "whisker", width=2, opacity=0.35),
        rule_layer(segments, "line", width=2, opacity=0.9),
        point_layer(marks, "dot", size=46),
        point_layer(dots, "key", size=70),
        text_layer(labels, "label"),
    ]
    return rendered(layers, frame, f"{y.label} over {x.label}", told)


def _points(
    name: str, line: Sequence[tuple[float, Estimate]], frame: Frame, shift: float, colour: str
) -> Iterator[Datum]:
    for at, one in line:
        if one.value is not None:
            value = within(frame.y, one.value)
            yield Datum(_moved(at, frame, shift), value, _told(name, one), colour=colour)


def _whiskers(
    line: Sequence[tuple[float, Estimate]], frame: Frame, shift: float, colour: str
) -> Iterator[Datum]:
    for at, one in line:
        if one.low is not None and one.high is not None:
            low, high = within(frame.y, one.low), within(frame.y, one.high)
            x = _moved(at, frame, shift)
            yield Datum(x, low, "", x, high, colour)


def _moved(at: float, frame: Frame, pixels: float) -> float:
    across, _ = frame.pixels(at, frame.y.low)
    return frame.measures(across + pixels, 0)[0]


def _named(names: Sequence[str]) -> list[tuple[float, int, str]]:
    """Where each name stands above the chart: pixels from the left, row from the top."""
    placed: list[tuple[float, int, str]] = []
    left, row = 0.0, 0
    room = Frame(Axis("", 0, 1), Axis("", 0, 1), _HEIGHT, _LEFT).width
    for name in names:
        width = len(name) * _LETTER + 30
        if left and left + width > room:
            left, row = 0.0, row + 1
        placed.append((left, row, name))
        left += width
    return placed


def _labels(rows: Sequence[tuple[float, int, str]], frame: Frame) -> Iterator[Datum]:
    for left, row, name in rows:
        yield Datum(*frame.measures(left + 14, _top(row, frame)), name)


def _top(row: int, frame: Frame) -> float:
    """Height of a row of names in pixels from the upper edge of the plot; above is negative."""
    return -(_ABOVE + (frame.rows - 1 - row) * _ROW)


def _colour(lines: Mapping[str, object], name: str) -> str:
    return COLOURS[list(lines).index(name) % len(COLOURS)]


def _told(name: str, one: Estimate) -> str:
    interval = "" if one.low is None or one.high is None else f" [{one.low:.3f}, {one.high:.3f}]"
    return f"{name}, {one.label}: {one.value:.3f}{interval}"
