"""``assay scenario run``: scenarios without pytest."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from assay.cli.scenario.outcomes import Outcome


@contextmanager
def _shown_when_interrupted(
    outcomes: "list[Outcome]", show: "Callable[[list[Outcome]], None]"
) -> "Generator[None]":
    """What is done is shown, also if the rest was not waited for."""
    try:
        yield
    except KeyboardInterrupt:
        show(outcomes)
        raise


def run(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Scenario files, or folders of them.")
    ],
    *,
    record: Annotated[
        bool, typer.Option("--record", help="Ask the models named and record their answers.")
    ] = False,
    budget: Annotated[
        int | None, typer.Option(min=0, help="Most evaluations a scenario may cost.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play scenarios and check them: exit code 0 if all went as expected, 1 if not."""
    from rich.console import Console  # noqa: PLC0415  # --help stays fast
    from rich.progress import Progress  # noqa: PLC0415

    from assay.cli.interrupts import interruptible  # noqa: PLC0415
    from assay.cli.scenario.outcomes import Outcome, print_json, print_table  # noqa: PLC0415
    from assay.scenarios.cases.files import find, read  # noqa: PLC0415
    from assay.scenarios.cases.trying import Unmet, tried  # noqa: PLC0415

    files = [file for path in find(paths) for file in read(path)]
    outcomes: list[Outcome] = []
    show = print_json if as_json else print_table
    with (
        interruptible(),
        _shown_when_interrupted(outcomes, show),
        Progress(console=Console(stderr=True), transient=True) as bar,
    ):
        for file in bar.track(files, description="scenarios"):
            try:
                played = tried(file, record=record, budget=budget)
            except Unmet as unmet:
                outcomes.append(Outcome(file, unmet.played, unmet.found, str(unmet)))
            else:
                outcomes.append(Outcome(file, played))
    show(outcomes)
    if any(outcome.found for outcome in outcomes):
        raise typer.Exit(1)
