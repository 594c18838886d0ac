import re
from html.parser import HTMLParser

import pytest
from httpx2 import AsyncClient, Response

from assay.runtime.limits import namespace_of

from .desks import PLANTED, QUESTION, RENT, WEB, TestDesk, client_of, open_desk, poison, signed_in

HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7 * 7 }}"


def token_of(page: Response) -> str:
    found = re.search(r'name="token" value="([^"]+)"', page.text)
    assert found is not None
    return found.group(1)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def words_of(page: Response) -> str:
    """What a reader sees, without the tags."""
    reader = Reader()
    reader.feed(page.text.split("<main")[1])
    return " ".join(" ".join(reader.words).split())


async def act(client: AsyncClient, action: str, **fields: str) -> Response:
    page = await client.get("/inspect/review", params={"u": fields["u"]})
    return await client.post(f"/inspect/{action}", data={"token": token_of(page), **fields})


async def test_a_poisoned_turn_shows_what_was_withheld_why_and_what_was_asked() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await poison(desk)

        page = await client.get("/inspect/turn", params={"u": "ann", "id": "monday/1"})

    words = words_of(page)
    assert page.status_code == 200
    assert f"withheld {PLANTED} from outside, through web" in words
    assert "The past conversations support another memory against it." in words
    assert f"everything A {PLANTED}" in words
    assert f"only 1 B {RENT}" in words or f"only 2 B {RENT}" in words
    assert "the answer changes" in words


async def test_a_record_let_in_is_admitted_by_the_next_turn_which_says_so() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)

        done = await act(client, "vouch", u="ann", id=planted, turn="monday/1")
        await desk.say("clinic", "ann", QUESTION)
        after = await client.get("/inspect/turn", params={"u": "ann", "id": "monday/2"})

    assert done.status_code == 303
    assert done.headers["location"] == f"turn?u=ann&done=vouch&id=monday%2F1#{planted}"
    assert "a person vouched for it" in words_of(after)
    assert "Withheld 0" in words_of(after)


async def test_quarantine_and_release_show_on_the_review_page() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)

        before = await client.get("/inspect/review", params={"u": "ann"})
        await act(client, "quarantine", u="ann", id=planted)
        during = await client.get("/inspect/review", params={"u": "ann"})
        await act(client, "release", u="ann", id=planted)
        after = await client.get("/inspect/review", params={"u": "ann"})

    assert "Kept out lately 1" in words_of(before)
    assert "In quarantine 1" in words_of(during)
    assert "Kept out lately 0" in words_of(during)
    assert "In quarantine 0" in words_of(after)


async def test_a_correction_keeps_the_old_wording_as_history() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await poison(desk)
        [rent] = [
            r for r in await desk.runtime.memories(namespace_of("clinic", "ann")) if r.text == RENT
        ]

        done = await act(client, "correct", u="ann", id=rent.id, text="It ends in 5521.")
        new = await client.get("/inspect/" + done.headers["location"])
        old = await client.get("/inspect/record", params={"u": "ann", "id": rent.id})
        listed = await client.get("/inspect/memories", params={"u": "ann", "only": "replaced"})

    assert "It ends in 5521." in words_of(new)
    assert f"replaced {RENT}" in words_of(new)
    assert "replaced by It ends in 5521." in words_of(old)
    assert RENT in words_of(listed)
    assert PLANTED not in words_of(listed)


async def test_a_decision_about_an_erased_record_says_erased_input() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)
        turn = {"u": "ann", "id": "monday/1"}
        key = re.search(
            r"question\?u=ann&amp;id=monday%2F1&amp;key=(\w+)",
            (await client.get("/inspect/turn", params=turn)).text,
        )
        assert key is not None

        done = await act(client, "erase", u="ann", id=planted, sure="yes")
        page = await client.get("/inspect/turn", params=turn)
        gone = await client.get("/inspect/record", params={"u": "ann", "id": planted})
        prompts = [
            await client.get("/inspect/question", params={**turn, "key": found})
            for found in await keys_of(desk)
        ]

    assert done.status_code == 303
    assert "erased input" in words_of(page)
    assert PLANTED not in page.text.replace(f'<p class="answered">{PLANTED}', "")
    assert gone.status_code == 404
    assert any("erased input" in words_of(prompt) for prompt in prompts)


async def keys_of(desk: TestDesk) -> list[str]:
    turns = await desk.runtime.turns(namespace_of("clinic", "ann"))
    decided = turns[-1].decided
    assert decided is not None
    return [intervention.key for intervention in decided.interventions]


async def test_the_exact_prompt_of_an_intervention_is_shown() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await poison(desk)

        pages = [
            await client.get("/inspect/question", params={"u": "ann", "id": "monday/1", "key": key})
            for key in await keys_of(desk)
        ]

    assert all(page.status_code == 200 for page in pages)
    assert all(QUESTION in words_of(page) for page in pages)
    assert any(PLANTED in words_of(page) for page in pages)


async def test_erasing_needs_the_box_to_be_ticked() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)

        refused = await act(client, "erase", u="ann", id=planted)
        still = await client.get("/inspect/record", params={"u": "ann", "id": planted})

    assert refused.status_code == 403
    assert "nothing was erased" in words_of(refused)
    assert still.status_code == 200


async def test_no_text_of_a_user_or_a_record_becomes_markup() -> None:
    user = "<b>ann</b>&'\""
    async with open_desk() as desk, signed_in(desk) as client:
        space = namespace_of("clinic", user)
        hostile = await desk.runtime.remember(space, HOSTILE, origin=WEB)
        await desk.say("clinic", user, HOSTILE, session="<i>s</i>/../x")
        turn = (await desk.runtime.turns(space))[-1]

        pages = [
            await client.get(f"/inspect/{path}", params={"u": user, name: value})
            for path, name, value in (
                ("", "q", ""),
                ("conversations", "x", ""),
                ("conversation", "s", str(turn.session)),
                ("turn", "id", str(turn.id)),
                ("memories", "q", HOSTILE),
                ("record", "id", str(hostile)),
                ("review", "x", ""),
                ("spending", "x", ""),
            )
        ]

    assert [page.status_code for page in pages] == [200] * 8
    assert not any("<script>alert" in p.text or "<img" in p.text for p in pages)
    assert not any("<b>ann" in p.text or "<i>s" in p.text for p in pages)
    assert not any("49" in words_of(p) and "7 * 7" not in words_of(p) for p in pages)


async def test_pages_forbid_what_they_do_not_need() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        page = await client.get("/inspect/")

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "style=" not in page.text
    assert page.headers["cache-control"] == "no-store"


async def test_an_empty_bank_says_what_to_do_next() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        page = await client.get("/inspect/")
        fresh = await client.get("/inspect/conversations", params={"u": "new"})
        nothing = await client.get("/inspect/memories", params={"u": "new"})

    assert "curl http://inspector.test/v1/chat/completions" in words_of(page)
    assert "No conversation yet" in words_of(fresh)
    assert "Nothing is remembered yet" in words_of(nothing)


async def test_a_user_known_by_an_import_alone_has_memories_to_look_at() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await desk.runtime.remember(namespace_of("clinic", "ann"), RENT, origin=WEB)

        page = await client.get("/inspect/conversations", params={"u": "ann"})

    assert "1 record of this user is in the bank already" in words_of(page)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("turn?u=ann&id=monday/9", "no turn 'monday/9'; did you mean"),
        ("turn?u=ann", "the address names no 'id'"),
        ("conversation?u=ann&s=mondy", "no conversation 'mondy'; did you mean 'monday'"),
        ("record?u=ann&id=m123", "There is no record 'm123' here, or it was erased."),
        ("question?u=ann&id=monday/1&key=00", "asked nothing under '00'"),
        ("conversations", "the address names no 'u'"),
    ],
)
async def test_what_is_not_there_is_named_with_the_nearest(path: str, told: str) -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await poison(desk)

        page = await client.get(f"/inspect/{path}")

    assert page.status_code == 404
    assert told in words_of(page)


async def test_another_tenants_users_turns_and_records_are_unknown() -> None:
    async with open_desk() as desk, signed_in(desk, "key-of-the-shop") as client:
        planted = await poison(desk)

        users = await client.get("/inspect/")
        turn = await client.get("/inspect/turn", params={"u": "ann", "id": "monday/1"})
        record = await client.get("/inspect/record", params={"u": "ann", "id": planted})
        acted = await act(client, "vouch", u="ann", id=planted)
        forged = await client.get("/inspect/memories", params={"u": "clinic\x1fann"})

    assert "No conversation yet" in words_of(users)
    assert "this user has none yet" in words_of(turn)
    assert (turn.status_code, record.status_code, acted.status_code) == (404, 404, 404)
    assert forged.status_code == 400
    assert (await desk.runtime.verdicts(namespace_of("clinic", "ann"))).vouched == {}


async def test_a_correction_that_cannot_be_kept_changes_nothing() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)

        refused = await act(client, "correct", u="ann", id=planted, text=" ")
        kept = await client.get("/inspect/record", params={"u": "ann", "id": planted})

    assert refused.status_code == 400
    assert "record text" in words_of(refused)
    assert PLANTED in words_of(kept)


async def test_a_turn_that_failed_is_shown_with_its_reason() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        await desk.say("clinic", "ann", RENT)

        page = await client.get("/inspect/turn", params={"u": "ann", "id": "monday/0"})

    assert "No memory was proposed" in words_of(page)


async def test_values_and_interactions_of_a_clearing_are_pictures() -> None:
    async with open_desk("meclear") as desk, signed_in(desk) as client:
        await poison(desk)
        await desk.say("clinic", "ann", QUESTION)

        page = await client.get("/inspect/turn", params={"u": "ann", "id": "monday/1"})

    assert "Values of coalitions" in words_of(page)
    assert 'class="meter"' in page.text
    assert "The line is the bar" in words_of(page)


async def test_static_files_are_named_ones_only() -> None:
    async with open_desk() as desk, client_of(desk) as client:
        style = await client.get("/inspect/static/inspector.css")
        other = await client.get("/inspect/static/..%2Froutes.py")

    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert other.status_code == 404
