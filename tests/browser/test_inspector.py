import re
from typing import TYPE_CHECKING

import pytest

from .conftest import KEY, PLANTED, QUESTION, RENT, USER, Served, opened, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = ("conversations", "memories", "review", "spending")


def last_turn(page: "Page", served: Served) -> None:
    """From the first page to the reasons of the last turn, by clicking."""
    page.goto(f"{served.address}/inspect/")
    page.get_by_role("link", name=USER).click()
    page.locator("main a.row").first.click()
    page.get_by_role("link", name="Why").last.click()


def test_a_record_let_in_by_a_person_is_in_the_next_turn(page: "Page", served: Served) -> None:
    sign_in(page, served.address)
    last_turn(page, served)
    withheld = page.locator(".candidate.bad", has_text=PLANTED)
    assert "from outside, through web" in withheld.inner_text()

    withheld.get_by_role("button", name="Let it in").click()
    page.get_by_role("status").filter(has_text="the next turn").wait_for()
    reply = served.say(QUESTION)
    last_turn(page, served)

    admitted = page.locator(".candidate.good", has_text=PLANTED)
    assert "a person vouched for it" in admitted.inner_text()
    assert page.locator(".answered").inner_text() == reply


def test_what_the_guard_asked_stands_side_by_side_with_the_exact_prompt(
    page: "Page", served: Served
) -> None:
    sign_in(page, served.address)
    last_turn(page, served)

    everything = page.locator(".answer", has=page.get_by_text("everything", exact=True))
    first, second = page.locator(".answer").all()[:2]
    side_by_side = _box(first)[1] == _box(second)[1]
    everything.get_by_role("link", name="Exact prompt").click()

    assert side_by_side
    assert PLANTED in page.locator(".prompt").inner_text()
    assert QUESTION in page.locator(".prompt").inner_text()


def test_what_happens_appears_by_itself(page: "Page", served: Served) -> None:
    sign_in(page, served.address)
    page.get_by_role("link", name=USER).click()
    page.locator(".pulse.on").wait_for()

    served.say("My cat is called Miso.")

    page.locator("main a.row", has_text="My cat is called Miso.").wait_for()


def test_everything_is_reached_by_the_keyboard(page: "Page", served: Served) -> None:
    page.goto(f"{served.address}/inspect/sign-in")
    # The page puts the focus there by itself, once it is drawn.
    page.locator("input[name=key]:focus").wait_for()
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.wait_for_url("**/inspect/")

    _tab_to(page, USER)
    page.keyboard.press("Enter")
    page.wait_for_url("**/conversations?**")
    _tab_to(page, QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_url("**/conversation?**")
    _tab_to(page, "1 admitted, 1 withheld")
    page.keyboard.press("Enter")
    page.wait_for_url("**/turn?**")
    _tab_to(page, "Let it in")
    page.keyboard.press("Enter")
    page.wait_for_url("**done=vouch**")

    assert page.locator(".candidate .chip.accent").inner_text() == "vouched for"


def test_focus_is_seen(page: "Page", served: Served) -> None:
    sign_in(page, served.address)

    page.keyboard.press("Tab")

    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("e => e === document.activeElement && e.getBoundingClientRect().left > 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(
    browser: "Browser", served: Served, scheme: str
) -> None:
    served.say(f"What do you know about {'x' * 300} and <b>{'y' * 200}</b>?")
    with opened(browser, width=320, scheme=scheme) as page:
        sign_in(page, served.address)
        addresses = [f"{served.address}/inspect/{name}?u={USER}" for name in PAGES]
        addresses.append(f"{served.address}/inspect/record?u={USER}&id={served.planted}")
        last_turn(page, served)
        addresses.append(page.url)

        wide = [address for address in addresses if _is_wide(page, address)]

    assert wide == []


def test_a_correction_and_an_erasure_by_hand(page: "Page", served: Served) -> None:
    sign_in(page, served.address)
    page.goto(f"{served.address}/inspect/memories?u={USER}")
    page.get_by_role("link", name=RENT).click()

    page.get_by_label("What holds instead").fill("My rent goes to the account ending in 5521.")
    page.get_by_role("button", name="Correct").click()
    page.get_by_role("status").filter(has_text="Corrected").wait_for()
    corrected = page.locator("h1").inner_text()
    page.get_by_text("Erase this record for good").click()
    page.get_by_label("I want it gone").check()
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("status").filter(has_text="Erased").wait_for()

    assert corrected == "My rent goes to the account ending in 5521."
    assert "4410" not in page.locator("main").inner_text()
    assert "5521" not in page.locator("main").inner_text()


def test_the_theme_is_remembered(page: "Page", served: Served) -> None:
    sign_in(page, served.address)
    before = _background(page)

    page.get_by_role("button", name="Dark").click()
    page.reload()

    assert _background(page) != before
    assert page.get_by_role("button", name="Light").is_visible()


def test_markup_in_a_message_runs_nothing(page: "Page", served: Served) -> None:
    served.say("What is <script>alert(1)</script><img src=x onerror=alert(2)> about rent?")
    sign_in(page, served.address)

    last_turn(page, served)

    assert "<script>alert(1)</script>" in page.locator("h1").inner_text()


def test_signing_out_closes_the_door(page: "Page", served: Served) -> None:
    sign_in(page, served.address)

    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")

    # A refused page is a complaint of the browser's console; this one is meant.
    answer = page.request.get(f"{served.address}/inspect/conversations?u={USER}")
    assert answer.status == 401


def _box(locator: object) -> tuple[float, float]:
    box = locator.bounding_box()  # type: ignore[attr-defined]  # playwright is optional
    return box["x"], box["y"]


def _tab_to(page: "Page", words: str) -> None:
    """Press Tab until what has the focus says these words."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if words in page.evaluate("() => document.activeElement.innerText || ''"):
            return
    raise AssertionError(f"Tab never reached {words!r}")


def _is_wide(page: "Page", address: str) -> bool:
    page.goto(address)
    return bool(page.evaluate("() => document.documentElement.scrollWidth > innerWidth"))


def _background(page: "Page") -> str:
    found: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert re.match(r"rgb", found)
    return found
