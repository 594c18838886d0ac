"""``assay scenario run``: scenarios without pytest."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import JsonOption


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
    with interruptible(), Progress(console=Console(stderr=True), transient=True) as bar:
        for file in bar.track(files, description="scenarios"):
            try:
                played = tried(file, record=record, budget=budget)
            except Unmet as unmet:
                outcomes.append(Outcome(file, unmet.played, unmet.found, str(unmet)))
            else:
                outcomes.append(Outcome(file, played))
    (print_json if as_json else print_table)(outcomes)
    if any(outcome.found for outcome in outcomes):
        raise typer.Exit(1)
