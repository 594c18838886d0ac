"""What an export says of the records it leaves out."""

import typer


def say_forbidden(count: int) -> None:
    """Say on stderr how many records were left out because their consent forbids an export."""
    if count:
        records = "1 record was" if count == 1 else f"{count:,} records were"
        typer.echo(f"{records} left out: consent forbids an export", err=True)
