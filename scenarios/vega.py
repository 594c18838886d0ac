"""Charts drawn by altair and turned into static SVG for one page: no script, no address, no ids.

Colours are the page's CSS variables, which pass through as they are; so a chart follows its theme.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

import altair as alt
import vl_convert

from assay.scenarios.charts import Axis, ticks

WIDTH = 440  # narrow, so that on a phone's 330 pixels a label is still 10 high
SIDE = 16
_TOP = 30
_BOTTOM = 46
_FONT = "system-ui, sans-serif"
_LABEL = 13
_TICK = 12

_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONG = re.compile(r"\d+\.\d{3,}")  # a hundredth of a pixel is enough

Side = Literal["left", "right"]


class Datum(NamedTuple):
    """One mark: where it stands, where it ends if it is a line, what it says, its colour."""

    x: float
    y: float
    text: str = ""
    x2: float | None = None
    y2: float | None = None
    colour: str = "accent"


class Frame(NamedTuple):
    """The inside of a chart, in units of its axes.

    ``left`` pixels beside it hold ticks, ``rows`` above it hold names of lines.
    """

    x: Axis
    y: Axis
    height: int
    left: int = SIDE
    rows: int = 0

    @property
    def width(self) -> int:
        return WIDTH - self.left - SIDE

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of measures stands, from the upper left corner."""
        return _share(self.x, x) * self.width, (1 - _share(self.y, y)) * self.height

    def measures(self, x: float, y: float) -> tuple[float, float]:
        """The measures at a place given in pixels."""
        across, down = x / self.width, y / self.height
        high, low = self.y.high, self.y.low
        return self.x.low + across * (self.x.high - self.x.low), high - down * (high - low)

    @property
    def heading(self) -> int:
        """Room above for the label of the vertical axis."""
        return (20 if self.y.label else 0) + 20 * self.rows


def within(axis: Axis, value: float) -> float:
    """The value, or the end of the axis beyond which it lies."""
    return min(axis.high, max(axis.low, value))


def _layer(data: Sequence[Datum], name: str, key: str) -> alt.Chart:
    """A chart of marks yet to be chosen; ``key`` is what the legend calls them."""
    values = [
        datum._asdict()
        | {"text": _legal(datum.text), "colour": f"var(--{datum.colour})", "key": key}
        for datum in data
    ]
    chart = alt.Chart(alt.InlineData(values=values), name=name)
    return chart.encode(description=alt.Description("text:N"))


def point_layer(
    data: Sequence[Datum], name: str, *, size: int = 80, opacity: float = 1, legend: str = ""
) -> alt.Chart:
    """Dots; ``size`` is their area in square pixels, ``legend`` what the key calls them, if at all."""
    shape = alt.Scale(domain=[legend], range=["circle"])
    chart: alt.Chart = (
        _layer(data, name, legend)
        .mark_point(filled=True, size=size, opacity=opacity)
        .encode(
            color=alt.Color("colour:N", scale=None),
            shape=alt.Shape("key:N", scale=shape, legend=_key(legend if data else "")),
        )
    )
    return chart


def rule_layer(
    data: Sequence[Datum], name: str, *, width: float = 3, opacity: float = 0.4, legend: str = ""
) -> alt.Chart:
    """Lines from one place to another, ``width`` pixels thick; ``legend`` as for dots."""
    solid = alt.Scale(domain=[legend], range=[[1, 0]])
    chart: alt.Chart = (
        _layer(data, name, legend)
        .mark_rule(strokeWidth=width, opacity=opacity, strokeCap="round")
        .encode(
            x2=alt.X2("x2:Q"),
            y2=alt.Y2("y2:Q"),
            color=alt.Color("colour:N", scale=None),
            strokeDash=alt.StrokeDash("key:N", scale=solid, legend=_key(legend if data else "")),
        )
    )
    return chart


def text_layer(data: Sequence[Datum], name: str, *, align: Side = "left") -> alt.Chart:
    """Texts that begin (``left``) or end (``right``) at their place."""
    chart: alt.Chart = (
        _layer(data, name, "")
        .mark_text(
            align=align,
            baseline="middle",
            color="var(--ink)",
            fontSize=_LABEL,
            limit=0,
        )
        .encode(text=alt.Text("text:N"))
    )
    return chart


def _key(legend: str) -> alt.Legend | None:
    if not legend:
        return None
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        symbolFillColor="var(--soft)",
        symbolStrokeColor="var(--soft)",
        labelColor="var(--soft)",
        labelFontSize=_TICK,
        symbolSize=60,
    )


def rendered(layers: Sequence[alt.Chart], frame: Frame, title: str, told: Sequence[str]) -> str:
    """All layers in one frame, as an ``svg`` element to put into a page.

    The frame's size is given, not found from the widths of texts, so that it is the same wherever
    it is made and equal charts of a page stand alike.

    Args:
        layers: From the bottom to the top.
        frame: Their axes and size.
        title: What the chart shows, for a screen reader.
        told: Its figures in words, likewise.
    """
    padding = {"left": frame.left, "right": SIDE, "top": _TOP + frame.heading, "bottom": _BOTTOM}
    own = alt.ScaleResolveMap(shape="independent", strokeDash="independent")
    chart = alt.LayerChart(
        layer=list(layers),
        encoding={"x": _x(frame), "y": _y(frame)},
        resolve=alt.Resolve(scale=own),
        width=frame.width,
        height=frame.height,
        padding=padding,
        autosize=alt.AutoSizeParams(type="none"),
        config=alt.Config(
            background="transparent",
            font=_FONT,
            view=alt.ViewConfig(stroke=None),
            legend=alt.LegendConfig(offset=4 + frame.heading, padding=6),
        ),
    )
    # Nothing here names an address; the empty list makes sure that none is ever fetched.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
    return _inlined(fromstring(svg), title, told)  # noqa: S314 - drawn above, not read


def _x(frame: Frame) -> alt.X:
    return alt.X("x:Q", scale=_scale(frame.x), axis=_axis(frame.x))


def _y(frame: Frame) -> alt.Y:
    """The vertical axis; where rows stand below one another it has no label and is not drawn."""
    axis = None
    if frame.y.label:
        axis = _axis(frame.y)
        # A title on its side is hard to read: it lies flat above the axis.
        axis.titleAngle, axis.titleAlign, axis.titleBaseline = 0, "left", "bottom"
        axis.titleX, axis.titleY = -frame.left, -10
    return alt.Y("y:Q", scale=_scale(frame.y), axis=axis)


def _scale(axis: Axis) -> alt.Scale:
    return alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)


def _axis(axis: Axis) -> alt.Axis:
    return alt.Axis(
        title=_legal(axis.label),
        values=ticks(axis),
        format=".6~g",  # without a precision Vega rounds 0.25 to 0.3
        domain=False,
        ticks=False,
        grid=True,
        gridColor="var(--grid)",
        labelColor="var(--soft)",
        labelFontSize=_TICK,
        labelFlush=False,
        labelOverlap=False,
        labelPadding=8,
        titleColor="var(--soft)",
        titleFontSize=_TICK,
        titleFontWeight="normal",
        titlePadding=8,
    )


def _inlined(svg: Element, title: str, told: Sequence[str]) -> str:
    """The drawing as part of a page: no namespaces or fixed size, a title, a description, notes.

    To a screen reader the chart is one picture whose description holds its figures, so the roles
    and labels within are dropped; a mark's label becomes the note a pointer sees.
    """
    for parent in svg.iter():
        parent.tag = parent.tag.rpartition("}")[2]
        for child in [c for c in parent if c.attrib.get("display") == "none" or _is_empty(c)]:
            parent.remove(child)
    for group in svg.iter("g"):
        if group.attrib.get("class", "").endswith("_marks"):
            _note(group)
    for element in svg.iter():
        for name in ("role", "aria-label", "aria-roledescription", "aria-hidden"):
            element.attrib.pop(name, None)
        for name in element.attrib.keys() & {"transform", "d", "x2", "y2"}:
            element.attrib[name] = _LONG.sub(_short, element.attrib[name])
    svg.attrib = {"viewBox": svg.attrib["viewBox"], "role": "img", "class": "chart"}
    described = [Element("title"), Element("desc")]
    described[0].text, described[1].text = _legal(title), _legal("; ".join(told))
    svg[:0] = described
    return tostring(svg, encoding="unicode")


def _note(marks: Element) -> None:
    """Let a pointer see the label of each mark that is not a text itself."""
    for mark in marks:
        if mark.tag != "text" and mark.attrib["aria-label"]:
            SubElement(mark, "title").text = mark.attrib["aria-label"]


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}"


def _legal(text: str) -> str:
    """The text without characters that XML has no place for."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _is_empty(element: Element) -> bool:
    return element.attrib.get("d") == "M0,0h0v0h0Z"


def _share(axis: Axis, value: float) -> float:
    return (within(axis, value) - axis.low) / ((axis.high - axis.low) or 1)
