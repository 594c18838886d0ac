"""The store, asked through LangGraph's own base class."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import assay

pytest.importorskip("langgraph", reason="needs the extra langgraph: make clients")

ANN = ("memories", "ann")


@pytest.fixture
async def store() -> AsyncIterator[Any]:
    from assay.runtime.adapters.langgraph_store import AssayStore

    async with assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime:
        yield AssayStore(runtime)


async def test_items_are_put_got_replaced_and_deleted(store: Any) -> None:
    await store.aput(ANN, "cat", {"text": "Ann's cat is Miso."})
    assert (await store.aget(ANN, "cat")).value == {"text": "Ann's cat is Miso."}

    await store.aput(ANN, "cat", {"name": "Momo", "age": 3})
    assert (await store.aget(ANN, "cat")).value == {"name": "Momo", "age": 3}
    await store.aput(ANN, "cat", {"name": "Momo", "age": 3})

    await store.adelete(ANN, "cat")
    await store.adelete(ANN, "cat")
    assert await store.aget(ANN, "cat") is None


async def test_search_finds_by_words_below_a_prefix_and_filters(store: Any) -> None:
    await store.aput(ANN, "cat", {"text": "Ann's cat is called Miso."})
    await store.aput(ANN, "job", {"text": "Ann works as a nurse."})
    await store.aput(("memories", "ben"), "cat", {"text": "Ben's cat is called Tiger."})

    [best, *_] = await store.asearch(ANN, query="What is the cat called?", limit=1)
    assert (best.key, best.namespace) == ("cat", ANN)
    below = await store.asearch(("memories",), query="cat called")
    assert {item.namespace for item in below} == {ANN, ("memories", "ben")}
    [job] = await store.asearch(ANN, filter={"text": "Ann works as a nurse."})
    assert job.key == "job"


async def test_namespaces_are_listed(store: Any) -> None:
    await store.aput(ANN, "a", {"text": "one"})
    await store.aput(("notes", "x/y"), "b", {"text": "two"})

    assert await store.alist_namespaces() == [ANN, ("notes", "x/y")]
    assert await store.alist_namespaces(prefix=("memories",)) == [ANN]
    assert await store.alist_namespaces(max_depth=1) == [("memories",), ("notes",)]


async def test_what_it_cannot_do_is_refused(store: Any) -> None:
    with pytest.raises(NotImplementedError, match="asynchronous"):
        store.get(ANN, "cat")
    with pytest.raises(ValueError, match="text"):
        await store.aput(ANN, "empty", {"text": "a\0b"})
