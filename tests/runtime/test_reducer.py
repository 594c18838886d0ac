import random

from hypothesis import given
from hypothesis import strategies as st

from assay.guards.protocols import Ledger
from assay.runtime.commands import AnyCommand, Complete, Remember, Retrieve, Review
from assay.runtime.events import AnyEvent, TurnCancelled, decode, encode
from assay.runtime.reducer import State, rebuild, reduce
from assay.stores.records import TurnId

from .journals import (
    DECISION,
    FOUND,
    RESULT,
    carried_out,
    failed,
    message,
    play,
    results,
    with_tools,
)
from .support import NOW


def commands_of(events: list[AnyEvent]) -> list[AnyCommand | None]:
    state, commands = State(), list[AnyCommand | None]()
    for event in events:
        state, command = reduce(state, event)
        commands.append(command)
    return commands


def conversation() -> list[AnyEvent]:
    """Two plain turns around one with a tool call."""
    state, first = play(State(), message(0))
    state, second = play(state, message(1), with_tools)
    state, answered = play(state, results(1))
    _, third = play(state, message(2))
    return [*first, *second, *answered, *third]


def test_a_turn_is_a_straight_line() -> None:
    _, events = play(State(), message())

    kinds = [type(command) for command in commands_of(events)]

    assert kinds == [Retrieve, Review, Complete, Remember, type(None)]


def test_commands_carry_what_their_handlers_need() -> None:
    state, command = reduce(State(), message())
    assert isinstance(command, Retrieve)
    assert command.text == "I live in Porto."

    state, command = reduce(state, carried_out(command))
    assert isinstance(command, Review)
    assert command.found == FOUND

    state, command = reduce(state, carried_out(command))
    assert isinstance(command, Complete)
    assert (command.decision, command.spent) == (DECISION, DECISION.spent)

    state, command = reduce(state, carried_out(command))
    assert isinstance(command, Remember)
    assert (command.reply, command.position, command.said_at) == ("Noted.", 0, NOW)


def test_a_finished_turn_leaves_nothing_pending() -> None:
    state, _ = play(State(), message())

    assert (state.open, state.pending, state.messages, state.archived) == (None, None, 1, 2)


def test_the_next_turn_knows_the_last_decision() -> None:
    state, _ = play(State(), message(0))

    state, command = reduce(state, message(1))
    assert command is not None
    state, command = reduce(state, carried_out(command))

    assert isinstance(command, Review)
    assert command.last_decision == DECISION


def test_tool_calls_wait_for_their_results() -> None:
    state, _ = play(State(), message(), with_tools)
    assert state.pending is None
    assert state.open is not None

    state, command = reduce(state, results())

    assert isinstance(command, Complete)
    assert (command.exchange, command.results) == (1, ((RESULT,),))
    assert command.spent == DECISION.spent + Ledger(live=1)


def test_results_are_remembered_with_their_call() -> None:
    state, _ = play(State(), message(), with_tools)

    state, command = reduce(state, results())
    assert command is not None
    state, command = reduce(state, carried_out(command))

    assert isinstance(command, Remember)
    assert (command.results, command.position) == ((RESULT,), 2)


def test_a_new_message_drops_calls_that_were_never_answered() -> None:
    state, _ = play(State(), message(0), with_tools)

    state, command = reduce(state, message(1))

    assert isinstance(command, Retrieve)
    assert reduce(state, results(0)).command is None


def test_results_nobody_awaits_change_nothing() -> None:
    state, _ = play(State(), message())

    assert reduce(state, results()) == (state, None)


def test_results_of_another_turn_change_nothing() -> None:
    state, _ = play(State(), message(), with_tools)

    assert reduce(state, results(5)) == (state, None)


def test_a_message_during_a_turn_changes_nothing() -> None:
    state, _ = reduce(State(), message(0))

    assert reduce(state, message(1)) == (state, None)


def test_a_failed_command_ends_the_turn_and_keeps_what_was_said() -> None:
    state, command = reduce(State(), message())
    assert command is not None
    failure = failed(command)

    state, command = reduce(state, failure)
    assert isinstance(command, Remember)
    assert (command.text, command.reply, command.found) == ("I live in Porto.", "", ())
    state, command = reduce(state, carried_out(command))

    assert command is None
    assert (state.open, state.failure) == (None, failure)


def test_a_failed_completion_keeps_the_tool_results() -> None:
    state, _ = play(State(), message(), with_tools)
    state, command = reduce(state, results())
    assert command is not None

    state, command = reduce(state, failed(command))

    assert isinstance(command, Remember)
    assert (command.results, command.found) == ((RESULT,), FOUND)


def test_a_failed_remembering_ends_the_turn_with_the_first_failure() -> None:
    state, command = reduce(State(), message())
    assert command is not None
    first = failed(command)
    state, command = reduce(state, first)
    assert command is not None

    state, command = reduce(state, failed(command))

    assert command is None
    assert (state.open, state.pending, state.failure) == (None, None, first)


def test_a_cancelled_turn_is_over() -> None:
    state, _ = reduce(State(), message())

    state, command = reduce(state, TurnCancelled(turn_id=TurnId("s/0"), at=NOW, reason="cancelled"))

    assert (command, state.pending) == (None, None)


def test_a_failure_of_an_earlier_turn_changes_nothing() -> None:
    _, command = reduce(State(), message(0))
    assert command is not None
    state, _ = play(State(), message(0))
    state, _ = reduce(state, message(1))

    assert reduce(state, failed(command)) == (state, None)


def test_a_failure_after_the_turn_changes_nothing() -> None:
    _, command = reduce(State(), message(0))
    assert command is not None
    state, _ = play(State(), message(0))

    assert reduce(state, failed(command)) == (state, None)


def test_an_event_of_another_command_changes_nothing() -> None:
    _, events = play(State(), message())
    state, _ = reduce(State(), message())

    assert reduce(state, events[2]) == (state, None)


@given(st.integers(min_value=0, max_value=17))
def test_any_prefix_replays_to_the_same_next_command(cut: int) -> None:
    events = conversation()
    commands = commands_of(events)

    state = rebuild(decode(encode(event)) for event in events[: cut + 1])

    assert state.pending == commands[cut]


@given(st.lists(st.integers(min_value=1, max_value=4), min_size=18, max_size=18), st.randoms())
def test_second_deliveries_change_nothing(times: list[int], rng: random.Random) -> None:
    events = conversation()
    seen: list[AnyEvent] = []
    delivered: list[AnyEvent] = []
    for event, count in zip(events, times, strict=True):
        seen.append(event)
        delivered += [event, *rng.choices(seen, k=count - 1)]

    assert rebuild(delivered) == rebuild(events)


def test_events_survive_the_journal() -> None:
    events = conversation()

    assert [decode(encode(event)) for event in events] == events


def test_a_cancellation_of_another_turn_changes_nothing() -> None:
    state, _ = reduce(State(), message())
    other = TurnCancelled(turn_id=TurnId("s/9"), at=NOW, reason="deadline")

    assert reduce(state, other) == (state, None)
