"""What ``assay chat`` does with a line: say it, or carry a slash command out."""

import difflib
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from assay.cli.decisions import (
    decision_lines,
    judgement_lines,
    one_line,
    plain,
    texts_of,
)
from assay.errors import AssayError, ConfigError, TurnFailed
from assay.runtime.facade import Runtime
from assay.runtime.reply import PastDecision, Reply
from assay.runtime.session import Session
from assay.stores.records import RecordId

_T = TypeVar("_T")

HELP = """\
  /why               why the last reply stood on what it did
  /memories          what is remembered and holds now
  /withheld          what was kept out of the last prompt
  /correct ID TEXT   replace a memory; the old one stays as history
  /forget ID         erase a memory and the past turns that hold its words
  /help              this
  /quit              leave (so does the end of input)
Anything else is said to the model. An ID may be shortened to 4 characters or more that are unique."""

_SHORTEST_ID = 4
_IDS_SHOWN = 10


class Conversation:
    """One user talking.

    Args:
        runtime: Open.
        session: The conversation.
        streaming: Whether pieces of a reply are shown as they come.
    """

    def __init__(self, runtime: Runtime, session: Session, *, streaming: bool) -> None:
        self._runtime = runtime
        self._session = session
        self._streaming = streaming
        self.failures = 0
        """Lines that could not be acted on."""
        self._commands: Mapping[str, Callable[[str], Awaitable[None]]] = {
            "/why": self._why,
            "/memories": self._memories,
            "/withheld": self._withheld,
            "/correct": self._correct,
            "/forget": self._forget,
            "/help": self._help,
        }

    async def begin(self) -> None:
        """Finish what a crash interrupted, and show its reply."""
        reply = await self._attempt(self._session.resume(sink=self._sink))
        if reply is not None:
            print("(finished the turn that was interrupted)")
            self._show(reply)

    async def take(self, line: str) -> bool:
        """Act on a line; False when it ends the conversation."""
        text = line.strip()
        if text in {"/quit", "/exit"}:
            return False
        if text.startswith("/"):
            await self._attempt(self._command(text))
        elif text:
            reply = await self._attempt(self._session.send(line, sink=self._sink))
            if reply is not None:
                self._show(reply)
        sys.stdout.flush()  # whoever pipes lines in waits for what comes out
        return True

    async def _attempt(self, doing: Awaitable[_T]) -> _T | None:
        """What goes wrong is one line; the conversation goes on."""
        try:
            return await doing
        except (AssayError, ValueError) as error:
            self.failures += 1
            kind = f"{error.kind}: " if isinstance(error, TurnFailed) else ""
            print(f"assay: {kind}{one_line(str(error), limit=2000)}", file=sys.stderr, flush=True)
            return None

    def _sink(self, piece: str) -> None:
        if self._streaming:
            print(plain(piece), end="", flush=True)

    def _show(self, reply: Reply) -> None:
        print("" if self._streaming else plain(reply.text))
        notes = [f"tool call {c.name}({one_line(c.arguments)}) not made" for c in reply.tool_calls]
        notes += ["cut by prompt.answer_tokens"] if reply.truncated else []
        decision = reply.decision
        notes += [f"guard: {decision.failure}; {decision.fallback}"] if decision.fallback else []
        unverified = decision.certificate.startswith("unverified")
        notes += [f"guard: {decision.certificate}"] if unverified else []
        withheld = len(decision.withheld)
        notes += [f"{withheld} withheld, see /withheld"] if withheld else []
        if notes:
            print(f"  ({'; '.join(map(one_line, notes))})", flush=True)

    async def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        command = self._commands.get(name)
        if command is None:
            close = difflib.get_close_matches(name, [*self._commands, "/quit"], n=2, cutoff=0.5)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            print(f"unknown command {one_line(name)!r}{hint}\n{HELP}")
            return
        await command(rest.strip())

    async def _help(self, _rest: str) -> None:
        print(HELP)

    async def _why(self, _rest: str) -> None:
        past = await self._last()
        if past is not None:
            print("\n".join(decision_lines(past, await self._texts(past))))

    async def _withheld(self, _rest: str) -> None:
        past = await self._last()
        if past is None:
            return
        lines = judgement_lines(past.decision.withheld, await self._texts(past))
        print("\n".join(lines) if lines else "nothing was withheld")

    async def _memories(self, _rest: str) -> None:
        records = await self._runtime.memories(self._session.user)
        for record in records:
            day = (record.claimed_at or record.ingested_at).date()
            source = f"{record.origin.writer} through {record.origin.channel}"
            print(f"  {record.id}  {day}  {one_line(record.text)}  [{one_line(source)}]")
        if not records:
            print("nothing is remembered yet")

    async def _correct(self, rest: str) -> None:
        given, _, text = rest.partition(" ")
        if not given or not text.strip():
            print("usage: /correct ID TEXT")
            return
        old = await self._full_id(given)
        new = await self._runtime.correct(self._session.user, old, text.strip())
        print(f"corrected: {new.id} replaces {old}, which stays as history")

    async def _forget(self, rest: str) -> None:
        if not rest or " " in rest:
            print("usage: /forget ID")
            return
        receipt = await self._runtime.forget(self._session.user, await self._full_id(rest))
        erased = ", ".join(receipt.record_ids)
        print(f"forgotten: {erased} ({receipt.cache_rows} cached answers dropped)")

    async def _full_id(self, given: str) -> str:
        """The one id that begins like this; what is given itself where none does.

        Raises:
            ConfigError: If several do, or what is given is so short that one may by chance.
        """
        records = await self._runtime.memories(self._session.user)
        fitting = [record.id for record in records if record.id.startswith(given)]
        if not fitting or given in fitting:
            return given
        if len(fitting) > 1:
            more = len(fitting) - _IDS_SHOWN
            shown = ", ".join(fitting[:_IDS_SHOWN]) + (f" and {more} more" if more > 0 else "")
            raise ConfigError(f"{given!r} is not unique: {len(fitting)} memories match: {shown}")
        if len(given) < _SHORTEST_ID:
            raise ConfigError(
                f"{given!r} is too short to choose a memory by; give at least {_SHORTEST_ID} "
                f"characters of {fitting[0]}"
            )
        return fitting[0]

    async def _last(self) -> PastDecision | None:
        """The session's last decision; says so when there is none."""
        decisions = await self._runtime.decisions(self._session.user)
        own = [past for past in decisions if past.session == self._session.id]
        if not own:
            print("nothing was decided yet")
            return None
        return own[-1]

    async def _texts(self, past: PastDecision) -> dict[RecordId, str]:
        ids = [judgement.record_id for judgement in past.decision.judgements]
        return await texts_of(self._runtime.bank.store, self._session.user, ids)
