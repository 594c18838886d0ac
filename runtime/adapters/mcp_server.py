"""An MCP server on one user's guarded memory: remember, recall, why, correct, forget.

Needs ``pip install assay[mcp]``; ``assay mcp`` serves it on standard input and output.
"""

from mcp.server.mcpserver import MCPServer

from assay.guards.protocols import Decision
from assay.runtime.facade import Runtime
from assay.stores.records import Origin

WRITTEN = Origin(writer="assistant", channel="mcp")
"""What a client writes is the assistant's word: it may have read it anywhere."""


def make_server(runtime: Runtime, *, user: str) -> MCPServer:
    """The tools, on one user's memory.

    Args:
        runtime: Holds the bank and the guard.
        user: Whose memory; a client of this server reaches nobody else's.
    """
    server: MCPServer = MCPServer("assay", instructions=_INSTRUCTIONS, log_level="WARNING")
    memory = _Memory(runtime, user)
    for tool in (memory.remember, memory.recall, memory.why, memory.correct, memory.forget):
        server.tool()(tool)
    return server


_INSTRUCTIONS = (
    "Long-term memory in which a record has to earn its place. Recall before answering about the "
    "user; what recall withholds was found irrelevant, stale, contradicted or planted."
)


class _Memory:
    """What the tools do; their docstrings are what a client's model reads."""

    def __init__(self, runtime: Runtime, user: str) -> None:
        self._runtime = runtime
        self._user = user
        self._last: Decision | None = None

    async def remember(self, text: str) -> str:
        """Keep one statement for later sessions. Give it as one plain sentence."""
        return await self._runtime.remember(self._user, text, origin=WRITTEN)

    async def recall(self, question: str) -> str:
        """What memory can contribute to answering a question, checked for this question."""
        recalled = await self._runtime.recall(self._user, question)
        self._last = recalled.decision
        lines = [f"{record.id}: {record.text}" for record in recalled.records]
        held = len(recalled.decision.withheld)
        lines.append(f"({held} withheld; `why` tells the reasons)" if held else "(none withheld)")
        return "\n".join(lines)

    async def why(self) -> str:
        """Why the last recall admitted and withheld what it did."""
        if self._last is None:
            return "nothing was recalled yet"
        return "\n".join(
            f"{j.record_id} {'admitted' if j.admitted else 'withheld'}: {j.reason}"
            for j in self._last.judgements
        )

    async def correct(self, record_id: str, text: str) -> str:
        """Replace a record that is wrong; the old one stays as history."""
        return (await self._runtime.correct(self._user, record_id, text)).id

    async def forget(self, record_id: str) -> str:
        """Erase a record for good."""
        receipt = await self._runtime.forget(self._user, record_id)
        return f"erased {len(receipt.record_ids)}"
