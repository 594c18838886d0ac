from datetime import UTC, datetime

import pytest
from starlette.requests import Request
from starlette.responses import Response

from assay.runtime.clock import StoppedClock
from assay.runtime.http.inspector.doors import COOKIE, MOST, SECONDS, Door

from .desks import client_of, open_desk, poison, signed_in

NOW = datetime(2026, 3, 10, tzinfo=UTC)


def request_with(cookie: str) -> Request:
    return Request({"type": "http", "headers": [(b"cookie", f"{COOKIE}={cookie}".encode())]})


def cookie_of(response: Response) -> str:
    return response.headers["set-cookie"].partition("=")[2].partition(";")[0]


@pytest.mark.parametrize("path", ["", "conversations?u=ann", "turn?u=ann&id=monday/1", "live"])
async def test_nobody_looks_without_a_key(path: str) -> None:
    async with open_desk() as desk, client_of(desk) as client:
        await poison(desk)

        page = await client.get(f"/inspect/{path}")

    assert page.status_code == 401
    assert "Sign in" in page.text
    assert "4410" not in page.text


async def test_a_wrong_key_is_refused() -> None:
    async with open_desk() as desk, client_of(desk) as client:
        page = await client.post("/inspect/sign-in", data={"key": "guess"})

    assert page.status_code == 401
    assert "This is no key of this service." in page.text
    assert "set-cookie" not in page.headers


async def test_the_cookie_is_for_this_site_only_and_is_not_the_key() -> None:
    async with open_desk() as desk, client_of(desk) as client:
        page = await client.post("/inspect/sign-in", data={"key": "key-of-the-clinic"})

    cookie = page.headers["set-cookie"]
    assert page.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/inspect" in cookie
    assert "key-of-the-clinic" not in cookie


async def test_a_form_without_the_pages_token_is_refused() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        planted = await poison(desk)

        page = await client.post("/inspect/vouch", data={"u": "ann", "id": planted, "token": "x"})

    assert page.status_code == 403
    assert "not from this page" in page.text


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}],
    ids=str,
)
async def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    async with open_desk() as desk, client_of(desk) as client:
        page = await client.post(
            "/inspect/sign-in", data={"key": "key-of-the-clinic"}, headers=headers
        )

    assert page.status_code == 403
    assert "set-cookie" not in page.headers


async def test_what_is_no_form_or_too_long_is_refused() -> None:
    async with open_desk() as desk, client_of(desk) as client:
        json = await client.post("/inspect/sign-in", json={"key": "key-of-the-clinic"})
        long = await client.post("/inspect/sign-in", data={"key": "x" * 70_000})
        kind = {"content-type": "application/x-www-form-urlencoded"}
        broken = await client.post("/inspect/sign-in", content=b"key=\xff", headers=kind)

    assert [page.status_code for page in (json, long, broken)] == [403, 403, 403]
    assert "expected a form" in json.text
    assert "65,536 bytes" in long.text


async def test_who_signed_out_has_to_sign_in_again() -> None:
    async with open_desk() as desk, signed_in(desk) as client:
        page = await client.get("/inspect/")
        token = page.text.split('name="token" value="')[1].partition('"')[0]

        await client.post("/inspect/sign-out", data={"token": token})

        assert (await client.get("/inspect/")).status_code == 401


def test_a_sign_in_ends_after_a_day_at_work() -> None:
    clock = StoppedClock(NOW)
    door, response = Door(clock, path="/inspect"), Response()
    door.let_in("clinic", response, secure=True)
    request = request_with(cookie_of(response))
    before = door.visitor(request)

    clock.advance(SECONDS + 1)

    assert before is not None
    assert before.tenant == "clinic"
    assert "Secure" in response.headers["set-cookie"]
    assert door.visitor(request) is None


def test_the_oldest_of_too_many_sign_ins_goes() -> None:
    door, first = Door(StoppedClock(NOW), path="/inspect"), Response()
    door.let_in("clinic", first, secure=False)

    for _ in range(MOST):
        door.let_in("clinic", Response(), secure=False)

    assert door.visitor(request_with(cookie_of(first))) is None
