"""The page of a simulation and the chart of curves."""

import re
from xml.etree import ElementTree as ET

import msgspec
import pytest

from assay.scenarios.charts import Axis, Estimate, curves
from assay.scenarios.report import render
from assay.scenarios.simulation.living import Order, live
from assay.scenarios.simulation.page import simulation_report

from .support_simulation import record_of, small

MONTHS = Axis("months", 0.0, 3.0)
SHARE = Axis("answers right", 0.0, 1.0)


def line(*values: float | None) -> list[tuple[float, Estimate]]:
    """One estimate a month, each with an interval of a tenth."""
    return [
        (month + 0.5, Estimate(f"month {month + 1}", v, v and v - 0.1, v and v + 0.1))
        for month, v in enumerate(values)
    ]


def test_each_line_has_a_colour_a_name_and_its_figures_in_words() -> None:
    svg = curves({"panel": line(0.9, 0.8), "no guard": line(0.5, 0.4)}, MONTHS, SHARE)

    root = ET.fromstring(svg)  # noqa: S314 - drawn above
    words = "".join(root.itertext())
    assert {"var(--s1)", "var(--s2)"} <= set(re.findall(r"var\(--s\d\)", svg))
    assert "panel, month 2: 0.800 [0.700, 0.900]" in words
    assert "no guard" in [text.text for text in root.iter("text")]
    assert "answers right over months" in words


def test_a_month_without_a_figure_is_left_out_and_no_mark_leaves_the_axis() -> None:
    svg = curves({"panel": line(0.95, None, 0.05)}, MONTHS, SHARE)

    assert "month 2" not in svg
    assert "NaN" not in svg
    assert "month 1: 0.950 [0.850, 1.050]" in svg


@pytest.mark.parametrize("count", [1, 5, 9])
def test_names_stand_in_rows_that_do_not_run_out_of_the_chart(count: int) -> None:
    names = [f"an agent with a long name {number}" for number in range(count)]

    svg = curves({name: line(0.5) for name in names}, MONTHS, SHARE)

    root = ET.fromstring(svg)  # noqa: S314 - drawn above
    _, top, _, height = map(float, root.attrib["viewBox"].split())
    assert top == 0
    assert height > 230 + count * 10
    assert {text.text for text in root.iter("text")} >= set(names)


def test_the_page_tells_what_was_done_and_what_each_agent_did() -> None:
    record = record_of(small(), sessions=4)
    lived = [live(Order(record.config, 0, agent, {}))[0] for agent in (0, 1)]

    page = render(simulation_report(record, lived))

    assert "assay simulate small.toml" in page
    assert page.count("<svg") == 4
    assert "a turn planted in the user&#39;s chat" in page
    assert "Against careful" in page
    assert "One user&#39;s story" in page
    assert 'class="warning"' not in page


def test_what_a_page_must_warn_of_stands_first_and_is_escaped() -> None:
    record = record_of(msgspec.structs.replace(small(), about="<b>bold</b>"), sessions=4)
    lived = [live(Order(record.config, 0, 0, {}))[0]]

    page = render(simulation_report(record, lived, warning="Not <finished>."))

    assert '<p class="warning" role="alert">Not &lt;finished&gt;.</p>' in page
    assert "<b>bold</b>" not in page
