"""The setting ``guard.reduce``, from its name to the prompt."""

import pytest

from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.runtime.settings import Settings
from assay.runtime.wiring import open_runtime

from .rooms import USER, with_settings

SAYS = ("My cat is called Miso.", "My grey cat is called Miso.")


def test_the_environment_switches_it_on() -> None:
    assert not Settings().guard.reduce
    assert Settings.load(env={"ASSAY_GUARD_REDUCE": "true"}).guard.reduce


@pytest.mark.parametrize(("reduce", "admitted"), [(False, 2), (True, 1)])
async def test_a_reply_stands_on_no_more_than_it_needs(
    reduce: bool,  # noqa: FBT001  # a parameter
    admitted: int,
) -> None:
    settings = with_settings(guard={"reduce": reduce})
    model = ScriptedModel([Rule(question="called", prompt="Miso", reply="Miso.")])
    async with open_runtime(model=model, embedder="hashing", settings=settings) as rt:
        for text in SAYS:
            await rt.session(user=USER).send(text)

        reply = await rt.session(user=USER).send("What is my cat called?")

    assert reply.text == "Miso."
    assert len(reply.decision.admitted) == admitted
    assert bool(reply.decision.tokens_saved) is reduce
