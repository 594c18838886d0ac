"""A request that a client names by ``Idempotency-Key``, and sends again because it heard nothing."""

from .served import PATH, body, served

MISO = "My cat is called Miso."
NAMED = {"Idempotency-Key": "wish 1", "X-Assay-Session": "s1"}


async def test_a_named_request_sent_again_gets_the_reply_it_had() -> None:
    async with served() as one, one.client() as client:
        first = await client.post(PATH, json=body(MISO), headers=NAMED)
        again = await client.post(PATH, json=body(MISO), headers=NAMED)
        turns = await one.service.runtime.turns(one.service.namespace_of("acme", "ann"))

    assert again.json()["choices"] == first.json()["choices"]
    assert again.headers["x-assay-decision"] == first.headers["x-assay-decision"]
    assert len(turns) == 1


async def test_a_named_request_is_streamed_again() -> None:
    request = body(MISO) | {"stream": True}
    async with served() as one, one.client() as client:
        first = await client.post(PATH, json=request, headers=NAMED)
        again = await client.post(PATH, json=request, headers=NAMED)

    assert "data: [DONE]" in again.text
    assert "know" in again.text
    assert "know" in first.text


async def test_the_same_words_under_another_name_are_said_again() -> None:
    async with served() as one, one.client() as client:
        for name in ("wish 1", "wish 2", "wish 2"):
            await client.post(PATH, json=body(MISO), headers=NAMED | {"Idempotency-Key": name})
        turns = await one.service.runtime.turns(one.service.namespace_of("acme", "ann"))

    assert [turn.text for turn in turns] == [MISO, MISO]


async def test_a_name_that_is_too_long_is_refused() -> None:
    async with served() as one, one.client() as client:
        long = NAMED | {"Idempotency-Key": "x" * 600}
        answer = await client.post(PATH, json=body(MISO), headers=long)

    assert answer.status_code == 400
    assert "request is 600 bytes" in answer.text
