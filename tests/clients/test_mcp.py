"""The MCP server, asked by the SDK's own client."""

import sys
from pathlib import Path
from typing import Any

import pytest

import assay

pytest.importorskip("mcp", reason="needs the extra mcp: make clients")


def _text(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def test_remember_recall_why_correct_forget() -> None:
    from mcp import Client

    from assay.runtime.adapters.mcp_server import make_server

    async with (
        assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime,
        Client(make_server(runtime, user="ann")) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"remember", "recall", "why", "correct", "forget"}
        record = _text(await client.call_tool("remember", {"text": "Ann's cat is Miso."}))
        told = _text(await client.call_tool("recall", {"question": "What is Ann's cat?"}))
        assert record in told or "1 withheld" in told
        why = _text(await client.call_tool("why", {}))
        assert record in why
        new = _text(await client.call_tool("correct", {"record_id": record, "text": "It is Momo."}))
        assert [r.text for r in await runtime.memories("ann")] == ["It is Momo."]
        gone = _text(await client.call_tool("forget", {"record_id": new}))
        assert gone.startswith("erased")
        assert await runtime.memories("ann") == []


async def test_the_command_speaks_mcp(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = str(Path(sys.executable).with_name("assay"))
    arguments = ["mcp", "--bank", str(tmp_path / "bank"), "--model", "scripted"]
    server = StdioServerParameters(command=command, args=[*arguments, "--embedder", "hashing"])
    async with Client(stdio_client(server)) as client:
        await client.call_tool("remember", {"text": "Ann's cat is Miso."})
        told = _text(await client.call_tool("recall", {"question": "What is Ann's cat?"}))
    assert "Miso" in told or "withheld" in told
