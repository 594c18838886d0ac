"""Agents of other frameworks, run by those frameworks, on guarded memory.

They need the packages of the extras; ``make clients`` installs them and runs this.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import assay
from assay.runtime.facade import Runtime
from assay.stores.records import Origin

WEB = Origin(writer="external", channel="web")
QUESTION = "What is my cat called?"


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with assay.open_runtime(
        model=assay.ScriptedModel(), embedder="hashing", guard="panel"
    ) as opened:
        await opened.session(user="ann", session_id="before").send("My cat is called Miso.")
        await opened.remember("ann", "Ann's cat is called Attila.", origin=WEB)
        yield opened


async def _check(runtime: Runtime, shown: str) -> None:
    """The agent saw the user's own words and not the planted record, and the turn is kept."""
    assert "My cat is called Miso." in shown
    assert "Attila" not in shown
    decision = (await runtime.decisions("ann"))[-1]
    assert (decision.question, decision.reply) == (QUESTION, "It is Miso.")


async def test_langgraph_agent(runtime: Runtime) -> None:
    pytest.importorskip("langchain", reason="needs the extra langgraph: make clients")
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from assay.runtime.adapters.langgraph import AssayMiddleware

    seen: list[Any] = []

    class Watched(GenericFakeChatModel):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(messages)
            return super()._generate(messages, *args, **kwargs)

    model = Watched(messages=iter([AIMessage("It is Miso.")]))
    agent = create_agent(model, [], middleware=[AssayMiddleware(runtime, user="ann")])

    answer = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})

    assert answer["messages"][-1].text == "It is Miso."
    assert answer["messages"][0].text == QUESTION
    await _check(runtime, "\n".join(str(m.content) for m in seen[0]))


async def test_langgraph_agent_with_a_tool_keeps_its_notes(runtime: Runtime) -> None:
    pytest.importorskip("langchain", reason="needs the extra langgraph: make clients")
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    from assay.runtime.adapters.langgraph import AssayMiddleware

    seen: list[Any] = []

    class Calling(GenericFakeChatModel):
        def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(messages)
            return super()._generate(messages, *args, **kwargs)

    @tool
    def vet(name: str) -> str:
        """Looks a cat up at the vet's."""
        return f"{name} is well"

    calls = [{"name": "vet", "args": {"name": "Miso"}, "id": "c1"}]
    model = Calling(messages=iter([AIMessage("", tool_calls=calls), AIMessage("Miso is well.")]))
    agent = create_agent(model, [vet], middleware=[AssayMiddleware(runtime, user="ann")])

    answer = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})

    assert answer["messages"][-1].text == "Miso is well."
    assert all("called Miso." in "\n".join(str(m.content) for m in one) for one in seen)
    assert len([d for d in await runtime.decisions("ann") if d.question == QUESTION]) == 1


async def test_openai_agents_sdk(runtime: Runtime) -> None:
    pytest.importorskip("agents", reason="needs the extra openai-agents: make clients")
    from agents import Agent, Model, ModelResponse, RunConfig, Runner

    from assay.runtime.adapters.openai_agents import GuardedModel, _response

    seen: list[Any] = []

    class Inner(Model):
        async def get_response(self, *args: Any, **kw: Any) -> Any:
            seen.append(args)
            answer: ModelResponse = _response("It is Miso.")
            return answer

        def stream_response(self, *args: Any, **kw: Any) -> Any:
            raise NotImplementedError

    model = GuardedModel(Inner(), runtime, user="ann")
    agent = Agent(name="desk", instructions="Be brief.", model=model)

    answer = await Runner.run(agent, QUESTION, run_config=RunConfig(tracing_disabled=True))

    assert answer.final_output == "It is Miso."
    assert seen[0][0].startswith("Be brief.")
    await _check(runtime, str(seen[0][1]))


async def test_pydantic_ai(runtime: Runtime) -> None:
    pytest.importorskip("pydantic_ai", reason="needs the extra pydantic-ai: make clients")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from assay.runtime.adapters.pydantic_ai import GuardedModel

    seen: list[Any] = []

    async def answer(messages: Any, info: Any) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("It is Miso.")])

    agent = Agent(GuardedModel(FunctionModel(answer), runtime, user="ann"))

    result = await agent.run(QUESTION)

    assert result.output == "It is Miso."
    await _check(runtime, str(seen[0]))


async def test_what_the_inner_model_raises_comes_out_as_it_is(runtime: Runtime) -> None:
    pytest.importorskip("pydantic_ai", reason="needs the extra pydantic-ai: make clients")
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from assay.runtime.adapters.pydantic_ai import GuardedModel

    async def broken(messages: Any, info: Any) -> Any:
        raise ZeroDivisionError("the model is down")

    agent = Agent(GuardedModel(FunctionModel(broken), runtime, user="ann"))

    with pytest.raises(ZeroDivisionError, match="down"):
        await agent.run(QUESTION)
