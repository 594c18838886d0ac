"""Days of simulated users, the files they come from, and how they are played and kept."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScenarioError
from assay.guards.baselines import FullHistory
from assay.runtime.clock import StoppedClock
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.runtime.settings import Settings
from assay.scenarios.playing import play
from assay.scenarios.rollouts import Plant, Question, Rollout, Step, Tell
from assay.scenarios.simulation.days import unfold
from assay.scenarios.simulation.figures import figures, goals, summary
from assay.scenarios.simulation.loading import (
    parse_simulation,
    read_simulation,
    shipped_simulations,
)
from assay.scenarios.simulation.records import Asked, Lived
from assay.scenarios.simulation.running import LIVED_FILE, SimulationFolder, simulate
from assay.scenarios.simulation.voice import spoken, voiced
from assay.stores.embeddings import HashingEmbedder

from .support_simulation import SMALL, record_of, small


async def requests_of(rollout: Rollout) -> list[bytes]:
    """Everything a model is asked when the rollout is played."""
    model = ScriptedModel()
    await play(
        rollout,
        model=model,
        embedder=HashingEmbedder(),
        guard=FullHistory(),
        bank=None,
        settings=Settings(),
        seed=7,
        wall=StoppedClock(),
    )
    return [msgspec.json.encode(request) for request in model.asked]


def without_key(step: Step) -> Step:
    return Question(text=step.text) if isinstance(step, Question) else step


def lived(user: int, agent: int, rights: str, goal: str = "") -> Lived:
    """One user with one agent: ``+`` is a right answer, ``-`` a wrong one."""
    asked = tuple(
        Asked(
            month=0,
            fact="gym",
            goal=goal,
            right=mark == "+",
            channels=("web",),
            adopted=(),
            misled=mark == "-",
            changed=False,
            stale=False,
            useful=True,
            evaluations=1,
            tokens=10,
        )
        for mark in rights
    )
    return Lived(user=user, agent=agent, asked=asked)


# ---- days


@given(st.integers(0, 40), st.integers(0, 2**32))
def test_what_is_right_is_what_the_user_said_last(user: int, seed: int) -> None:
    rollout = unfold(small(), user=user, seed=seed).rollout
    told: dict[str, str] = {}
    for step in rollout.steps():
        if isinstance(step, Tell):
            told |= {n.partition("@")[0]: s for n, s in step.says.items() if "@" in n}
        if isinstance(step, Question):
            fact = step.useful[0].partition("@")[0]
            assert step.accept[0] in told[fact]


@given(st.integers(0, 40), st.integers(0, 2**32))
def test_a_session_has_as_many_turns_as_the_file_says_and_no_name_twice(
    user: int, seed: int
) -> None:
    rollout = unfold(small(), user=user, seed=seed).rollout

    turns = [
        sum(not isinstance(step, Plant) for step in session.step) for session in rollout.session
    ]
    told = [name for step in rollout.steps() if isinstance(step, Tell) for name in step.says]
    names = told + [step.id for step in rollout.steps() if isinstance(step, Plant)]
    assert turns == [6, 6, 6, 6]
    assert len(set(names)) == len(names)


@given(st.integers(0, 40), st.integers(0, 2**32))
def test_poison_never_claims_what_holds_or_held(user: int, seed: int) -> None:
    days = unfold(small(), user=user, seed=seed)

    questions = days.rollout.questions
    assert len(days.notes) == len(questions)
    assert all(
        question.accept[0] not in note.planted
        for question, note in zip(questions, days.notes, strict=True)
    )
    assert all(q.accept[0] not in q.reject for q in questions)


def test_a_question_is_about_what_was_told_in_an_earlier_session() -> None:
    sessions = unfold(small(), user=0, seed=7).rollout.session
    seen: set[str] = set()

    for session in sessions:
        asked = {q.useful[0] for q in session.step if isinstance(q, Question)}
        assert asked <= seen
        seen |= {n for s in session.step if isinstance(s, Tell) for n in s.says}


def test_the_same_seed_gives_the_same_days_and_another_one_others() -> None:
    first = unfold(small(), user=1, seed=7)

    assert unfold(small(), user=1, seed=7) == first
    assert unfold(small(), user=1, seed=8) != first
    assert unfold(small(), user=2, seed=7) != first


def test_fewer_sessions_are_the_first_ones() -> None:
    whole = unfold(small(), user=0, seed=7).rollout
    part = unfold(small(), user=0, seed=7, sessions=2).rollout

    assert part.session == whole.session[:2]


def test_what_comes_in_bears_its_true_origin() -> None:
    days = unfold(small(), user=0, seed=7)

    plants = {step.id: step for step in days.rollout.steps() if isinstance(step, Plant)}
    assert {(p.writer, p.channel) for p in plants.values()} == {
        ("external", "web"),
        ("tool", "tool:search"),
    }
    through_chat = [name for name, channel in days.channels.items() if channel == "planted_turn"]
    assert through_chat
    assert not set(through_chat) & set(plants)


# ---- agents see no key


async def test_no_expected_answer_reaches_an_agent() -> None:
    rollout = unfold(small(), user=0, seed=7).rollout
    bare = msgspec.structs.replace(
        rollout,
        session=tuple(
            msgspec.structs.replace(s, step=tuple(map(without_key, s.step)))
            for s in rollout.session
        ),
    )

    assert bare != rollout
    assert await requests_of(bare) == await requests_of(rollout)


# ---- the user's words


async def test_a_user_model_says_the_same_in_other_words() -> None:
    days = unfold(small(), user=0, seed=7)
    [sentence, *_] = [s for s in days.values if s.startswith("My doctor")]
    value = days.values[sentence]
    model = ScriptedModel(
        [
            Rule(question="^My doctor", reply=f"The doctor I see is Dr. {value}."),
            Rule(question="^Who is my doctor", reply="Which doctor do I see?"),
            Rule(question="^On which day", reply="It is Monday."),
            Rule(question="^I go to the gym", reply="I go to the gym."),
        ]
    )

    lines = await voiced(days, model, seed=7)

    assert lines == {
        sentence: f"The doctor I see is Dr. {value}.",
        "Who is my doctor?": "Which doctor do I see?",
    }
    said = spoken(days, lines).rollout
    assert f"The doctor I see is Dr. {value}." in [
        s for step in said.steps() if isinstance(step, Tell) for s in step.says.values()
    ]
    assert len(said.questions) == len(days.rollout.questions)


# ---- running


def test_an_interrupted_simulation_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    record = record_of(small())
    whole, halved = SimulationFolder(tmp_path / "whole"), SimulationFolder(tmp_path / "halved")
    whole.begin(record)
    expected, _ = simulate(whole, record, workers=1)
    halved.begin(record)
    lines = (whole.path / LIVED_FILE).read_bytes().splitlines(keepends=True)
    # As a kill leaves it: one result missing, another one cut short, the order of arrival.
    (halved.path / LIVED_FILE).write_bytes(lines[3] + lines[0] + lines[1][:40])
    moves: list[int] = []

    halved.begin(record)
    found, _ = simulate(halved, record, workers=1, watch=lambda moved: moves.append(moved.done))

    assert found == expected
    assert (halved.path / LIVED_FILE).read_bytes() == b"".join(lines)
    assert moves == [8, 12, 16]


def test_processes_come_to_the_same_and_say_how_much_memory_they_held(tmp_path: Path) -> None:
    record = record_of(small())
    alone, together = SimulationFolder(tmp_path / "a"), SimulationFolder(tmp_path / "b")
    alone.begin(record)
    together.begin(record)

    found, peak = simulate(together, record, workers=2)

    assert found == simulate(alone, record, workers=1)[0]
    assert peak > 50_000_000
    assert (together.path / LIVED_FILE).read_bytes() == (alone.path / LIVED_FILE).read_bytes()


def test_a_folder_of_another_simulation_is_refused(tmp_path: Path) -> None:
    folder = SimulationFolder(tmp_path)
    folder.begin(record_of(small()))

    with pytest.raises(ScenarioError, match=r"holds another simulation .* choose another folder"):
        folder.begin(record_of(small(), seed=8))


def test_a_failing_turn_says_whose_it_was_and_what_is_done_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('[[rule]]\nquestion = "doctor"\nprompt = "Kim"\nfails = "unavailable"\n')
    simulation = msgspec.structs.replace(small(), model=f"scripted:{script}")
    folder, record = SimulationFolder(tmp_path / "out"), record_of(simulation)
    folder.begin(record)

    with pytest.raises(ScenarioError, match=r"user \d, agent '.*': .*unavailable"):
        simulate(folder, record, workers=1)

    assert all(one.user == 0 for one in folder.lived())


def test_a_user_model_is_asked_once_for_all_agents_and_never_again(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(
        '[[rule]]\nquestion = "^Who is my doctor"\nreply = "Which doctor do I see?"\n'
    )
    simulation = msgspec.structs.replace(small(), user_model=f"scripted:{script}")
    folder, record = SimulationFolder(tmp_path / "out"), record_of(simulation)
    folder.begin(record)
    moves: list[tuple[str, int]] = []

    first, _ = simulate(
        folder, record, workers=1, watch=lambda moved: moves.append((moved.what, moved.done))
    )
    (folder.path / LIVED_FILE).unlink()
    again, _ = simulate(
        folder, record, workers=1, watch=lambda moved: moves.append((moved.what, moved.done))
    )

    assert again == first
    assert "Which doctor do I see?" in [told.question for told in first[0].told]
    assert [move for move in moves if move[0] == "users' words"] == [
        ("users' words", 1),
        ("users' words", 2),
    ]


# ---- figures


def test_figures_count_pairs_goals_and_only_users_that_all_agents_have_lived_through() -> None:
    record = record_of(small())
    days = [
        *(lived(0, 0, "+++-", "get fit#1"), lived(0, 1, "+---")),
        *(lived(1, 0, "++++", "get fit#1"), lived(1, 1, "--++")),
        lived(2, 0, "----"),
    ]

    found = figures(days, record.config)

    careful, bare = found["careful"], found["no guard"]
    assert careful.measures["accuracy"].mean == pytest.approx(7 / 8)
    assert bare.measures["misled"].mean == pytest.approx(5 / 8)
    assert careful.measures["goals_reached"].mean == pytest.approx(1 / 2)
    assert careful.against is None
    assert bare.against is not None
    assert (bare.against.only_first, bare.against.only_this) == (4, 0)
    assert bare.against.accuracy.mean == pytest.approx(1 / 2)
    assert bare.against.p_mcnemar == pytest.approx(2 * 0.5**4)
    assert summary(record, days)["users"] == 2
    assert summary(record, days)["finished"] is True
    assert summary(record, days[:2])["finished"] is False


def test_a_goal_needs_every_answer() -> None:
    assert goals(lived(0, 0, "++", "g#1")) == [1.0]
    assert goals(lived(0, 0, "+-", "g#1")) == [0.0]
    assert goals(lived(0, 0, "+-")) == []


# ---- files


@pytest.mark.parametrize("name", shipped_simulations())
def test_a_shipped_simulation_can_be_lived_and_uses_every_kind_of_poison_it_names(
    name: str,
) -> None:
    simulation, _ = read_simulation(name)
    days = [unfold(simulation, user=user, seed=7) for user in range(4)]

    channels = {channel for one in days for channel in one.channels.values()}
    assert channels == {i.channel for i in simulation.inject if i.what == "poison"}
    assert all(len(one.rollout.session) == simulation.sessions for one in days)
    assert simulation.sessions * simulation.users >= 480


def test_three_simulations_ship() -> None:
    assert shipped_simulations() == ["coding_agent", "personal_assistant", "support_desk"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "changes = 3",
            "chnages = 3",
            r"line 25: unknown field 'chnages' .*did you mean 'changes'",
        ),
        ("turns = 6", "truns = 6", r"line 7: unknown field 'truns'; did you mean 'turns'"),
        ("rate = 0.5", "rate = 2.5", r"line 43: expected float <= 1"),
        ('channel = "web"', 'channel = "fax"', r"line 42: invalid enum value 'fax'"),
        ('needs = ["doctor", "gym"]', 'needs = ["gymn"]', r"line 37: .*did you mean 'gym'"),
        ('guard = "cmi"', 'guard = "panle"', r"line 13: no method 'panle'; did you mean panel"),
        ('name = "no guard"', 'name = "careful"', r"line 16: expected distinct names"),
        ("gym on {value}.", "gym.", r"line 21: expected one statement with \{value\}"),
        ("the gym?", "the gym", r"line 23: expected a question that ends with '\?'"),
        ("stew in {town}", "stew in {twon}", r"line 57: unknown placeholder .*did you mean 'town'"),
        ("T18:00:00Z", "T18:00:00", r"line 3: expected a start with an offset"),
        ('texts = ["The weather in {town} is mild."]', "", r"expected texts of the noise"),
        ("turns = 6", "turns = 1", r"line 7: expected more turns per session than the 1 that may"),
        ("turns = 6", "turns = 3", r"line 37: goal 'get fit' takes 3 turns, but a session has 2"),
        ("title =", "title", r"expected TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_simulation(Path("small.toml"), SMALL.replace(old, new).encode())


def test_an_unknown_name_gets_the_nearest_shipped_one() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'support_desk'"):
        read_simulation("suport_desk")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"cannot read .*nowhere.toml"):
        read_simulation(str(tmp_path / "nowhere.toml"))
