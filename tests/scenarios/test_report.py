import math
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from assay.errors import ScenarioError
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.charts import Axis, Estimate, Point, axis_for, dots, plane, strips
from assay.scenarios.folder import RunFolder
from assay.scenarios.report import Card, Cell, Column, Figure, Report, Section, Table, render, write
from assay.scenarios.report import number as figure_cell
from assay.scenarios.results import comparisons, method_results
from assay.scenarios.run_report import run_report
from assay.scenarios.runner import run
from assay.scenarios.vega import SIDE, WIDTH

from .support_causal import config, equipment, examples, run_record, write_rows
from .support_charts import marks, texts

HOSTILE = '<img src=x onerror="alert(1)">&{{ 7 * 7 }}</script>'


def page(text: str) -> str:
    table = Table([Column(text, text)], [[Cell(text, note=text)]])
    chart = dots([Estimate(text, 0.5, 0.4, 0.6)], Axis(text, 0.0, 1.0))
    card = Card(text, [Cell(text)], table, [(text, text)])
    section = Section(text, text, [table], [Figure(chart, text)], [card])
    return render(Report(text, text, [(text, text)], [(text, text, text)], [section]))


def test_text_from_data_or_a_model_is_escaped_wherever_it_stands() -> None:
    html = page(HOSTILE)

    assert "<img" not in html
    assert html.count("</script>") == 1
    assert "{{ 7 * 7 }}" in html
    assert html.count("&lt;img") >= 15


def test_the_page_names_no_outside_address_and_forbids_any() -> None:
    html = page("plain")

    assert re.findall(r"(?:https?:)?//[\w.]+|@import|url\(|src=|<link", html) == []
    assert "default-src 'none'" in html


def test_both_themes_are_there_and_every_colour_is_defined_in_each() -> None:
    html = page("plain")

    used = set(re.findall(r"var\((--\w+)\)", html))
    themes = re.findall(r"\{ color-scheme: [^}]*\}|data-theme=\"light\"\]\) \{[^}]*\}", html)

    with_colours = [theme for theme in themes if "--page" in theme]
    assert len(with_colours) == 3
    assert all(f"{name}:" in theme for theme in with_colours for name in used)


def test_figures_sort_by_their_value_and_missing_ones_last() -> None:
    assert figure_cell(1234.5678, digits=1) == Cell("1,234.6", 1234.5678, "", "number")
    missing = figure_cell(None)
    assert missing.text == "\N{EN DASH}"
    assert missing.sort is not None
    assert missing.sort > 1e300


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(ScenarioError, match="cannot write the report"):
        write(Report("t", "s", [], [], []), tmp_path / "file" / "report.html")


@pytest.mark.parametrize(
    ("values", "low", "expected"),
    [
        ([0.0, 12.0, 17.0], 0.0, (0.0, 20.0)),
        ([-0.93, 0.07], None, (-1.0, 0.2)),
        ([], None, (0.0, 1.0)),
        ([3.0, 3.0], 0.0, (0.0, 3.0)),
    ],
)
def test_axes_have_round_ends_around_all_values(
    values: list[float], low: float | None, expected: tuple[float, float]
) -> None:
    axis = axis_for("x", values, low=low)

    assert (axis.low, axis.high) == pytest.approx(expected)


def test_a_dot_stands_where_its_value_says_and_its_interval_around_it() -> None:
    svg = dots([Estimate("half", 0.5, 0.25, 0.75)], Axis("share", 0.0, 1.0))

    [dot], [whisker] = marks(svg, "dot"), marks(svg, "whisker")
    assert dot.x == pytest.approx((WIDTH - 2 * SIDE) / 2)
    assert whisker.x == pytest.approx(dot.x / 2)
    assert whisker.across == pytest.approx(dot.x)
    assert whisker.y == dot.y
    assert dot.note == "half: 0.500 [0.250, 0.750]"


def test_ticks_are_labelled_with_what_they_are() -> None:
    svg = dots([], Axis("effect", -0.5, 1.0))

    shown = ["\N{MINUS SIGN}0.5", "\N{MINUS SIGN}0.25", "0", "0.25", "0.5", "0.75", "1", "effect"]
    assert texts(svg) == shown


def test_a_value_beyond_the_axis_stands_at_its_end() -> None:
    svg = dots([Estimate("all", math.inf), Estimate("none", -3.0)], Axis("share", 0.0, 1.0))

    assert [dot.x for dot in marks(svg, "dot")] == [WIDTH - 2 * SIDE, 0]


def test_a_missing_figure_has_no_dot() -> None:
    svg = dots([Estimate("none", None), Estimate("nan", math.nan)], Axis("share", 0.0, 1.0))

    assert marks(svg, "dot") == []
    assert [figure.text for figure in marks(svg, "figure")] == ["\N{EN DASH}"] * 2


def test_rows_of_one_name_are_all_drawn_and_long_names_wrapped() -> None:
    name = "a name that takes much more room than one line of a narrow chart has"

    svg = dots([Estimate(name, 0.1), Estimate(name, 0.2)], Axis("share", 0.0, 1.0))

    labels = marks(svg, "label")
    assert " ".join(label.text for label in labels) == f"{name} {name}"
    assert len({label.y for label in labels}) == len(labels) == 4
    assert [dot.note for dot in marks(svg, "dot")] == [f"{name}: 0.100", f"{name}: 0.200"]


def test_higher_values_stand_higher_in_a_plane_and_labels_do_not_overlap() -> None:
    points = [Point("low", 1, 0.0), Point("high", 1, 0.9), Point("high too", 1, 0.9)]
    points += [Point("low too", 1.1, 0.0), Point("at the right end", 2, 0.9)]

    svg = plane(points, Axis("cost", 0, 2), Axis("F1", 0, 1))

    notes = {dot.note.partition(":")[0]: dot for dot in marks(svg, "dot")}
    assert notes["high"].y < notes["low"].y
    heights = sorted(label.y for label in marks(svg, "label_left"))
    assert len(heights) == 4
    assert all(below - above >= 15.9 for above, below in pairwise(heights))
    assert 0 <= heights[0] <= heights[-1] <= notes["low"].y + 5
    assert [label.text for label in marks(svg, "label_right")] == ["at the right end"]
    assert len(marks(svg, "leader")) >= 1


def test_an_interval_does_not_strike_through_a_label() -> None:
    svg = plane([Point("a", 1, 0.5, (0.5, 2))], Axis("cost", 0, 2), Axis("F1", 0, 1))

    [label], [whisker], [leader] = (marks(svg, n) for n in ("label_left", "whisker", "leader"))
    assert abs(label.y - whisker.y) >= 15.9
    assert whisker.note == "a: 1 [0.500, 2.000], 0.500"
    assert leader.y + leader.down == pytest.approx(label.y, abs=5)  # a text's foot, not its middle


def test_strips_show_every_value_and_the_mean() -> None:
    svg = strips({"useful": [0.1, 0.1, 0.4], "harmful": []}, Axis("effect", 0, 1))

    values = marks(svg, "dot")
    assert len({(value.x, value.y) for value in values}) == 3
    [mean] = marks(svg, "mean")
    assert mean.x == pytest.approx(sum(value.x for value in values) / 3, abs=0.02)
    assert {"useful (3)", "harmful (0)"} <= set(texts(svg))


def test_a_chart_tells_a_screen_reader_its_figures() -> None:
    svg = strips({"useful": [0.1, 0.3], "harmful": []}, Axis("effect", 0, 1))

    drawing = fromstring(svg)  # noqa: S314
    assert drawing.get("role") == "img"
    assert drawing.findtext("title") == "effect, by group"
    assert drawing.findtext("desc") == "useful: 2 values, mean +0.200; harmful: 0 values"


def test_equal_charts_are_equal_text_without_an_id_or_a_fixed_size() -> None:
    first, second = (plane([Point("a", 1, 1)], Axis("x", 0, 2), Axis("y", 0, 2)) for _ in range(2))

    assert first == second
    assert re.findall(r"\bid=|<svg[^>]* (?:width|height)=|xmlns", first) == []
    assert f'viewBox="0 0 {WIDTH} ' in first


def test_a_chart_takes_its_colours_from_the_page_alone() -> None:
    groups = {"useful": [0.1], "harmful": [0.1], "stale": [0.1], "planted": [0.1], "other": [0.1]}
    svgs = [
        strips(groups, Axis("effect", 0, 1)),
        plane([Point("a", 1, 1, (0, 1), (0, 1))], Axis("x", 0, 2), Axis("y", 0, 2)),
    ]

    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', "".join(svgs)))
    names = ("accent", "bad", "good", "grid", "ink", "soft", "warn")
    assert colours == {"none"} | {f"var(--{name})" for name in names}


def test_a_character_that_svg_cannot_hold_is_replaced() -> None:
    svg = dots([Estimate("a\x01b", 0.5)], Axis("share\x00", 0.0, 1.0))

    assert {"a\N{REPLACEMENT CHARACTER}b", "share\N{REPLACEMENT CHARACTER}"} <= set(texts(svg))


def test_altair_is_loaded_only_when_something_is_drawn() -> None:
    code = (
        "import assay.scenarios.run_report, sys; print({'altair', 'vl_convert'} & set(sys.modules))"
    )

    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603

    assert loaded.stdout.strip() == "set()"


async def test_the_page_of_a_run_tells_command_seed_model_intervals_and_every_decision(
    tmp_path: Path,
) -> None:
    data = write_rows(tmp_path / "data.jsonl", examples())
    setup, folder = config(data), RunFolder(tmp_path / "out")
    scenarios = load_blind(data, seed=7)
    record = run_record(setup)
    await folder.begin(record)
    rows = await run(folder, [s.example for s in scenarios], setup, equipment())

    html = render(run_report(record, scenarios, method_results(scenarios, rows, setup)))

    for fact in (record.command, "scripted", "hashing-256@1", setup.data_sha256, "95 %"):
        assert fact in html
    for scenario in scenarios:
        assert all(kept.text in html for kept in scenario.example.records)
    assert "Against cmi" in html
    assert re.search(r"\[0\.\d{3}, \d\.\d{3}\]", html)


async def test_methods_are_compared_in_pairs(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", examples())
    setup, folder = config(data, "nearest", "cmi"), RunFolder(tmp_path / "out")
    scenarios = load_blind(data, seed=7)
    await folder.begin(run_record(setup))
    rows = await run(folder, [s.example for s in scenarios], setup, equipment())
    results = method_results(scenarios, rows, setup)

    [found] = comparisons(results, [s.key for s in scenarios], reference="cmi", seed=7)

    mean = sum(
        a.useful_f1 - b.useful_f1
        for a, b in zip(results["cmi"].scores, results["nearest"].scores, strict=True)
    ) / len(scenarios)
    assert found.method == "nearest"
    assert found.difference.mean == pytest.approx(mean)
    assert 0 < found.p_f1 <= 1
