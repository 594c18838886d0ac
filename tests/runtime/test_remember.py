from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.protocols import ToolCall
from assay.runtime.commands import Remember, ToolResult
from assay.runtime.remember import Leavings, ids_from, leavings, turn_of
from assay.runtime.statements import LONGEST, MOST, statements
from assay.stores.records import Namespace, SessionId, TurnId

from .support import NOW

RESULT = ToolResult(call=ToolCall(id="c", name="search", arguments='{"q": "x"}'), output="found")


def exchange(
    text: str, *, reply: str = "Noted.", number: int = 0, results: tuple[ToolResult, ...] = ()
) -> Remember:
    return Remember(
        turn_id=TurnId("s/0"),
        exchange=number,
        text=text,
        said_at=NOW,
        at=NOW + timedelta(seconds=2),
        position=4,
        found=(),
        reply=reply,
        results=results,
    )


def left(command: Remember, recalled: tuple[str, ...] = ()) -> Leavings:
    return leavings(command, namespace=Namespace("u1"), session=SessionId("s"), recalled=recalled)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("My cat is called Tom. What's the weather?", ["My cat is called Tom."]),
        ("I have a cat. It is grey.", ["I have a cat. It is grey."]),
        ("I like tea. How about you? It is strong.", ["I like tea.", "It is strong."]),
        ("I like tea. I live in Porto.", ["I like tea.", "I live in Porto."]),
        ("remember that my rent is 400 euros", ["my rent is 400 euros"]),
        ("Please remember: the code is 4411", ["the code is 4411"]),
        ("Dr. Smith is my dentist.", ["Dr. Smith is my dentist."]),
        ("when i was five i moved to rome", ["when i was five i moved to rome"]),
        ("Will is my brother", ["Will is my brother"]),
        ("I'm vegan", ["I'm vegan"]),
        ("\u6211\u4f4f\u5728\u5317\u4eac\u3002", ["\u6211\u4f4f\u5728\u5317\u4eac\u3002"]),
    ],
)
def test_statements_are_kept(text: str, kept: list[str]) -> None:
    assert statements(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "what is my name",
        "is this right",
        "Can you help me",
        "Could you please list my appointments for Friday",
        "Tell me a joke about cats",
        "please explain the second law to me",
        "thanks a lot!",
        "Good morning! How are you",
        "ok",
        "Remember?",
        "well, okay",
        "\u4f60\u597d\u5417\uff1f",
        "...",
        "",
    ],
)
def test_questions_requests_and_small_talk_are_not(text: str) -> None:
    assert statements(text) == []


def test_no_statement_is_lost_when_there_are_many() -> None:
    text = " ".join(f"I own {n} blue marbles." for n in range(20))

    found = statements(text)

    assert len(found) == MOST
    assert " ".join(found) == text


def test_an_endless_statement_is_cut_visibly() -> None:
    [statement] = statements("I own " + "very " * 1000 + "old marbles.")

    assert len(statement) <= LONGEST
    assert statement.endswith(" [cut]")


@given(st.text(max_size=200))
def test_any_text_gives_statements_that_can_be_stored(text: str) -> None:
    found = statements(text)

    assert len(found) <= MOST
    assert all(statement.strip() for statement in found)


def test_a_statement_is_the_users_and_names_its_turn() -> None:
    turns, [record] = left(exchange("My cat is called Tom."))

    assert (record.origin.writer, record.origin.channel) == ("user", "chat")
    assert record.origin.source_turn == turns[0].id == "s/0"
    assert record.ingested_at == NOW


def test_both_sides_are_archived_in_order() -> None:
    turns, _ = left(exchange("My cat is called Tom."))

    assert [(turn.speaker, turn.position) for turn in turns] == [("user", 4), ("assistant", 5)]


def test_what_the_assistant_says_is_never_a_record() -> None:
    _, records = left(exchange("What is my cat called?", reply="Your cat is called Tom."))

    assert records == []


def test_what_was_recalled_is_not_remembered_again() -> None:
    _, records = left(exchange("my cat is called TOM"), recalled=("My cat is called Tom.",))

    assert records == []


def test_a_statement_said_twice_in_one_message_is_one_record() -> None:
    _, records = left(exchange("I like green tea. I like green tea!"))

    assert [record.text for record in records] == ["I like green tea."]


def test_a_tool_result_is_the_tools_and_the_user_is_not_archived_again() -> None:
    turns, [record] = left(exchange("Find x for me.", number=1, results=(RESULT,)))

    assert [turn.speaker for turn in turns] == ["tool", "assistant"]
    assert record.text == 'search({"q": "x"}) gave: found'
    assert (record.origin.writer, record.origin.channel) == ("tool", "tool:search")


def test_a_long_tool_result_is_cut_in_the_record_and_whole_in_the_archive() -> None:
    result = ToolResult(call=RESULT.call, output="x" * 5000)

    turns, [record] = left(exchange("Find x.", number=1, results=(result,)))

    assert len(record.text) == LONGEST
    assert turns[0].text.endswith("x" * 5000)


def test_an_empty_reply_is_not_archived() -> None:
    turns, _ = left(exchange("Find x.", reply=""))

    assert [turn.speaker for turn in turns] == ["user"]


def test_carried_out_twice_it_writes_the_same() -> None:
    assert left(exchange("My cat is called Tom.")) == left(exchange("My cat is called Tom."))


def test_the_ids_of_a_turns_records_can_be_told_from_the_turn() -> None:
    turns, records = left(exchange("I like green tea. I live in Porto."))

    assert {record.id for record in records} <= set(ids_from(turns[0]))


def test_every_part_of_a_turn_names_it() -> None:
    turns, _ = left(exchange("Find x.", number=1, results=(RESULT,)))

    assert [turn_of(turn.id) for turn in turns] == ["s/0", "s/0"]
