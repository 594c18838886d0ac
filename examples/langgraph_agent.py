"""A LangGraph agent whose memory has to earn its place: pip install 'assay[langgraph]'."""

import anyio
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel

import assay
from assay.runtime.adapters.langgraph import AssayMiddleware


async def main() -> None:
    """Tell, ask, and see why: put your own chat model in the place of the fake one."""
    model = FakeListChatModel(responses=["Noted.", "Your cat is called Miso."])
    async with assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime:
        agent = create_agent(model, [], middleware=[AssayMiddleware(runtime, user="ann")])
        for text in ("My cat is called Miso.", "What is my cat called?"):
            state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})
            print(state["messages"][-1].text)
        for judgement in (await runtime.decisions("ann"))[-1].decision.judgements:
            print("admitted" if judgement.admitted else "withheld", "because", judgement.reason)


anyio.run(main)
