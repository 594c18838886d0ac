"""Clients that nobody here wrote, unchanged, in front of the service.

``make clients`` installs them and runs this.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio.to_thread
import openai
import pytest
from tests.runtime.http.served import KEY, Served, served

from assay.guards.protocols import Completion, Request, ToolCall
from assay.runtime.models.reader import read
from assay.runtime.models.scripted import ScriptedModel

MISO = "My cat is called Miso."
ASK = "What is my cat called?"
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def _reads_or_calls(request: Request) -> str | Completion:
    last = request.messages[-1]
    if last.role == "tool":
        return f"The weather is {last.content}."
    if request.parameters.tools and "weather" in last.content:
        call = ToolCall(id="call_1", name="weather", arguments='{"city": "Oslo"}')
        return Completion(text="", finish_reason="tool_calls", tool_calls=(call,))
    return read(request)


def _model() -> ScriptedModel:
    return ScriptedModel(_reads_or_calls)


def _said(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def _told(one: Served, user: str) -> None:
    async with openai.AsyncOpenAI(base_url=one.base_url, api_key=KEY) as client:
        await client.chat.completions.create(model="scripted", user=user, messages=_said(MISO))


async def test_openai_async_and_streaming() -> None:
    async with (
        served(model=_model()) as one,
        openai.AsyncOpenAI(base_url=one.base_url, api_key=KEY) as client,
    ):
        await _told(one, "ann")
        whole = await client.chat.completions.create(
            model="scripted", user="ann", messages=_said(ASK)
        )
        stream = await client.chat.completions.create(
            model="scripted",
            user="ann",
            messages=_said(ASK),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        models = [model.id async for model in client.models.list()]

    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "Miso" in (whole.choices[0].message.content or "")
    assert "".join(pieces) == whole.choices[0].message.content
    assert chunks[-1].usage is not None
    assert (whole.model_extra or {})["assay"]["admitted"]
    assert models == ["scripted"]


async def test_openai_async_stream_helper_with_tools() -> None:
    async with (
        served(model=_model()) as one,
        openai.AsyncOpenAI(base_url=one.base_url, api_key=KEY) as client,
        client.chat.completions.stream(
            model="scripted",
            user="ann",
            messages=_said("How is the weather?"),
            tools=[TOOL],
        ) as stream,
    ):
        final = await stream.get_final_completion()

    [call] = final.choices[0].message.tool_calls or []
    assert call.function.name == "weather"
    assert final.choices[0].finish_reason == "tool_calls"


async def test_openai_sync_with_tools_and_errors() -> None:
    async with served(model=_model()) as one:
        called, answer, refused = await anyio.to_thread.run_sync(_sync, one.base_url)

    assert called.function.arguments == '{"city": "Oslo"}'
    assert answer == "The weather is rainy."
    assert refused.status_code == 404


def _sync(base_url: str) -> tuple[Any, str | None, openai.APIStatusError]:
    with openai.OpenAI(base_url=base_url, api_key=KEY) as client:
        messages = _said("How is the weather?")
        first = client.chat.completions.create(
            model="scripted", user="ann", messages=messages, tools=[TOOL]
        )
        message = first.choices[0].message
        [call] = message.tool_calls or []
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "rainy"}
        called: Any = message.to_dict()
        second = client.chat.completions.create(
            model="scripted",
            user="ann",
            messages=[*messages, called, result],
            tools=[TOOL],
        )
        with pytest.raises(openai.NotFoundError) as refused:
            client.chat.completions.create(model="other", messages=messages)
        return call, second.choices[0].message.content, refused.value


async def test_openai_is_refused_with_a_wrong_key() -> None:
    async with (
        served(model=_model()) as one,
        openai.AsyncOpenAI(base_url=one.base_url, api_key="wrong-key") as client,
    ):
        with pytest.raises(openai.AuthenticationError, match="no valid API key"):
            await client.models.list()


async def test_langchain_chat_openai() -> None:
    langchain_openai = pytest.importorskip("langchain_openai", reason="run `make clients`")
    async with served(model=_model()) as one:
        await _told(one, "ann")
        chat = langchain_openai.ChatOpenAI(
            model="scripted", base_url=one.base_url, api_key=KEY, model_kwargs={"user": "ann"}
        )
        whole = await chat.ainvoke(ASK)
        pieces = [piece.content async for piece in chat.astream(ASK)]
        called = await chat.bind_tools([TOOL]).ainvoke("How is the weather?")

    assert "Miso" in whole.content
    assert "".join(pieces) == whole.content
    assert len(pieces) > 2
    assert called.tool_calls[0]["args"] == {"city": "Oslo"}


async def test_openai_agents_sdk_runs_its_tool_loop() -> None:
    agents = pytest.importorskip("agents", reason="run `make clients`")
    asked: list[str] = []

    def weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return "rainy"

    async with (
        served(model=_model()) as one,
        openai.AsyncOpenAI(
            base_url=one.base_url, api_key=KEY, default_headers={"X-Assay-User": "ann"}
        ) as client,
    ):
        agents.set_tracing_disabled(True)
        agent = agents.Agent(
            name="helper",
            instructions="Help.",
            tools=[agents.function_tool(weather)],
            model=agents.OpenAIChatCompletionsModel(model="scripted", openai_client=client),
        )
        result = await agents.Runner.run(agent, "How is the weather?")
        await _told(one, "ann")
        streamed = agents.Runner.run_streamed(agent, ASK)
        async for _ in streamed.stream_events():
            pass

    assert asked == ["Oslo"]
    assert result.final_output == "The weather is rainy."
    assert "Miso" in streamed.final_output


async def test_llm_in_a_terminal(tmp_path: Path) -> None:
    pytest.importorskip("llm", reason="run `make clients`")
    async with served(model=_model()) as one:
        (tmp_path / "extra-openai-models.yaml").write_text(
            json.dumps(
                [
                    {
                        "model_id": "assay",
                        "model_name": "scripted",
                        "api_base": one.base_url,
                        "api_key_name": "assay",
                    }
                ]
            )
        )
        first = await anyio.to_thread.run_sync(_llm, tmp_path, MISO)
        streamed = await anyio.to_thread.run_sync(_llm, tmp_path, ASK)
        whole = await anyio.to_thread.run_sync(_llm, tmp_path, ASK, "--no-stream")

    assert first.returncode == 0, first.stderr
    assert "Miso" in streamed.stdout
    assert streamed.stdout == whole.stdout


def _llm(folder: Path, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "llm", "-m", "assay", "--key", KEY, *options, text]
    environment = {**os.environ, "LLM_USER_PATH": str(folder), "LLM_LOAD_PLUGINS": ""}
    return subprocess.run(  # noqa: S603  # our own interpreter
        command, env=environment, capture_output=True, text=True, check=False, timeout=20
    )
