"""Plots as inline SVG: no library, no script, no address in them; colours come from the page.

Elements are built as a tree and serialised once, so every text in them is escaped.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

WIDTH = 540
_LEFT = 128
_RIGHT = 56
_ROW = 30
_TOP = 14
_AXIS = 44
_PLOT_HEIGHT = 280
_DOT = 5.0


class Estimate(NamedTuple):
    """One dot with its whiskers; ``None`` where there is no figure or no interval."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Point(NamedTuple):
    """One labelled dot of a plane, with its intervals where there are any."""

    label: str
    x: float
    y: float
    x_bounds: tuple[float, float] | None = None
    y_bounds: tuple[float, float] | None = None


class Axis(NamedTuple):
    """What an axis measures, and from where to where."""

    label: str
    low: float
    high: float


def axis_for(label: str, values: Sequence[float], *, low: float | None = None) -> Axis:
    """An axis with round ends that takes in all values.

    Args:
        label: What it measures, unit included.
        values: What it must show.
        low: Where it begins; ``None`` lets the values say.
    """
    shown = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    start = min(shown) if low is None else low
    step = _step(max(max(shown) - start, 1e-9))
    return Axis(label, math.floor(start / step) * step, math.ceil(max(shown) / step) * step or step)


def dots(estimates: Sequence[Estimate], axis: Axis) -> str:
    """One row per estimate: a dot, its interval as a line, its figure at the right."""
    height = _TOP + _ROW * len(estimates) + _AXIS
    svg = _svg(height, f"{axis.label} per row, with intervals")
    bottom = height - _AXIS
    _x_axis(svg, axis, bottom)
    for row, estimate in enumerate(estimates):
        y = _TOP + _ROW * (row + 0.5)
        _text(svg, _LEFT - 12, y + 4, estimate.label, anchor="end", kind="label")
        if estimate.value is None:
            _text(svg, WIDTH - _RIGHT + 10, y + 4, "-", kind="figure")
            continue
        group = SubElement(svg, "g", {"class": "estimate"})
        if estimate.low is not None and estimate.high is not None:
            ends = (_x(axis, estimate.low), _x(axis, estimate.high))
            _line(group, ends[0], y, ends[1], y, kind="whisker")
        _dot(group, _x(axis, estimate.value), y, "accent", _described(estimate))
        _text(svg, WIDTH - _RIGHT + 10, y + 4, f"{estimate.value:.3f}", kind="figure")
    return _serialised(svg)


def plane(points: Sequence[Point], x: Axis, y: Axis) -> str:
    """Labelled dots over two measures."""
    height = _TOP + _PLOT_HEIGHT + _AXIS
    svg = _svg(height, f"{y.label} against {x.label}")
    bottom = height - _AXIS
    _x_axis(svg, x, bottom)
    for tick in _ticks(y):
        at = _y(y, tick, bottom)
        _line(svg, _LEFT, at, WIDTH - _RIGHT, at, kind="grid")
        _text(svg, _LEFT - 10, at + 4, f"{tick:g}", anchor="end", kind="tick")
    _text(svg, 8, _TOP + 4, y.label, kind="axis")
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (-point.y, point.x)):
        at_x, at_y = _x(x, point.x), _y(y, point.y, bottom)
        if point.x_bounds:
            ends = (_x(x, point.x_bounds[0]), _x(x, point.x_bounds[1]))
            _line(svg, ends[0], at_y, ends[1], at_y, kind="whisker")
        if point.y_bounds:
            ends = (_y(y, point.y_bounds[0], bottom), _y(y, point.y_bounds[1], bottom))
            _line(svg, at_x, ends[0], at_x, ends[1], kind="whisker")
        _dot(svg, at_x, at_y, "accent", f"{point.label}: {point.x:g}, {point.y:.3f}")
        _label_near(svg, point.label, at_x, at_y, taken)
    return _serialised(svg)


def strips(groups: Mapping[str, Sequence[float]], axis: Axis) -> str:
    """One row of dots per group, spread a little so that equal values stay countable.

    Args:
        groups: Values by name; the page colours ``useful``, ``harmful``, ``stale`` and ``planted``.
        axis: Of the values.
    """
    tall = 2 * _ROW
    height = _TOP + tall * len(groups) + _AXIS
    svg = _svg(height, f"{axis.label} by group")
    _x_axis(svg, axis, height - _AXIS)
    for row, (name, values) in enumerate(groups.items()):
        y = _TOP + tall * (row + 0.5)
        _text(svg, _LEFT - 12, y + 4, f"{name} ({len(values)})", anchor="end", kind="label")
        for place, value in enumerate(sorted(values)):
            spread = ((place * 7) % 11 - 5) * 3.6
            _dot(svg, _x(axis, value), y + spread, f"strip {name}", f"{value:+.3f}", radius=3.2)
        if values:
            mean = _x(axis, sum(values) / len(values))
            _line(svg, mean, y - 24, mean, y + 24, kind="mean")
    return _serialised(svg)


def _described(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.label}: {estimate.value:.3f}"
    return f"{estimate.label}: {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _svg(height: float, label: str) -> Element:
    box = f"0 0 {WIDTH} {height:g}"
    return Element("svg", {"viewBox": box, "role": "img", "aria-label": label, "class": "chart"})


def _serialised(svg: Element) -> str:
    return tostring(svg, encoding="unicode")


def _x_axis(svg: Element, axis: Axis, bottom: float) -> None:
    for tick in _ticks(axis):
        at = _x(axis, tick)
        _line(svg, at, _TOP, at, bottom, kind="grid")
        _text(svg, at, bottom + 18, f"{tick:g}", anchor="middle", kind="tick")
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    _text(svg, middle, bottom + 37, axis.label, anchor="middle", kind="axis")


def _label_near(
    svg: Element, label: str, x: float, y: float, taken: list[tuple[float, float]]
) -> None:
    """Put a label beside its dot, lower where one already stands."""
    right = x < WIDTH * 0.7
    at = y + 4
    while any(abs(x - other_x) < 110 and abs(at - other_y) < 13 for other_x, other_y in taken):  # noqa: PLR2004
        at += 13
    taken.append((x, at))
    side = 10 if right else -10
    _text(svg, x + side, at, label, anchor="start" if right else "end", kind="label")


def _x(axis: Axis, value: float) -> float:
    share = (value - axis.low) / ((axis.high - axis.low) or 1)
    return _LEFT + min(1.0, max(0.0, share)) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float, bottom: float) -> float:
    share = (value - axis.low) / ((axis.high - axis.low) or 1)
    return bottom - min(1.0, max(0.0, share)) * (bottom - _TOP)


def _ticks(axis: Axis) -> list[float]:
    step = _step(axis.high - axis.low)
    count = round((axis.high - axis.low) / step)
    return [round(axis.low + i * step, 10) for i in range(count + 1)]


def _step(span: float) -> float:
    """The round step that gives four to ten ticks."""
    power = 10 ** math.floor(math.log10(span))
    return float(next(m * power for m in (0.2, 0.25, 0.5, 1, 2) if span / (m * power) <= 6))  # noqa: PLR2004


def _dot(  # noqa: PLR0913, PLR0917 - a circle has that many properties
    parent: Element, x: float, y: float, kind: str, title: str, radius: float = _DOT
) -> None:
    attributes = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:g}", "class": f"dot {kind}"}
    SubElement(SubElement(parent, "circle", attributes), "title").text = title


def _line(  # noqa: PLR0913, PLR0917 - a line has that many properties
    parent: Element, x1: float, y1: float, x2: float, y2: float, kind: str
) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(parent, "line", {n: f"{v:.1f}" for n, v in ends.items()} | {"class": kind})


def _text(  # noqa: PLR0913, PLR0917 - a text has that many properties
    parent: Element, x: float, y: float, text: str, kind: str, anchor: str = "start"
) -> None:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": kind}
    SubElement(parent, "text", attributes).text = text
