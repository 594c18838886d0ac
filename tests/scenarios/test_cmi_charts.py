"""The study's pictures, computed: planes with intervals, utilities by role."""

from assay.scenarios.charts import Point
from assay.scenarios.cmi_charts import (
    Recording,
    cost_plane,
    cost_points,
    published_report,
    robustness_plane,
    robustness_points,
    utilities_by_role,
    utility_groups,
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


def test_a_plane_has_intervals_both_ways_and_leaves_out_what_has_no_figure() -> None:
    points = robustness_points({"a": (HALF, HALF), "b": (ALONE, HALF), "c": (NONE, HALF)})

    assert points == [
        Point("a", 0.5, 0.5, (0.4, 0.6), (0.4, 0.6)),
        Point("b", 0.5, 0.5, (0.4, 0.6), None),
    ]


def test_the_interval_of_poison_is_turned_round_with_it() -> None:
    [point] = robustness_points({"a": (ALONE, Interval(0.25, 0.0, 0.5))})

    assert (point.x, point.x_bounds) == (0.75, (0.5, 1.0))


def test_utilities_stand_by_role() -> None:
    assert utility_groups(ROWS) == {"useful": [0.4], "irrelevant": [], "harmful": [-0.1]}


def test_cost_stands_against_f1_with_its_interval() -> None:
    points = cost_points({"a": (29.0, HALF), "b": (1.0, NONE)})

    assert points == [Point("a", 29.0, 0.5, None, (0.4, 0.6))]


def test_every_picture_is_drawn() -> None:
    pictures = [
        robustness_plane({"ann": (HALF, HALF)}),
        cost_plane({"ann": (29.0, HALF)}, "seconds per example"),
        utilities_by_role(ROWS),
    ]

    assert all(picture.startswith("<svg") for picture in pictures)
    assert "ann" in pictures[0]
    assert "seconds per example" in pictures[1]
    assert "harmful" in pictures[2]


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
