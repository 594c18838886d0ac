"""The study's pictures, computed: planes with intervals, utilities by role."""

from xml.etree.ElementTree import Element, fromstring

from assay.scenarios.cmi_charts import (
    Recording,
    cost_plane,
    published_report,
    robustness_plane,
    utilities_by_role,
)
from assay.scenarios.published_cmi import Diagnosis, replay_published
from assay.scenarios.published_tables import AgentRow, Tables
from assay.scenarios.recorded_costs import RecordedCost
from assay.scenarios.report import render
from assay.scenarios.schema import Key
from assay.scenarios.scorer_differences import Difference, Differences
from assay.scenarios.statistics import Interval
from assay.stores.records import RecordId

HALF = Interval(0.5, 0.4, 0.6)
ALONE = Interval(0.5, None, None)
NONE = Interval(None, None, None)
ROWS = {
    "q1": [
        Diagnosis(RecordId("u"), 0.4, 0.0, selected=True, harmful=False, label="useful"),
        Diagnosis(RecordId("h"), -0.1, 0.0, selected=False, harmful=True, label="harmful"),
    ]
}
KEYS = {
    "q1": Key(
        family="f",
        cluster="c",
        useful=frozenset({RecordId("u")}),
        irrelevant=frozenset(),
        harmful=frozenset({RecordId("h")}),
    )
}


def test_a_plane_shows_intervals_both_ways_and_leaves_out_what_has_no_figure() -> None:
    svg = parsed(robustness_plane({"a": (HALF, HALF), "b": (ALONE, HALF), "c": (NONE, HALF)}))

    assert [text for text in _texts(svg) if text in "abc"] == ["a", "b"]
    assert len(_lines(svg, "whisker")) == 3


def test_the_interval_of_poison_is_turned_round_with_it() -> None:
    svg = parsed(robustness_plane({"a": (ALONE, Interval(0.0, 0.0, 0.5))}))
    [whisker] = _lines(svg, "whisker")
    dot = next(e for e in svg.iter() if e.tag.endswith("circle"))

    assert float(whisker.attrib["x1"]) < float(whisker.attrib["x2"])
    assert float(whisker.attrib["x2"]) == float(dot.attrib["cx"])


def test_utilities_stand_in_one_row_per_role() -> None:
    svg = parsed(utilities_by_role(ROWS))

    shown = _texts(svg)
    assert {"useful (1)", "irrelevant (0)", "harmful (1)"} <= set(shown)
    assert len(_lines(svg, "mean")) == 2


def test_cost_starts_at_0() -> None:
    shown = _texts(parsed(cost_plane({"a": (29.0, HALF)}, "seconds per example")))

    assert "0" in shown
    assert "seconds per example" in shown


def test_the_page_holds_every_section_it_has_figures_for() -> None:
    replayed = replay_published(KEYS, ROWS, seed=7)
    tables = Tables({"cmi": AgentRow(HALF, HALF, 3, HALF, HALF, HALF, HALF, HALF)}, {}, {})
    differences = Differences(1, 1, {"same score": Difference(1, 1.0, 1.0, ("q1",))})
    whole = Recording(replayed, ROWS, tables, differences, {"cmi": RecordedCost(1, 9.0, 2.0)})
    bare = Recording(replayed, ROWS, None, None, {})

    page, short = (
        render(published_report(recording, [("Seed", "7")])) for recording in (whole, bare)
    )

    assert "3 of the judge&#39;s answers were cut" in page
    assert "gives 1 of 1 recorded scores" in page
    assert "seconds per example" in page
    assert "Two scorers" not in short
    assert "2 of 2" in short


def parsed(svg: str) -> Element:
    return fromstring(svg)  # noqa: S314  # made by the code under test


def _texts(svg: Element) -> list[str]:
    return [e.text or "" for e in svg.iter() if e.tag.endswith("text")]


def _lines(svg: Element, kind: str) -> list[Element]:
    return [e for e in svg.iter() if e.attrib.get("class") == kind]
