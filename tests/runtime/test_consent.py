"""What a record may be used for is checked when it is written and when it is read."""

from pathlib import Path

import pytest

import assay
from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.exporting import export_subject
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.checks import refuse_external
from assay.stores.embeddings import HashingEmbedder
from assay.stores.records import Consent, Origin

_ORIGIN = Origin(writer="user", channel="import:test")


class Listening(ScriptedModel):
    """Keeps what it was shown."""

    def __init__(self, identity: str) -> None:
        super().__init__(identity=identity)
        self.heard = ""

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        self.heard += "".join(message.content for message in request.messages)
        return await super().complete(request, sink=sink)


async def heard(identity: str, consent: Consent) -> str:
    model = Listening(identity)
    async with assay.open_runtime(
        model=model, embedder=HashingEmbedder(48), guard="panel"
    ) as runtime:
        await runtime.remember("ann", "My cat is called Miso.", origin=_ORIGIN, consent=consent)
        await runtime.session(user="ann").send("What is my cat called?")
    return model.heard


@pytest.mark.parametrize(
    ("identity", "consent", "shown"),
    [
        ("openai:m@http://x", Consent(), True),
        ("openai:m@http://x", Consent(no_external_model=True), False),
        ("scripted", Consent(no_external_model=True), True),
        ("scripted", Consent(experiments=False), False),
    ],
)
async def test_a_model_sees_what_consent_allows(
    identity: str,
    consent: Consent,
    shown: bool,  # noqa: FBT001  # a case of the table
) -> None:
    assert ("Miso" in await heard(identity, consent)) == shown


async def test_a_record_without_consent_is_not_stored(tmp_path: Path) -> None:
    async with assay.open_runtime(
        model="scripted", bank=tmp_path / "bank", embedder=HashingEmbedder(48), guard="vector"
    ) as runtime:
        with pytest.raises(ValueError, match="no consent to be stored"):
            await runtime.remember(
                "ann", "My cat is Miso.", origin=_ORIGIN, consent=Consent(store=False)
            )


async def test_an_export_and_a_recall_leave_out_what_may_not_go() -> None:
    async with assay.open_runtime(
        model="scripted", embedder=HashingEmbedder(48), guard="vector"
    ) as runtime:
        kept = Consent(export=False, no_external_model=True)
        await runtime.remember("ann", "My cat is called Miso.", origin=_ORIGIN, consent=kept)
        await runtime.remember("ann", "My cat eats salmon.", origin=_ORIGIN)
        [_, record] = await runtime.memories("ann")

        exported = await export_subject(runtime, "ann")
        recalled = await runtime.recall("ann", "What does my cat eat?")

        assert exported.records == [record]
        assert recalled.records == (record,)


async def test_a_remote_embedder_is_refused_such_a_record() -> None:
    async with assay.open_runtime(
        model="scripted", embedder=HashingEmbedder(48), guard="vector"
    ) as runtime:
        consent = Consent(no_external_model=True)
        await runtime.remember("ann", "My cat is called Miso.", origin=_ORIGIN, consent=consent)
        records = await runtime.memories("ann")

    with pytest.raises(ValueError, match="may go to no external model"):
        refuse_external(records, "openai:e@http://x")
