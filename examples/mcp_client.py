"""Guarded memory over MCP: pip install 'assay[mcp]', then name ``assay mcp`` in a client.

This client is the SDK's own; a desktop client takes the same command in its configuration.
"""

import sys
import tempfile
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(bank: str) -> None:
    """Remember, recall, and ask why."""
    server = StdioServerParameters(
        command=str(Path(sys.executable).with_name("assay")),
        args=["mcp", "--bank", bank, "--model", "scripted", "--embedder", "hashing"],
    )
    async with Client(stdio_client(server)) as client:
        await client.call_tool("remember", {"text": "My cat is called Miso."})
        for tool, arguments in (("recall", {"question": "What is my cat called?"}), ("why", {})):
            result = await client.call_tool(tool, arguments)
            print("\n".join(getattr(part, "text", "") for part in result.content))


with tempfile.TemporaryDirectory() as folder:
    anyio.run(main, f"{folder}/bank")
