"""A pydantic-ai agent whose memory has to earn its place: pip install 'assay[pydantic-ai]'."""

import anyio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import assay
from assay.runtime.adapters.pydantic_ai import GuardedModel


def reader(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for your own model: says whether the note about the cat was shown."""
    shown = "called Miso." in str(messages[-1])
    return ModelResponse(parts=[TextPart("Miso." if shown else "I do not know.")])


async def main() -> None:
    """Tell, and ask in another run; only the memory connects them."""
    async with assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime:
        agent = Agent(GuardedModel(FunctionModel(reader), runtime, user="ann"))
        for text in ("My cat is called Miso.", "What is my cat called?"):
            print((await agent.run(text)).output)


anyio.run(main)
