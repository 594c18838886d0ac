"""The OpenAI Agents SDK: a model that guards memory around another one.

Needs ``pip install assay[openai-agents]``.
"""

from collections.abc import AsyncIterator
from typing import Any, cast

from agents import Model, ModelResponse
from agents import Usage as AgentsUsage
from agents.items import TResponseInputItem, TResponseStreamEvent
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from assay.guards.protocols import Completion, Usage
from assay.runtime.adapters.hosting import Hosted, Notes
from assay.runtime.facade import Runtime


class GuardedModel(Model):
    """Answers as the model inside does, with the memories that earned their place.

    ::

        model = GuardedModel(inner, runtime, user="ann")
        await Runner.run(Agent(name="desk", model=model), "What is my cat called?")

    Streaming (``Runner.run_streamed``) is refused: the guard's turn ends with a whole answer.

    Args:
        model: The agent's own model.
        runtime: Retrieves, guards and remembers; its own model makes the experiments.
        user: Whose memory.
        session_id: Which conversation; ``None`` begins one.
    """

    def __init__(
        self, model: Model, runtime: Runtime, *, user: str, session_id: str | None = None
    ) -> None:
        self._model = model
        self._hosted = Hosted[ModelResponse](
            runtime.session(user=user, session_id=session_id),
            completion=_completion,
            answer=_response,
        )

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002  # the SDK's name
        *args: Any,  # noqa: ANN401  # handed on as they are
        **kwargs: Any,  # noqa: ANN401  # likewise
    ) -> ModelResponse:
        """Ask the model inside with the notes that were admitted."""
        items = _items(input)
        place = _last_user_item(items)
        if place is None:
            return await self._model.get_response(system_instructions, input, *args, **kwargs)

        async def model(notes: Notes) -> ModelResponse:
            shown = list(items)
            shown[place] = {"role": "user", "content": notes.message}
            system = f"{system_instructions or ''}\n{notes.rule}".strip()
            return await self._model.get_response(system, shown, *args, **kwargs)

        return await self._hosted.call(
            _text(items[place]), fresh=place == len(items) - 1, model=model
        )

    def stream_response(
        self,
        *args: Any,  # noqa: ANN401  # the SDK's signature
        **kwargs: Any,  # noqa: ANN401  # likewise
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Refused.

        Raises:
            NotImplementedError: Always, with what to do instead.
        """
        raise NotImplementedError(
            "GuardedModel does not stream; use Runner.run, or `assay serve` as an endpoint"
        )


def _items(given: str | list[TResponseInputItem]) -> list[TResponseInputItem]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _last_user_item(items: list[TResponseInputItem]) -> int | None:
    places = [i for i, item in enumerate(items) if item.get("role") == "user" and _text(item)]
    return places[-1] if places else None


def _text(item: TResponseInputItem) -> str:
    content: object = item.get("content", "")
    if isinstance(content, str):
        return content
    parts = cast("list[dict[str, object]]", content if isinstance(content, list) else [])
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("text"))


def _completion(response: ModelResponse) -> Completion:
    texts = [
        part.text
        for item in response.output
        if isinstance(item, ResponseOutputMessage)
        for part in item.content
        if isinstance(part, ResponseOutputText)
    ]
    used = response.usage
    return Completion(
        text="\n".join(texts),
        usage=Usage(prompt_tokens=used.input_tokens, completion_tokens=used.output_tokens),
    )


def _response(text: str) -> ModelResponse:
    message = ResponseOutputMessage(
        id="assay",
        role="assistant",
        status="completed",
        type="message",
        content=[ResponseOutputText(text=text, type="output_text", annotations=[])],
    )
    return ModelResponse(output=[message], usage=AgentsUsage(), response_id=None)
