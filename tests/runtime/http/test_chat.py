"""The chat endpoint: memory per user, nothing twice, nothing half, bounded."""

import json

import anyio
import pytest

from assay.guards.protocols import Completion, Request, ToolCall
from assay.runtime.models.scripted import Rule, ScriptedModel

from .served import KEY, OTHER_KEY, PATH, SlowModel, body, served, texts_of

MISO = "My cat is called Miso."
ASK = "What is my cat called?"
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


async def test_a_later_conversation_knows_what_was_said() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(MISO))

        answer = await client.post(PATH, json=body(ASK))

    told = answer.json()
    assert "Miso" in told["choices"][0]["message"]["content"]
    assert [record["method"] for record in told["assay"]["admitted"]] == ["relevance"]
    assert answer.headers["x-assay-decision"] == told["assay"]["decision"]


async def test_another_user_knows_nothing_of_it() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(MISO))

        answer = await client.post(PATH, json=body(ASK, user="bob"))

    assert "Miso" not in answer.text


async def test_the_user_may_be_named_by_a_header() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(MISO, user="Zoë"))
        plain = {k: v for k, v in body(ASK).items() if k != "user"}

        answer = await client.post(PATH, json=plain, headers={b"X-Assay-User": "Zoë".encode()})

    assert "Miso" in answer.text


async def test_history_is_never_remembered() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(MISO))
        await client.post(PATH, json=body(MISO, "Noted.", "I live in Oslo."))
        await client.post(PATH, json=body(MISO, "Noted.", "I live in Oslo.", "Nice.", ASK))

        memories = await one.service.runtime.memories(one.service.namespace_of("acme", "ann"))

    assert [record.text for record in memories] == [MISO, "I live in Oslo."]


async def test_a_request_sent_again_is_answered_again_and_remembered_once() -> None:
    async with served() as one, one.client() as client:
        answers = [await client.post(PATH, json=body(MISO)) for _ in range(3)]

        namespace = one.service.namespace_of("acme", "ann")
        memories = await one.service.runtime.memories(namespace)

    assert [answer.status_code for answer in answers] == [200] * 3
    assert [record.text for record in memories] == [MISO]


async def test_no_two_answers_have_one_id() -> None:
    async with served() as one, one.client() as client:
        users = [await client.post(PATH, json=body(MISO, user=user)) for user in ("ann", "bob")]
        more = await client.post(PATH, json=body(MISO, "OK", "My dog is called Rex."))

    assert len({answer.json()["id"] for answer in [*users, more]}) == 3


async def test_the_clients_system_prompt_and_history_reach_the_model() -> None:
    model = ScriptedModel()
    request = body("Hello", "Ahoy!", "And now?")
    system = {"role": "system", "content": "You are a pirate."}
    request["messages"] = [system, *request["messages"]]  # type: ignore[misc]
    async with served(model=model) as one, one.client() as client:
        await client.post(PATH, json=request)

    messages = model.asked[-1].messages
    assert messages[0].content.startswith("You are a pirate.")
    assert [message.content for message in messages[1:]] == ["Hello", "Ahoy!", "And now?"]


async def test_two_hundred_turns_of_history_are_cut_to_the_budget() -> None:
    model = ScriptedModel()
    history = [f"message number {i} about nothing much" for i in range(399)]
    async with served(model=model, history_tokens=200) as one, one.client() as client:
        answer = await client.post(PATH, json=body(*history))

    assert answer.status_code == 200
    shown = texts_of(model.asked[-1].messages)
    assert "number 397" in shown
    assert "number 300" not in shown


def _calls_a_tool(request: Request) -> str | Completion:
    if request.parameters.tools and request.messages[-1].role == "user":
        call = ToolCall(id="call_1", name="look_up", arguments='{"what": "weather"}')
        return Completion(text="", finish_reason="tool_calls", tool_calls=(call,))
    return f"It says: {request.messages[-1].content}"


async def test_tool_calls_go_out_and_their_results_come_in() -> None:
    async with served(model=ScriptedModel(_calls_a_tool)) as one, one.client() as client:
        first = body("How is the weather?", tools=[TOOL])
        asked = (await client.post(PATH, json=first)).json()
        called = asked["choices"][0]
        result = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
        first["messages"] = [*first["messages"], called["message"], result]  # type: ignore[misc]
        answered = (await client.post(PATH, json=first)).json()
        answer = answered["choices"][0]

        namespace = one.service.namespace_of("acme", "ann")
        memories = await one.service.runtime.memories(namespace)

    assert asked["id"] != answered["id"]
    assert called["finish_reason"] == "tool_calls"
    assert called["message"]["tool_calls"][0]["function"]["name"] == "look_up"
    assert answer["message"]["content"] == "It says: rain"
    assert [record.origin.writer for record in memories] == ["tool"]


async def test_tool_results_the_service_did_not_ask_for_are_part_of_the_history() -> None:
    model = ScriptedModel()
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    request = body("How is the weather?")
    request["messages"] = [
        *request["messages"],  # type: ignore[misc]
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x", "content": "rain"},
    ]
    async with served(model=model) as one, one.client() as client:
        answer = await client.post(PATH, json=request)

    assert answer.status_code == 200
    assert "f({}) gave: rain" in texts_of(model.asked[-1].messages)


async def test_a_stream_comes_in_pieces_and_ends_with_the_decision() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(MISO))
        lines = (await client.post(PATH, json=body(ASK, stream=True))).text.splitlines()

    events = [line.removeprefix("data: ") for line in lines if line]
    chunks = [json.loads(event) for event in events[:-1]]
    said = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert events[-1] == "[DONE]"
    assert "".join(said) == "My cat is called Miso."
    assert len(said) > 3
    assert chunks[-1]["assay"]["admitted"]


async def test_a_piece_is_there_before_the_answer_is_whole() -> None:
    model = SlowModel()
    model.may_end = anyio.Event()
    async with (
        served(model=model) as one,
        one.client() as client,
        client.stream("POST", PATH, json=body("Hello", stream=True)) as answer,
    ):
        pieces = answer.aiter_lines()
        seen = [await anext(pieces) for _ in range(3)]
        model.may_end.set()
        rest = [line async for line in pieces]

    assert "Well" in seen[2]
    assert "[DONE]" in "".join(rest)


async def test_a_stream_dropped_in_the_middle_leaves_nothing_behind() -> None:
    model = SlowModel()
    model.may_end = anyio.Event()
    async with served(model=model) as one, one.client() as client:
        namespace = one.service.namespace_of("acme", "ann")
        with one.service.news("acme") as news:
            async with client.stream("POST", PATH, json=body(MISO, stream=True)) as answer:
                pieces = answer.aiter_lines()
                await anext(pieces)
            with anyio.fail_after(5):
                while "assay_dropped_total 1.0" not in one.figures():
                    await anext(news)
        with anyio.fail_after(5):
            async with one.service.in_order(namespace):
                pass
        model.may_end = None
        memories = await one.service.runtime.memories(namespace)
        [turn] = await one.service.runtime.turns(namespace)
        again = await client.post(PATH, json=body(MISO))
        kept = await one.service.runtime.memories(namespace)

    assert memories == []
    assert turn.failure is not None
    assert again.status_code == 200
    assert [record.text for record in kept] == [MISO]


async def test_two_requests_of_one_user_at_once_are_taken_in_order() -> None:
    model = SlowModel()
    model.may_end = anyio.Event()
    answers: list[str] = []
    async with served(model=model) as one, one.client() as client, anyio.create_task_group() as g:

        async def say(text: str) -> None:
            answers.append((await client.post(PATH, json=body(text))).text)

        g.start_soon(say, MISO)
        await model.entered.wait()
        g.start_soon(say, ASK)
        model.may_end.set()

    assert "Miso" in answers[1]


async def test_the_session_may_be_named() -> None:
    async with served() as one, one.client() as client:
        for text in ("Hello", "Good bye"):
            headers = {"X-Assay-Session": "support 7"}
            await client.post(PATH, json=body(text), headers=headers)

        users = await one.service.users("acme")

    assert users == {"ann": 1}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"model": "nope"}, 404, "model_not_found"),
        ({"messages": []}, 400, "nothing_to_answer"),
        ({"messages": [{"role": "user", "content": ""}]}, 400, "invalid_value"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, 400, "invalid_body"),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, 400, "invalid_value"),
        ({"user": "a\0b"}, 400, "invalid_value"),
        ({"user": "x" * 600}, 400, "invalid_value"),
        ({"n": 2}, 400, "unsupported_value"),
        ({"tool_choice": "required"}, 400, "unsupported_value"),
        ({"response_format": {"type": "json_object"}}, 400, "unsupported_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "unsupported_content",
        ),
        (
            {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
            400,
            "nothing_to_answer",
        ),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(
    change: dict[str, object], status: int, code: str
) -> None:
    async with served() as one, one.client() as client:
        answer = await client.post(PATH, json=body("Hello") | change)

        turns = await one.service.users("acme")

    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert set(error) == {"message", "type", "param", "code"}
    assert turns == {}


@pytest.mark.parametrize(
    ("fails", "status", "code"),
    [
        ("unavailable", 503, "model_unavailable"),
        ("refused", 502, "model_refused"),
        ("malformed", 502, "malformed_answer"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_model_is_an_error_in_openais_shape(
    fails: str, status: int, code: str, *, stream: bool
) -> None:
    model = ScriptedModel([Rule(fails=fails)])  # type: ignore[arg-type]
    async with served(model=model) as one, one.client() as client:
        answer = await client.post(PATH, json=body("Hello", stream=stream))

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_a_body_that_is_no_json_is_refused() -> None:
    async with served() as one, one.client() as client:
        answer = await client.post(PATH, content=b"{")

    assert answer.json()["error"]["code"] == "invalid_body"


async def test_the_model_is_listed_by_the_name_it_is_called() -> None:
    async with served() as one, one.client() as client:
        listed = (await client.get("/v1/models")).json()
        found = (await client.get("/v1/models/scripted")).json()
        missing = await client.get("/v1/models/other")

    assert listed["data"] == [found]
    assert found["id"] == "scripted"
    assert missing.status_code == 404


async def test_two_tenants_with_a_user_of_one_name_share_nothing() -> None:
    async with served() as one, one.client(KEY) as ours, one.client(OTHER_KEY) as theirs:
        await ours.post(PATH, json=body(MISO))

        answer = await theirs.post(PATH, json=body(ASK))

    assert "Miso" not in answer.text


async def test_a_stop_lets_the_open_stream_end_and_remembers_it() -> None:
    model = SlowModel()
    model.may_end = anyio.Event()
    async with (
        served(model=model) as one,
        one.client() as client,
        client.stream("POST", PATH, json=body(MISO, stream=True)) as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        one.stop.set()
        while not one.service.is_stopping:
            await anyio.lowlevel.checkpoint()
        model.may_end.set()
        rest = [line async for line in lines]
        namespace = one.service.namespace_of("acme", "ann")
        memories = await one.service.runtime.memories(namespace)

    assert rest[-2:] == ["data: [DONE]", ""]
    assert [record.text for record in memories] == [MISO]
