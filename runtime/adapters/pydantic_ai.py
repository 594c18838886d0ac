"""pydantic-ai: a model that guards memory around another one.

Needs ``pip install assay[pydantic-ai]``.
"""

from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from assay.guards.protocols import Completion, Usage
from assay.runtime.adapters.hosting import Hosted, Notes
from assay.runtime.facade import Runtime


class GuardedModel(WrapperModel):
    """Answers as the model inside does, with the memories that earned their place.

    ::

        agent = Agent(GuardedModel(inner, runtime, user="ann"))
        await agent.run("What is my cat called?")

    Messages that hold more than text go to the model inside as they are.

    Args:
        model: The agent's own model.
        runtime: Retrieves, guards and remembers; its own model makes the experiments.
        user: Whose memory.
        session_id: Which conversation; ``None`` begins one.
    """

    def __init__(
        self, model: Model | str, runtime: Runtime, *, user: str, session_id: str | None = None
    ) -> None:
        super().__init__(model)
        self._hosted = Hosted[ModelResponse](
            runtime.session(user=user, session_id=session_id),
            completion=_completion,
            answer=lambda text: ModelResponse(parts=[TextPart(text)]),
        )

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model inside with the notes that were admitted."""
        found = _last_user_part(messages)
        if found is None:
            return await super().request(messages, model_settings, model_request_parameters)
        place, part = found

        async def model(notes: Notes) -> ModelResponse:
            shown = _with_notes(messages, place, part, notes)
            return await super(GuardedModel, self).request(
                shown, model_settings, model_request_parameters
            )

        return await self._hosted.call(
            str(part.content), fresh=place == len(messages) - 1, model=model
        )


def _last_user_part(messages: list[ModelMessage]) -> tuple[int, UserPromptPart] | None:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ModelRequest):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                    return place, part
    return None


def _with_notes(
    messages: list[ModelMessage], place: int, part: UserPromptPart, notes: Notes
) -> list[ModelMessage]:
    request = messages[place]
    assert isinstance(request, ModelRequest)  # noqa: S101  # it was found in one
    parts = [replace(p, content=notes.message) if p is part else p for p in request.parts]
    shown = list(messages)
    shown[place] = replace(request, parts=[SystemPromptPart(notes.rule), *parts])
    return shown


def _completion(response: ModelResponse) -> Completion:
    return Completion(
        text="\n".join(part.content for part in response.parts if isinstance(part, TextPart)),
        usage=Usage(
            prompt_tokens=response.usage.input_tokens,
            completion_tokens=response.usage.output_tokens,
        ),
    )
