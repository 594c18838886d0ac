"""Tables of figures: whole at every width, as the helper prints them and as the commands do."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from assay.cli import main
from assay.cli.tables import FigureTable

NAMES = ("full_history", "meclear_antithetic", "meclear_l32", "vector, as published")
FIGURES = ("0.125", "1,234.5", "12.000")
INTERVAL = "0.00..0.38"
TABLE = FigureTable(
    title="What was selected",
    head=["method", "precision", "bad rejected", "live"],
    rows=[[name, *(f"{figure}\n{INTERVAL}" for figure in FIGURES)] for name in NAMES],
    dim={NAMES[-1]},
)
SCRIPTED = ("--model", "scripted", "--embedder", "hashing")
WIDTHS = (60, 80, 120, 200)


def shown(width: int, table: FigureTable = TABLE) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def cells(text: str) -> list[str]:
    """What stands between two rules, of headings and of rows."""
    rows = [line for line in text.splitlines() if line.startswith(("│", "┃"))]
    return [cell.strip() for line in rows for cell in re.split("[│┃]", line)[1:-1]]


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines() if line.startswith(("│", "┃", "┏", "└")))


def run(monkeypatch: pytest.MonkeyPatch, width: int, home: Path, *arguments: object) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    assert exit_.value.code == 0


@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_every_name_and_every_figure_is_whole(width: int) -> None:
    found = cells(shown(width))

    assert set(NAMES) <= set(found)
    assert [found.count(figure) for figure in FIGURES] == [len(NAMES)] * len(FIGURES)
    assert found.count(INTERVAL) == len(NAMES) * len(FIGURES)


@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_no_table_is_wider_than_the_console(width: int) -> None:
    assert widest(shown(width)) <= width


def test_a_table_that_fits_is_one() -> None:
    text = shown(80)

    assert text.splitlines()[0].rstrip() == "What was selected"
    assert text.count("┏") == 1


def test_the_parts_of_a_wide_table_are_counted_and_each_has_the_names() -> None:
    text = shown(50)

    assert "What was selected (1 of 2)" in text
    assert "What was selected (2 of 2)" in text
    assert cells(text).count("meclear_l32") == 2


def test_every_column_that_tells_the_rows_apart_is_in_every_part() -> None:
    rows = [["unknown", measure, "+0.000", "0.250"] for measure in ("savings", "behaviour")]
    table = FigureTable(
        title="T", head=["asked as", "measure", "difference", "p"], rows=rows, names=2
    )

    found = cells(shown(40, table))

    assert [found.count(text) for text in ("savings", "behaviour", "unknown")] == [2, 2, 4]


def test_a_heading_breaks_between_words_before_the_table_is_split() -> None:
    table = FigureTable(title="T", head=["name", "bad rejected"], rows=[["a", "0.5"]])

    assert {"bad", "rejected"} <= set(cells(shown(20, table)))
    assert "bad rejected" in cells(shown(23, table))


def test_what_cannot_fit_goes_on_in_the_next_line() -> None:
    table = FigureTable(title="T", head=["method", "F1"], rows=[["a" * 30, "0.125"]])

    text = shown(24, table)

    assert "".join(cells(text)).count("a") == 30
    assert "0.125" in cells(text)
    assert widest(text) <= 24


def test_text_in_brackets_is_not_taken_for_markup() -> None:
    table = FigureTable(title="T", head=["m", "F1"], rows=[["[bold]x", "[0.1, 0.2]"]])

    assert {"[bold]x", "[0.1, 0.2]"} <= set(cells(shown(60, table)))


@pytest.mark.parametrize("width", [60, 80])
def test_games_are_shown_with_whole_names_and_figures(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    width: int,
) -> None:
    names = ("meclear", "meclear_l4", "meclear_l32", "meclear_antithetic")
    methods = [word for name in names for word in ("--method", name)]

    run(monkeypatch, width, tmp_path, "replay", "games", "--size", 4, "--workers", 1, *methods)

    text = capsys.readouterr().out
    found = cells(text)
    parts = text.count("┏")
    assert [found.count(name) for name in names] == [parts] * len(names)
    assert len([cell for cell in found if re.fullmatch(r"\d+\.\d{3}", cell)]) == len(names) * 9
    assert "…" not in text
    assert widest(text) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_families_are_shown_with_whole_names_and_figures(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    width: int,
) -> None:
    methods = ("--method", "no_memory", "--method", "full_history", "--method", "panel")

    run(monkeypatch, width, tmp_path, "replay", "families", "--size", 8, *SCRIPTED, *methods)

    text = capsys.readouterr().out
    found = cells(text)
    assert {"context_specific_preference", "full_history", "precision", "of poisoned"} <= set(found)
    # seven metrics with an interval each; eight families with a pair of figures each
    assert len([cell for cell in found if re.fullmatch(r"\d\.\d\d\.\.\d\.\d\d", cell)]) == 3 * 7
    assert len([cell for cell in found if re.fullmatch(r"\d\.\d\d, \d\.\d\d", cell)]) == 3 * 8
    assert "…" not in text
    assert widest(text) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_causal_locomo_is_shown_with_whole_names_and_figures(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shared_data: Path,
    width: int,
) -> None:
    data = ("--data", shared_data / "causal_locomo.jsonl", "--limit", 3)
    methods = ("--method", "no_memory", "--method", "full_history", "--method", "panel")

    run(monkeypatch, width, tmp_path, "replay", "causal-locomo", *data, *SCRIPTED, *methods)

    text = capsys.readouterr().out
    found = cells(text)
    assert {"vector, as published", "full_history", "bad rejected", "evaluations"} <= set(found)
    assert len([cell for cell in found if re.fullmatch(r"\d\.\d{3}", cell)]) == 3 * 7
    assert len([cell for cell in found if re.fullmatch(r"\d\.\d\d\.\.\d\.\d\d", cell)]) == 3 * 7
    assert "…" not in text
    assert widest(text) <= width
