"""What stands where in a chart: rows, labels that cover nothing, the words that describe it.

Sizes are pixels of a chart 440 wide; ``assay.scenarios.vega`` turns them into a picture.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from assay.scenarios.charts import Axis, Estimate, Point
from assay.scenarios.vega import (
    SIDE,
    WIDTH,
    Datum,
    Frame,
    Side,
    point_layer,
    rendered,
    rule_layer,
    text_layer,
    within,
)

_PLOT = WIDTH - 2 * SIDE
_Y_TICKS = 40
_LINE = 16
_TRACK = 28
_STRIP = 52
_PLANE_HEIGHT = 260
_GAP = 10  # pixels between a dot and its label
_LETTER = 6.9  # mean width of a label's letter
_COLOURS = {"useful": "good", "harmful": "bad", "planted": "bad", "stale": "warn"}


def draw_dots(estimates: Sequence[Estimate], axis: Axis) -> str:
    """See ``assay.scenarios.charts.dots``."""
    labels: list[Datum] = []
    figures: list[Datum] = []
    tracks: list[Datum] = []
    whiskers: list[Datum] = []
    marks: list[Datum] = []
    y = 0.0
    for estimate in estimates:
        middle = y + _LINE / 2
        labels += _lines(estimate.label, axis.low, middle)
        value = _known(estimate.value)
        shown = "\N{EN DASH}" if value is None else f"{value:.3f}"
        figures.append(Datum(axis.high, middle, shown))
        y += _LINE * len(_wrapped(estimate.label)) + _TRACK
        if value is not None:
            track = y - _TRACK + 8
            tracks.append(Datum(axis.low, track, "", axis.high, track, "grid"))
            marks.append(Datum(within(axis, value), track, _described(estimate)))
            whiskers += _whisker(axis, estimate, track)
    frame = Frame(axis, Axis("", y, 0.0), int(y))
    layers = [
        rule_layer(tracks, "track", width=1.5, opacity=1),
        rule_layer(whiskers, "whisker", legend="interval"),
        point_layer(marks, "dot", legend="estimate" if whiskers else ""),
        text_layer(labels, "label"),
        text_layer(figures, "figure", align="right"),
    ]
    described = [_described(estimate) for estimate in estimates]
    return rendered(layers, frame, f"{axis.label}, by row", described)


def draw_plane(points: Sequence[Point], x: Axis, y: Axis) -> str:
    """See ``assay.scenarios.charts.plane``."""
    frame = Frame(x, y, _PLANE_HEIGHT, _Y_TICKS)
    shown = [p for p in points if _known(p.x) is not None and _known(p.y) is not None]
    marks = [Datum(within(x, p.x), within(y, p.y), _told(p)) for p in shown]
    whiskers = [whisker for point in shown for whisker in _crosses(point, x, y)]
    placed = list(_placed(shown, frame))
    beside: dict[Side, list[Datum]] = {
        "left": [p.label for p in placed if p.align == "left"],
        "right": [p.label for p in placed if p.align == "right"],
    }
    leaders = [p.leader for p in placed if p.leader]
    layers = [
        rule_layer(leaders, "leader", width=1, opacity=0.6),
        rule_layer(whiskers, "whisker", legend="interval"),
        point_layer(marks, "dot"),
        *(text_layer(labels, f"label_{align}", align=align) for align, labels in beside.items()),
    ]
    return rendered(layers, frame, f"{y.label} against {x.label}", [_told(p) for p in shown])


def draw_strips(groups: Mapping[str, Sequence[float]], axis: Axis) -> str:
    """See ``assay.scenarios.charts.strips``."""
    labels: list[Datum] = []
    marks: list[Datum] = []
    means: list[Datum] = []
    told: list[str] = []
    y = 0.0
    for name, values in groups.items():
        labels += _lines(f"{name} ({len(values)})", axis.low, y + _LINE / 2)
        y += _LINE * len(_wrapped(f"{name} ({len(values)})")) + _STRIP
        track = y - _STRIP / 2 - 2
        known = sorted(value for value in values if not math.isnan(value))
        colour = _COLOURS.get(name, "soft")
        for place, value in enumerate(known):
            spread = ((place * 7 + 5) % 11 - 5) * 3.4
            at = within(axis, value)
            marks.append(Datum(at, track + spread, f"{name}: {value:+.3f}", colour=colour))
        told.append(f"{name}: {len(values)} values")
        if known:
            mean = sum(known) / len(known)
            at = within(axis, mean)
            text = f"{name}: mean {mean:+.3f}"
            means.append(Datum(at, track - 22, text, at, track + 22, "ink"))
            told[-1] += f", mean {mean:+.3f}"
    layers = [
        point_layer(marks, "dot", size=34, opacity=0.65, legend="one value"),
        rule_layer(means, "mean", width=1.5, opacity=1, legend="mean of its row"),
        text_layer(labels, "label"),
    ]
    frame = Frame(axis, Axis("", y, 0.0), int(y))
    return rendered(layers, frame, f"{axis.label}, by group", told)


def _lines(text: str, x: float, y: float) -> Iterator[Datum]:
    for place, line in enumerate(_wrapped(text)):
        yield Datum(x, y + place * _LINE, line)


def _wrapped(text: str) -> list[str]:
    return wrap(text, int((_PLOT - 50) / _LETTER)) or [""]


def _whisker(axis: Axis, estimate: Estimate, y: float) -> Iterator[Datum]:
    if estimate.low is not None and estimate.high is not None:
        low, high = within(axis, estimate.low), within(axis, estimate.high)
        yield Datum(low, y, _described(estimate), high, y)


def _crosses(point: Point, x: Axis, y: Axis) -> Iterator[Datum]:
    at_x, at_y = within(x, point.x), within(y, point.y)
    if point.x_bounds:
        low, high = (within(x, bound) for bound in point.x_bounds)
        yield Datum(low, at_y, _told(point), high, at_y)
    if point.y_bounds:
        low, high = (within(y, bound) for bound in point.y_bounds)
        yield Datum(at_x, low, _told(point), at_x, high)


class _Placed(NamedTuple):
    """Where a point's label goes: the line it begins or ends at, and a leader if that is far."""

    align: Side
    label: Datum
    leader: Datum | None


def _placed(points: Sequence[Point], frame: Frame) -> Iterator[_Placed]:
    """Labels beside their dots, on the side with room, moved by lines until they cover nothing."""
    taken = [(x - 6, x + 6, y) for x, y in (frame.pixels(point.x, point.y) for point in points)]
    taken += [span for point in points for span in _across(point, frame)]
    for point in sorted(points, key=lambda point: (-point.y, point.x)):
        x, y = frame.pixels(point.x, point.y)
        long = len(point.label) * _LETTER
        leftwards = x + long + _GAP > frame.width and x > frame.width / 2
        near = x - _GAP if leftwards else x + _GAP
        begin, end = (near - long, near) if leftwards else (near, near + long)
        at = _free(y, frame.height, [line for b, e, line in taken if begin < e and b < end])
        taken.append((begin, end, at))
        label = Datum(*frame.measures(near, at), point.label)
        edge = near + 2 if leftwards else near - 2
        leader = None if abs(at - y) < _LINE / 2 else _leader(frame, (x, y), (edge, at))
        yield _Placed("right" if leftwards else "left", label, leader)


def _leader(frame: Frame, begin: tuple[float, float], end: tuple[float, float]) -> Datum:
    x, y = frame.measures(*begin)
    x2, y2 = frame.measures(*end)
    return Datum(x, y, "", x2, y2, "soft")


def _across(point: Point, frame: Frame) -> Iterator[tuple[float, float, float]]:
    """Where a point's horizontal interval would strike through a label."""
    if point.x_bounds and point.x_bounds[0] < point.x_bounds[1]:
        (begin, y), (end, _) = (frame.pixels(bound, point.y) for bound in point.x_bounds)
        yield begin, end, y


def _free(y: float, height: float, others: Sequence[float]) -> float:
    """The line nearest to ``y`` that touches no other, inside the chart; ``y`` if all do."""
    start = min(y, height - _LINE / 2)
    steps = sorted(range(-20, 21), key=lambda step: (abs(step), -step))
    lines = [start + step * _LINE for step in steps]
    inside = [line for line in lines if line == start or 0 <= line <= height - _LINE / 2]
    return next((line for line in inside if all(abs(line - o) >= _LINE for o in others)), start)


def _described(estimate: Estimate) -> str:
    if _known(estimate.value) is None:
        return f"{estimate.label}: no figure"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.label}: {estimate.value:.3f}"
    return f"{estimate.label}: {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _told(point: Point) -> str:
    x, y = _bounds(point.x_bounds), _bounds(point.y_bounds)
    return f"{point.label}: {point.x:g}{x}, {point.y:.3f}{y}"


def _bounds(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f" [{bounds[0]:.3f}, {bounds[1]:.3f}]"


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
