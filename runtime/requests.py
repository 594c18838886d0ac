"""What may be asked of a session, as one message: the same whether its turn runs here or elsewhere."""

from typing import TypeAlias

import msgspec

from assay.runtime.commands import ToolResult
from assay.runtime.conversation import Conversation


class Send(msgspec.Struct, frozen=True, kw_only=True, tag="send", omit_defaults=True):
    """Say something.

    Attributes:
        text: What the user says.
        tools: JSON text of the OpenAI ``tools`` array the model may call; empty: none.
        conversation: What came before, where the caller keeps it.
        request: Names the wish; the same one again begins no second turn. Empty: it has no name.
    """

    text: str
    tools: str = ""
    conversation: Conversation | None = None
    request: str = ""


class AnswerTools(
    msgspec.Struct, frozen=True, kw_only=True, tag="answer_tools", omit_defaults=True
):
    """Hand in the results of the calls the last reply asked for; attributes as those of ``Send``."""

    results: tuple[ToolResult, ...]
    conversation: Conversation | None = None
    request: str = ""


class Resume(msgspec.Struct, frozen=True, kw_only=True, tag="resume", omit_defaults=True):
    """Finish the turn a crash interrupted, if there is one."""


TurnRequest: TypeAlias = Send | AnswerTools | Resume
