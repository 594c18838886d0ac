from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from assay.guards.coalitions import Coalition, grand, is_subset, members
from assay.guards.outcomes import encode_answer
from assay.guards.protocols import Completion
from assay.guards.trace import Intervention
from assay.runtime.http.inspector.asked import Asked, Branch, asked_of, deletion_tree
from assay.stores.records import RecordId

N = 4
PLACES = {RecordId(f"m{i}"): i for i in range(N)}


def asking(coalition: int, *, rendering: str = "plain", draw: int = 0) -> Intervention:
    return Intervention(
        key=f"{coalition}/{rendering}/{draw}",
        shown=tuple(RecordId(f"m{i}") for i in members(Coalition(coalition))),
        rendering=rendering,
        draw=draw,
    )


def all_of(branch: Branch) -> Iterator[Branch]:
    yield branch
    for below in branch.branches:
        yield from all_of(below)


def test_equal_answers_have_equal_letters_and_everything_has_the_first() -> None:
    interventions = [asking(0b0001), asking(0b1111), asking(0b0010), asking(0b0100)]
    answers = {
        "1/plain/0": encode_answer(Completion(text="Lisbon")),
        "15/plain/0": encode_answer(Completion(text="Porto")),
        "2/plain/0": encode_answer(Completion(text="porto.")),
    }

    asked = asked_of(interventions, PLACES, answers)

    assert [a.letter for a in asked] == ["B", "A", "A", "–"]  # noqa: RUF001  # the dash shown
    assert [a.words for a in asked] == ["only 1", "everything", "only 2", "only 3"]
    assert asked[3].answer is None


def test_manners_of_asking_are_told() -> None:
    interventions = [asking(0b0111, rendering="paraphrase"), asking(0, draw=2), asking(0b0110)]

    asked = asked_of(interventions, PLACES, {})

    assert [a.words for a in asked] == [
        "without 4, as paraphrase",
        "no memory, draw 3",
        "only 2 and 3",
    ]
    assert [a.is_plain for a in asked] == [False, False, True]


def test_likelihoods_and_tool_calls_are_answers_too() -> None:
    from assay.guards.protocols import ToolCall  # noqa: PLC0415

    call = ToolCall(id="c", name="look", arguments="{}")
    answers = {
        "1/plain/0": encode_answer(-0.25),
        "2/plain/0": encode_answer(Completion(text="", tool_calls=(call,))),
    }

    asked = asked_of([asking(1), asking(2)], PLACES, answers)

    assert [a.answer for a in asked] == ["log-likelihood -0.250", "look({})"]


def test_a_context_hangs_below_the_smallest_one_that_holds_it() -> None:
    interventions = [asking(0b1111), asking(0b0111), asking(0b0011), asking(0b1100), asking(0b0001)]
    answers = {i.key: encode_answer(Completion(text="Porto")) for i in interventions[:4]}
    answers["1/plain/0"] = encode_answer(Completion(text="I do not know"))

    tree = deletion_tree(asked_of(interventions, PLACES, answers), N)

    assert tree is not None
    first, second = tree.branches
    assert (first.removed, second.removed) == ((3,), (0, 1))
    [below] = first.branches
    assert (below.asked.coalition, below.removed, below.is_changed) == (0b0011, (2,), False)
    assert below.branches[0].is_changed


def test_without_the_context_of_everything_there_is_no_tree() -> None:
    assert deletion_tree(asked_of([asking(0b0001), asking(0)], PLACES, {}), N) is None
    assert deletion_tree(asked_of([asking(0b1111)], PLACES, {}), N) is None


@given(st.lists(st.integers(0, 2**N - 1), min_size=1, max_size=12, unique=True))
def test_every_context_asked_is_in_the_tree_once_below_one_that_holds_it(
    coalitions: list[int],
) -> None:
    asked = asked_of([asking(grand(N)), *map(asking, coalitions)], PLACES, {})

    tree = deletion_tree(asked, N)

    nodes = list(all_of(tree)) if tree else []
    assert len(nodes) in {0, len({grand(N), *coalitions})}
    assert {node.asked.coalition for node in nodes} <= {grand(N), *coalitions}
    assert all(holds(node.asked, below.asked) for node in nodes for below in node.branches)


def holds(above: Asked, below: Asked) -> bool:
    return above.coalition != below.coalition and is_subset(below.coalition, above.coalition)
