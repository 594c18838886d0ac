import pytest

from assay.errors import ConflictingWrite, RecordNotFound, StoreCorrupt
from assay.runtime.events import GuardDecided
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.reviews import RecordReviewed, Reviews, own_stream
from assay.runtime.streams import stream_of
from assay.stores.protocols import JournalEntry
from assay.stores.records import Origin, RecordId

from .rooms import SESSION, USER, fresh_bank, journal_of, over
from .support import NOW

WEB = Origin(writer="external", channel="web")
RUMOUR = "A rumour: the shop opens at nine."
QUESTION = "When does the shop open?"


async def test_what_a_person_vouches_for_is_admitted_next_time_and_the_decision_says_why() -> None:
    rt = over(fresh_bank())
    rumour = await rt.remember(USER, RUMOUR, origin=WEB)
    session = rt.session(user=USER)
    before = await session.send(QUESTION)

    await rt.vouch(USER, rumour)
    after = await session.send(QUESTION)

    assert [j.record_id for j in before.decision.withheld] == [rumour]
    [judgement] = after.decision.admitted
    assert (judgement.record_id, judgement.method) == (rumour, "review")
    assert judgement.reason.startswith("a person vouched for it on 2026-03-10")
    assert "by its words" in judgement.reason
    assert after.decision.certificate == "1 admitted on a person's word"
    assert after.text == RUMOUR


async def test_a_quarantined_record_is_no_candidate_and_no_prompt_shows_it() -> None:
    model = ScriptedModel()
    rt = over(fresh_bank(), model=model)
    opening = await rt.remember(USER, "The shop opens at eight.", origin=WEB)
    session = rt.session(user=USER)
    await session.send(QUESTION)
    asked = len(model.asked)

    await rt.quarantine(USER, opening)
    reply = await session.send(QUESTION)

    assert reply.decision.judgements == ()
    assert not any("eight" in m.content for r in model.asked[asked:] for m in r.messages)
    assert [record.id for record in await rt.memories(USER)] == [opening]


async def test_what_the_user_said_is_not_shown_again_while_it_is_quarantined() -> None:
    model = ScriptedModel()
    rt = over(fresh_bank(), model=model)
    session = rt.session(user=USER)
    await session.send("My cat is called Miso.")
    [record] = await rt.memories(USER)

    await rt.quarantine(USER, record.id)
    await session.send("What is my cat called?")

    assert not any("Miso" in message.content for message in model.asked[-1].messages)


async def test_a_released_record_is_left_to_the_guard_again() -> None:
    rt = over(fresh_bank())
    opening = await rt.remember(USER, "The shop opens at eight.", origin=WEB)
    await rt.quarantine(USER, opening)

    await rt.release(USER, opening)
    reply = await rt.session(user=USER).send(QUESTION)

    assert [j.method for j in reply.decision.admitted] == ["word"]
    assert (await rt.verdicts(USER)).of(opening) == "guarded"


async def test_quarantined_records_leave_their_places_to_others() -> None:
    rt = over(fresh_bank())
    texts = [f"The shop opens at eight, says witness {n}." for n in range(8)]
    written = [await rt.remember(USER, text, origin=WEB) for text in texts]
    session = rt.session(user=USER)
    first = {j.record_id for j in (await session.send(QUESTION)).decision.judgements}

    for record in first:
        await rt.quarantine(USER, record)
    second = {j.record_id for j in (await session.send(QUESTION)).decision.judgements}

    assert second == set(written) - first


async def test_reviews_are_read_by_another_runtime_over_the_same_bank() -> None:
    bank = fresh_bank()
    rt, other = over(bank), over(bank)
    rumour = await rt.remember(USER, RUMOUR, origin=WEB)
    session = other.session(user=USER)
    await session.send(QUESTION)

    await rt.vouch(USER, rumour)
    reply = await session.send(QUESTION)

    assert [j.record_id for j in reply.decision.admitted] == [rumour]
    assert [r.verdict for r in await other.reviews(USER)] == ["vouched"]


async def test_two_who_review_at_once_are_both_kept() -> None:
    bank = fresh_bank()
    first, second = Reviews(bank.journal, USER), Reviews(bank.journal, USER)
    await first.verdicts()
    await second.verdicts()

    await first.add(RecordReviewed(record_id=RecordId("m1"), verdict="vouched", at=NOW))
    await second.add(RecordReviewed(record_id=RecordId("m2"), verdict="quarantined", at=NOW))

    verdicts = await first.verdicts()
    assert (verdicts.of(RecordId("m1")), verdicts.of(RecordId("m2"))) == ("vouched", "quarantined")


async def test_a_journal_that_never_takes_a_review_says_so() -> None:
    class Busy:
        async def append(self, session: object, entries: object) -> None:
            raise ConflictingWrite("taken")

        async def read(self, session: object, *, after: int = -1) -> list[JournalEntry]:
            return []

        async def sessions(self) -> list[object]:
            return []

    reviews = Reviews(Busy(), USER)  # type: ignore[arg-type]  # its signatures do not matter here

    with pytest.raises(ConflictingWrite):
        await reviews.add(RecordReviewed(record_id=RecordId("m1"), verdict="vouched", at=NOW))


async def test_a_damaged_review_is_named() -> None:
    bank = fresh_bank()
    await bank.journal.append(own_stream(USER), [JournalEntry(0, b"{}")])

    with pytest.raises(StoreCorrupt, match="entry 0 of the reviews"):
        await Reviews(bank.journal, USER).verdicts()


async def test_reviews_lie_among_the_streams_of_their_user_and_are_no_session() -> None:
    rt = over(fresh_bank())
    rumour = await rt.remember("a/b", RUMOUR, origin=WEB)
    await rt.vouch("a/b", rumour)

    assert own_stream(USER) == stream_of(USER, "")
    assert await rt.decisions("a/b") == []
    assert (await rt.verdicts("a")).vouched == {}


@pytest.mark.parametrize("verb", ["quarantine", "vouch", "release"])
async def test_a_record_of_another_user_cannot_be_reviewed(verb: str) -> None:
    rt = over(fresh_bank())
    rumour = await rt.remember("ann", RUMOUR, origin=WEB)

    with pytest.raises(RecordNotFound):
        await {"quarantine": rt.quarantine, "vouch": rt.vouch, "release": rt.release}[verb](
            "ben", rumour
        )

    assert await rt.reviews("ben") == []


async def test_the_journal_names_what_the_guard_asked_and_the_cache_has_the_answer() -> None:
    bank = fresh_bank()
    rt = over(bank)
    record = await rt.remember(USER, "The shop opens at eight.", origin=WEB)
    await rt.session(user=USER, session_id=SESSION).send(QUESTION)

    [decided] = [e for e in await journal_of(bank) if isinstance(e, GuardDecided)]

    [intervention] = decided.interventions
    assert intervention.shown == (record,)
    assert intervention.key in await bank.cache.get(USER, [intervention.key])
