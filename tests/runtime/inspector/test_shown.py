from xml.etree.ElementTree import fromstring

from assay.guards.protocols import Decision, Judgement, Ledger
from assay.guards.trace import Interaction, Trace
from assay.guards.trace import Tested as Tried  # pytest takes what is called Test for a test
from assay.runtime.commands import Found
from assay.runtime.events import CommandFailed, GuardDecided, TurnCancelled
from assay.runtime.http.inspector import pictures
from assay.runtime.http.inspector.pages import Frame, Pages, served
from assay.runtime.http.inspector.routes import around
from assay.runtime.http.inspector.shown import TurnShown, count, failure_of, listed, turn_shown
from assay.runtime.reviews import Verdicts
from assay.runtime.settings import BudgetSettings
from assay.runtime.turns import PastTurn
from assay.stores.records import MemoryRecord, Namespace, Origin, RecordId, SessionId, TurnId

from .desks import NOW

IDS = [RecordId(f"m{n}") for n in range(4)]
TEXTS = ("Rent: 4410.", "Rent: 9077.", "Rent is 9077.", "Nora lives in Lisbon.")


def cleared() -> TurnShown:
    """A turn whose clearing left out two copies of one planted statement."""
    judgements = tuple(
        Judgement(
            record_id=record_id,
            admitted=place in {0, 3},
            reason="it harms only beside a record that is withheld",
            method="meclear",
            effect=(0.6, -0.3, -0.3, 0.0)[place],
        )
        for place, record_id in enumerate(IDS)
    )
    trace = Trace(
        before=0.2,
        bar=0.5,
        tested=(
            Tried(withheld=(IDS[1],), utility=0.25),
            Tried(withheld=(IDS[3],)),
            Tried(withheld=(IDS[1], IDS[2]), utility=0.9, recovered=True, verified=True),
        ),
        interactions=(
            Interaction(first=IDS[1], second=IDS[2], strength=0.6, meaning="substitution"),
            Interaction(first=IDS[0], second=IDS[3], strength=-0.1, meaning="complementarity"),
        ),
    )
    spent = Ledger(evaluations=9, cache_hits=3, live=6, tokens=420, seconds=1.5)
    decision = Decision(
        method="meclear",
        judgements=judgements,
        certificate="recovered",
        trace=trace,
        spent=spent,
    )
    turn = PastTurn(
        id=TurnId("s/0"),
        session=SessionId("s"),
        at=NOW,
        text="Which account?",
        found=tuple(Found(record_id, 0.9) for record_id in IDS),
        decided=GuardDecided(turn_id=TurnId("s/0"), at=NOW, decision=decision, recent_tokens=9),
    )
    records = {
        record_id: MemoryRecord(
            id=record_id,
            namespace=Namespace("ann"),
            text=text,
            origin=Origin(writer="user", channel="chat"),
            ingested_at=NOW,
        )
        for record_id, text in zip(IDS, TEXTS, strict=True)
    }
    return turn_shown(turn, records, Verdicts(), {}, BudgetSettings(calls=6, tokens=0))


def test_steps_of_a_clearing_tell_what_each_withholding_was_worth() -> None:
    steps = cleared().steps

    assert [(step.words, step.utility, step.state) for step in steps] == [
        ("everything shown", 0.2, "below the bar"),
        ("without 2", 0.25, "below the bar"),
        ("without 4", None, "not measured"),
        ("without 2, 3", 0.9, "verified"),
    ]
    assert steps[3].shown == {0, 3}


def test_a_limit_of_nothing_is_spent_and_no_limit_has_no_bar() -> None:
    calls, tokens, seconds, _ = cleared().gauges

    assert (calls.spent, calls.limit, calls.share) == ("6", "of 6", 1.0)
    assert (tokens.limit, tokens.share) == ("of 0", 1.0)
    assert (seconds.spent, seconds.limit, seconds.share) == ("1.50", "no limit", None)


def test_the_page_of_a_clearing_draws_values_and_interactions() -> None:
    page = Pages(served).render(
        "turn", Frame(user="ann"), turn=cleared(), **around("s/0", [TurnId("s/0")])
    )

    assert 'class="matrix"' in page
    assert "2 and 3: substitution (+0.60)" in page
    assert "The line is the bar: 0.50." in page
    assert "verified" in page


def test_why_a_turn_has_no_reply() -> None:
    turn = PastTurn(id=TurnId("s/0"), session=SessionId("s"), at=NOW, text="Hello")
    failed = CommandFailed(
        turn_id=turn.id, at=NOW, command="complete", kind="ModelRefused", message="no"
    )
    given_up = TurnCancelled(turn_id=turn.id, at=NOW, reason="deadline")

    assert failure_of(turn) == ""
    assert failure_of(
        PastTurn(id=turn.id, session=turn.session, at=NOW, text="", failure=failed)
    ) == ("ModelRefused: no")
    assert failure_of(
        PastTurn(id=turn.id, session=turn.session, at=NOW, text="", failure=given_up)
    ) == ("given up (deadline)")


def test_numbers_in_words() -> None:
    assert [listed(places) for places in ([], [0], [2, 0], [4, 0, 1])] == [
        "",
        "1",
        "1 and 3",
        "1, 2 and 5",
    ]
    assert [count(n, "turn") for n in (0, 1, 1200)] == ["0 turns", "1 turn", "1,200 turns"]


def test_pictures_escape_their_texts_and_stay_inside() -> None:
    drawn = [
        pictures.meter(7.0, "good", '"><script>', mark=2.0),
        pictures.balance(-3.0, 0.0, "<b>"),
        pictures.columns([], [], "nothing"),
        pictures.columns([3.0, 0.0], ["<i>", "b"], "two"),
        pictures.glyph({0, 40}, ["good"] * 30, "thirty"),
        pictures.matrix(2, []),
    ]

    roots = [fromstring(picture) for picture in drawn]  # noqa: S314  # made here

    assert all(root.get("viewBox") for root in roots)
    assert not any("<script>" in picture or "<b>" in picture for picture in drawn)
    widths = [float(rect.get("width", "0")) for rect in roots[0]]
    assert max(widths) <= 100
