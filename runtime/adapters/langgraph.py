"""LangGraph and LangChain agents: a middleware that guards memory, and a store on a bank.

Needs ``pip install assay[langgraph]``.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from assay.guards.protocols import Completion, Usage
from assay.runtime.adapters.hosting import Hosted, Notes
from assay.runtime.facade import Runtime

_Request: TypeAlias = ModelRequest[Any]
_Response: TypeAlias = ModelResponse[Any]
CONVERSATIONS = 1_024
"""Conversations whose notes are kept between calls of the model; the oldest goes first."""

Named: TypeAlias = str | Callable[[_Request], str]
"""A name, or how to read it from a request, such as from ``request.runtime.context``."""


class AssayMiddleware(AgentMiddleware[Any, Any]):
    """Every message of the user becomes a guarded turn that the agent's own model answers.

    ::

        agent = create_agent(model, tools, middleware=[AssayMiddleware(runtime, user="ann")])
        await agent.ainvoke({"messages": [{"role": "user", "content": "..."}]})

    Only the asynchronous calls (``ainvoke``, ``astream``) work; the others say so.

    Args:
        runtime: Retrieves, guards and remembers; its own model makes the experiments.
        user: Whose memory.
        session: Which conversation; by default one per middleware.
    """

    def __init__(self, runtime: Runtime, *, user: Named, session: Named | None = None) -> None:
        super().__init__()
        self._runtime = runtime
        self._user = user
        self._session: Named = session or runtime.session(user="langgraph").id
        self._hosted: dict[tuple[str, str], Hosted[_Response]] = {}

    async def awrap_model_call(
        self, request: _Request, handler: Callable[[_Request], Awaitable[_Response]]
    ) -> _Response:
        """Ask the agent's model with the notes that were admitted."""
        place = _last_user_message(request.messages)
        if place is None:
            return await handler(request)
        said = str(request.messages[place].text)

        async def model(notes: Notes) -> _Response:
            return await handler(_with_notes(request, place, notes))

        return await self._of(request).call(
            said, fresh=place == len(request.messages) - 1, model=model
        )

    def _of(self, request: _Request) -> Hosted[_Response]:
        user, session = _name(self._user, request), _name(self._session, request)
        hosted = self._hosted.get((user, session))
        if hosted is None:
            hosted = Hosted[_Response](
                self._runtime.session(user=user, session_id=session),
                completion=_completion,
                answer=lambda text: ModelResponse(result=[AIMessage(content=text)]),
            )
            self._hosted[user, session] = hosted
            if len(self._hosted) > CONVERSATIONS:
                del self._hosted[next(iter(self._hosted))]
        return hosted


def _name(named: Named, request: _Request) -> str:
    return named if isinstance(named, str) else named(request)


def _last_user_message(messages: list[AnyMessage]) -> int | None:
    places = [i for i, message in enumerate(messages) if isinstance(message, HumanMessage)]
    return places[-1] if places else None


def _with_notes(request: _Request, place: int, notes: Notes) -> _Request:
    messages = list(request.messages)
    messages[place] = HumanMessage(content=notes.message, id=messages[place].id)
    system = f"{request.system_prompt or ''}\n{notes.rule}".strip()
    return request.override(messages=messages, system_message=SystemMessage(system))


def _completion(response: _Response) -> Completion:
    messages = [message for message in response.result if isinstance(message, AIMessage)]
    used = [message.usage_metadata for message in messages if message.usage_metadata]
    return Completion(
        text="\n".join(str(message.text) for message in messages),
        usage=Usage(
            prompt_tokens=sum(one["input_tokens"] for one in used),
            completion_tokens=sum(one["output_tokens"] for one in used),
        ),
    )
