"""What can be seen of the service from outside: traces, figures, readiness, news."""

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from assay.errors import ConfigError
from assay.runtime.http import app
from assay.runtime.http import turn as turn_module
from assay.runtime.http.keys import Keys, tenants_of

from .served import PATH, body, served

SAID = "My account ends in 4410."


async def test_a_turn_is_a_span_in_genai_terms_without_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(turn_module, "_tracer", provider.get_tracer("assay"))

    async with served() as one, one.client() as client:
        answer = (await client.post(PATH, json=body(SAID))).json()

    [span] = [span for span in exporter.get_finished_spans() if span.name == "chat scripted"]
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "scripted"
    assert attributes["gen_ai.usage.output_tokens"] == answer["usage"]["completion_tokens"]
    assert "4410" not in span.to_json()


async def test_metrics_are_figures_without_names() -> None:
    async with served() as one, one.client() as client:
        await client.post(PATH, json=body(SAID, user="ann-the-user"))
        await client.post(
            PATH, json=body("Hello") | {"messages": [{"role": "user", "content": ""}]}
        )

        text = (await client.get("/metrics")).text

    assert 'assay_requests_total{status="200"} 1.0' in text
    assert 'assay_requests_total{status="400"} 1.0' in text
    assert "assay_turns_active 0.0" in text
    assert "ann-the-user" not in text
    assert "acme" not in text


async def test_a_service_that_stops_is_not_ready_and_still_healthy() -> None:
    async with served() as one, one.client() as client:
        before = await client.get("/ready")
        one.service.is_stopping = True
        after, health = await client.get("/ready"), await client.get("/health")

    assert (before.status_code, after.status_code, health.status_code) == (200, 503, 200)


async def test_a_bank_that_does_not_answer_is_not_ready_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(_: str) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(app, "READY_SECONDS", 0.01)
    async with served() as one, one.client() as client:
        monkeypatch.setattr(one.service.runtime, "memories", never)
        answer = await client.get("/ready")

    assert answer.status_code == 503
    assert answer.json() == {"status": "the bank cannot be read"}


async def test_news_tell_of_the_own_tenant_only() -> None:
    async with served() as one, one.client() as ours, one.client("sk-test-0002") as theirs:
        with one.service.news("acme") as news:
            await theirs.post(PATH, json=body("Hello", user="bob"))
            await ours.post(PATH, json=body("Hello", user="ann"))

            assert await anext(news) == one.service.namespace_of("acme", "ann")


@pytest.mark.parametrize("key", ["with space in it", "ключ-ключ-ключ", ""])
def test_a_key_that_no_header_carries_is_refused(key: str) -> None:
    with pytest.raises(ConfigError):
        Keys({key: ""})


def test_a_service_without_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="--api-key"):
        Keys({})


@pytest.mark.parametrize("named", ["acme", "=X", "acme=", "acme=NOT_SET", "a=KEY,b=KEY"])
def test_tenants_that_cannot_be_read_are_refused(named: str) -> None:
    with pytest.raises(ConfigError, match=r"serve\.tenants"):
        tenants_of(named, {"KEY": "sk-test-0001"})


def test_tenants_are_named_by_the_variables_of_their_keys() -> None:
    assert tenants_of("a = X, b=Y", {"X": "key-of-a", "Y": "key-of-b"}) == {
        "key-of-a": "a",
        "key-of-b": "b",
    }
