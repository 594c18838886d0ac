"""Small pictures as inline SVG.

Presentation attributes and classes only, so that a strict content policy needs no exception; colours
come from the page's style sheet. Every text goes through an element tree, which escapes it.
"""

from collections.abc import Collection, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

_DOT: Final = 14
_IN_A_ROW: Final = 12
_CELL: Final = 34
_SIGNS: Final = {
    "substitution": "=",
    "joint interference": "\N{MULTIPLICATION SIGN}",
    "complementarity": "+",
}


def glyph(shown: Collection[int], kinds: Sequence[str], label: str) -> Markup:
    """A coalition as a row of dots: filled where the candidate was shown.

    Args:
        shown: Places of the candidates shown, from 0.
        kinds: Class of each candidate's dot.
        label: What it says, for those who do not see it.
    """
    columns = min(max(len(kinds), 1), _IN_A_ROW)
    rows = max(-(-len(kinds) // _IN_A_ROW), 1)
    svg = _svg("glyph", columns * _DOT, rows * _DOT, label)
    svg.set("width", str(columns * _DOT))
    svg.set("height", str(rows * _DOT))
    for place, kind in enumerate(kinds):
        state = "on" if place in shown else "off"
        SubElement(
            svg,
            "circle",
            {
                "class": f"{state} {kind}",
                "cx": str((place % _IN_A_ROW) * _DOT + _DOT // 2),
                "cy": str((place // _IN_A_ROW) * _DOT + _DOT // 2),
                "r": "4.5",
            },
        )
    return _markup(svg)


def meter(value: float, kind: str, label: str, *, mark: float | None = None) -> Markup:
    """A bar from the left: a share of its width.

    Args:
        value: In [0, 1]; what is beyond is cut.
        kind: Class of the bar.
        label: What it says.
        mark: Where a line crosses it, in [0, 1].
    """
    svg = _svg("meter", 100, 8, label)
    svg.set("preserveAspectRatio", "none")
    _rect(svg, "track", 0, 100)
    _rect(svg, kind, 0, 100 * _share(value))
    if mark is not None:
        _rect(svg, "mark", min(100 * _share(mark), 99.4), 0.6)
    return _markup(svg)


def balance(value: float, most: float, label: str) -> Markup:
    """A bar from the middle: to the right where it helps, to the left where it harms."""
    svg = _svg("meter", 100, 8, label)
    svg.set("preserveAspectRatio", "none")
    _rect(svg, "track", 0, 100)
    length = 50 * _share(abs(value) / most) if most > 0 else 0.0
    _rect(svg, "good" if value >= 0 else "bad", 50 if value >= 0 else 50 - length, length)
    _rect(svg, "mark", 49.7, 0.6)
    return _markup(svg)


def matrix(n: int, pairs: Sequence[tuple[int, int, float, str]]) -> Markup:
    """Interactions of pairs: one cell each, the stronger the fuller.

    Args:
        n: Number of candidates.
        pairs: Places from 0, strength in units of utility, and meaning.
    """
    side = (n + 1) * _CELL
    svg = _svg("matrix", side, side, f"interactions among {n} records")
    svg.set("width", str(side))
    most = max((abs(strength) for _, _, strength, _ in pairs), default=1.0)
    found = {(max(i, j), min(i, j)): (strength, meaning) for i, j, strength, meaning in pairs}
    for row in range(n):
        _number(svg, row + 1, 0, row + 1)
        _number(svg, row + 1, row + 1, 0)
        for column in range(row):
            strength, meaning = found.get((row, column), (0.0, ""))
            _cell(svg, (row, column), abs(strength) / most, meaning, strength)
    return _markup(svg)


def columns(values: Sequence[float], labels: Sequence[str], label: str) -> Markup:
    """One column per value, the highest as high as the picture."""
    most = max(values, default=0.0) or 1.0
    svg = _svg("columns", max(len(values), 1) * 10, 60, label)
    svg.set("preserveAspectRatio", "none")
    for place, (value, text) in enumerate(zip(values, labels, strict=True)):
        height = max(56 * value / most, 0.8)
        bar = {"class": "bar", "x": f"{place * 10 + 1.5:g}", "y": f"{60 - height:.2f}"}
        rect = SubElement(svg, "rect", bar | {"width": "7", "height": f"{height:.2f}"})
        SubElement(rect, "title").text = text
    return _markup(svg)


def _cell(
    svg: Element, place: tuple[int, int], share: float, meaning: str, strength: float
) -> None:
    row, column = place
    x, y = (column + 1) * _CELL, (row + 1) * _CELL
    group = SubElement(svg, "g", {"class": "cell " + meaning.replace(" ", "-")})
    size = str(_CELL - 4)
    square = {"x": str(x + 2), "y": str(y + 2), "width": size, "height": size, "rx": "6"}
    opacity = {"fill-opacity": f"{0.15 + 0.45 * share:.2f}"} if meaning else {}
    SubElement(group, "rect", square | opacity)
    if meaning:
        title = f"{column + 1} and {row + 1}: {meaning} ({strength:+.2f})"
        SubElement(group, "title").text = title
        at = {"x": str(x + _CELL // 2), "y": str(y + _CELL // 2 + 5)}
        SubElement(group, "text", at).text = _SIGNS[meaning]


def _number(svg: Element, number: int, column: int, row: int) -> None:
    at = {"class": "place", "x": f"{column * _CELL + _CELL // 2}"}
    text = SubElement(svg, "text", at | {"y": f"{row * _CELL + _CELL // 2 + 5}"})
    text.text = str(number)


def _svg(kind: str, width: float, height: float, label: str) -> Element:
    attributes = {"class": kind, "viewBox": f"0 0 {width:g} {height:g}", "role": "img"}
    return Element("svg", attributes | {"aria-label": label})


def _rect(svg: Element, kind: str, x: float, width: float) -> None:
    attributes = {"class": kind, "x": f"{x:.2f}", "y": "0", "width": f"{width:.2f}"}
    SubElement(svg, "rect", attributes | {"height": "8"})


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _markup(svg: Element) -> Markup:
    """The tree's serialiser has escaped every text and attribute."""
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704
