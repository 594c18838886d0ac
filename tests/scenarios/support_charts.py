"""Reading a chart back: its marks by name, and where they stand, in pixels of the drawing."""

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element, fromstring


class Mark(NamedTuple):
    """One drawn mark: its place, how far it reaches from there, its text and its note."""

    x: float
    y: float
    across: float
    down: float
    text: str
    note: str


def marks(svg: str, name: str) -> list[Mark]:
    """The marks of one layer of a chart, in order."""
    groups = [g for g in fromstring(svg).iter("g") if f"{name}_marks" in g.get("class", "").split()]  # noqa: S314
    return [_mark(element) for group in groups for element in group]


def texts(svg: str) -> list[str]:
    """Every text that can be read in a chart."""
    return [element.text or "" for element in fromstring(svg).iter("text")]  # noqa: S314


def _mark(element: Element) -> Mark:
    x, y = re.findall(r"-?[\d.]+(?:e-?\d+)?", element.attrib["transform"])
    across, down = (float(element.get(name, "0")) for name in ("x2", "y2"))
    return Mark(
        float(x), float(y), across, down, element.text or "", element.findtext("title") or ""
    )
