"""An agent of the OpenAI Agents SDK on guarded memory: pip install 'assay[openai-agents]'.

With an endpoint: python examples/openai_agents_sdk.py URL MODEL (the key from OPENAI_API_KEY);
start one with ``assay serve`` or any other. Without arguments it only says so.
"""

import sys

import anyio
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai import AsyncOpenAI

import assay
from assay.runtime.adapters.openai_agents import GuardedModel


async def main(url: str, name: str) -> None:
    """Tell, and ask in another run; only the memory connects them."""
    inner = OpenAIChatCompletionsModel(name, AsyncOpenAI(base_url=url))
    async with assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime:
        agent = Agent(name="desk", model=GuardedModel(inner, runtime, user="ann"))
        for text in ("My cat is called Miso.", "What is my cat called?"):
            config = RunConfig(tracing_disabled=True)
            print((await Runner.run(agent, text, run_config=config)).final_output)


if len(sys.argv) > 2:  # noqa: PLR2004
    anyio.run(main, sys.argv[1], sys.argv[2])
else:
    print("usage: openai_agents_sdk.py URL MODEL")
