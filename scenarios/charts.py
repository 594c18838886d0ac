"""Plots as inline SVG: no script and no address in them; colours come from the page.

Altair draws them, in ``assay.scenarios.vega``, which is imported when the first one is asked for:
it is large, its first picture takes a second, and nothing but a report needs it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


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
    from assay.scenarios.drawing import draw_dots  # noqa: PLC0415

    return draw_dots(estimates, axis)


def plane(points: Sequence[Point], x: Axis, y: Axis) -> str:
    """Labelled dots over two measures."""
    from assay.scenarios.drawing import draw_plane  # noqa: PLC0415

    return draw_plane(points, x, y)


def strips(groups: Mapping[str, Sequence[float]], axis: Axis) -> str:
    """One row of dots per group, spread a little so that equal values stay countable.

    Args:
        groups: Values by name; ``useful``, ``harmful``, ``stale`` and ``planted`` have a colour.
        axis: Of the values.
    """
    from assay.scenarios.drawing import draw_strips  # noqa: PLC0415

    return draw_strips(groups, axis)


def curves(lines: Mapping[str, Sequence[tuple[float, Estimate]]], x: Axis, y: Axis) -> str:
    """One line per name through its estimates, each with its interval, named at its end.

    Args:
        lines: By name, in an order that decides the colours: where on ``x``, and what it is there.
        x: Such as time.
        y: Of the estimates.
    """
    from assay.scenarios.drawing_curves import draw_curves  # noqa: PLC0415

    return draw_curves(lines, x, y)


def ticks(axis: Axis) -> list[float]:
    """Round values from one end of an axis to the other, four to ten of them."""
    step = _step(axis.high - axis.low)
    count = round((axis.high - axis.low) / step)
    return [round(axis.low + i * step, 10) for i in range(count + 1)]


def _step(span: float) -> float:
    """The round step that gives four to ten ticks."""
    power = 10 ** math.floor(math.log10(span))
    return float(next(m * power for m in (0.2, 0.25, 0.5, 1, 2) if span / (m * power) <= 6))  # noqa: PLR2004
