"""``assay explain miss``: why a replay did not find a request."""

from pathlib import Path
from typing import Annotated

import typer


def miss(
    cassette: Annotated[
        Path, typer.Argument(help="The cassette, as given to --model cassette:FILE.")
    ],
    request: Annotated[
        Path, typer.Argument(help="A JSON file with the request: {model, messages, parameters}.")
    ],
) -> None:
    """Show which part of a request differs from the nearest one in a cassette."""
    from assay.runtime.models.cassette import explain_miss, read_cassette  # noqa: PLC0415
    from assay.runtime.models.request_files import read_question  # noqa: PLC0415

    question = read_question(request)
    print(explain_miss(read_cassette(cassette), question.request, question.answer))
