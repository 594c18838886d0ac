"""What a guard asked in one turn, as people can compare it: answers side by side, and as a tree."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.guards.coalitions import Coalition, coalition_of, grand, is_subset, members, size
from assay.guards.outcomes import decode_answer
from assay.guards.protocols import Completion
from assay.guards.trace import Intervention
from assay.guards.values import normalised
from assay.stores.records import RecordId

_MOST_GROUPS = 6


class Asked(NamedTuple):
    """One question to the model and what came of it.

    Attributes:
        key: Of the answer in the cache.
        coalition: Candidates shown, by place in the decision.
        words: The coalition in words, and how it was shown.
        answer: What the model said; ``None`` where no answer is kept.
        group: 0 for the answer with every candidate, then 1, 2, ... in order of appearance; -1
            without an answer.
        is_plain: Shown as the reply's prompt shows records, first draw.
    """

    key: str
    coalition: Coalition
    words: str
    answer: str | None
    group: int
    is_plain: bool

    @property
    def shown(self) -> frozenset[int]:
        """Places shown, from 0."""
        return frozenset(members(self.coalition))

    @property
    def letter(self) -> str:
        """``A`` for the answer with everything; equal letters, equal answers."""
        if self.group < 0:
            return "\N{EN DASH}"
        return chr(ord("A") + self.group) if self.group < 26 else str(self.group + 1)  # noqa: PLR2004  # letters

    @property
    def colour(self) -> str:
        """Class of its colour; groups beyond the palette share the last one."""
        return "none" if self.group < 0 else f"group-{min(self.group, _MOST_GROUPS - 1)}"


class Branch(NamedTuple):
    """A node of the deletion tree.

    Attributes:
        asked: The context.
        removed: Places left out, compared with the branch above.
        is_changed: Whether the answer differs from the one above.
        branches: Contexts that leave out more.
    """

    asked: Asked
    removed: tuple[int, ...]
    is_changed: bool
    branches: "tuple[Branch, ...]"


def asked_of(
    interventions: Sequence[Intervention],
    places: Mapping[RecordId, int],
    answers: Mapping[str, bytes],
) -> list[Asked]:
    """What was asked, in order.

    Args:
        interventions: As the journal has them.
        places: Of each candidate in the decision, from 0.
        answers: Values of the cache, by key; one that was erased or never kept is missing.
    """
    n = len(places)
    texts = {i.key: _text(answers[i.key]) for i in interventions if i.key in answers}
    groups = _groups(interventions, texts, n)
    found: list[Asked] = []
    for intervention in interventions:
        coalition = coalition_of(places[r] for r in intervention.shown if r in places)
        text = texts.get(intervention.key)
        found.append(
            Asked(
                key=intervention.key,
                coalition=coalition,
                words=_words(coalition, n) + _manner(intervention),
                answer=text,
                group=-1 if text is None else groups[normalised(text)],
                is_plain=intervention.rendering == "plain" and intervention.draw == 0,
            )
        )
    return found


def deletion_tree(asked: Sequence[Asked], n: int) -> Branch | None:
    """The contexts asked plainly, each below the smallest asked context that holds all of it.

    Args:
        asked: In the order asked; of equally small contexts the first one asked is the parent.
        n: Number of candidates.

    Returns:
        ``None`` if the context with every candidate was not asked, or nothing was left out.
    """
    plain = list({a.coalition: a for a in asked if a.is_plain}.values())
    root = next((a for a in plain if a.coalition == grand(n)), None)
    if root is None or len(plain) < 2:  # noqa: PLR2004  # a tree has a branch
        return None
    below: dict[Coalition, list[Asked]] = {}
    for each in plain:
        if each is not root:
            below.setdefault(_parent(each, plain).coalition, []).append(each)
    return _branch(root, None, below)


def _branch(
    asked: Asked, above: Asked | None, below: Mapping[Coalition, Sequence[Asked]]
) -> Branch:
    removed = members(Coalition(above.coalition & ~asked.coalition)) if above else []
    return Branch(
        asked=asked,
        removed=tuple(removed),
        is_changed=above is not None and asked.group != above.group,
        branches=tuple(_branch(a, asked, below) for a in below.get(asked.coalition, ())),
    )


def _parent(asked: Asked, among: Iterable[Asked]) -> Asked:
    larger = (
        a
        for a in among
        if a.coalition != asked.coalition and is_subset(asked.coalition, a.coalition)
    )
    return min(larger, key=lambda a: size(a.coalition))


def _text(value: bytes) -> str:
    if value[:1] != b"{":
        return f"log-likelihood {float(value):.3f}"
    answer = decode_answer(value, likelihood=False)
    assert isinstance(answer, Completion)  # noqa: S101  # what is not a number is a completion
    calls = [f"{call.name}({call.arguments})" for call in answer.tool_calls]
    return answer.text or "; ".join(calls)


def _groups(
    interventions: Sequence[Intervention], texts: Mapping[str, str], n: int
) -> dict[str, int]:
    """A number for each distinct answer; the one with every candidate has 0."""
    everything = [i for i in interventions if len(i.shown) == n and i.rendering == "plain"]
    groups: dict[str, int] = {}
    for intervention in [*everything[:1], *interventions]:
        if intervention.key in texts:
            groups.setdefault(normalised(texts[intervention.key]), len(groups))
    return groups


def _words(coalition: Coalition, n: int) -> str:
    shown = members(coalition)
    if len(shown) == n:
        return "everything"
    if not shown:
        return "no memory"
    if 2 * len(shown) > n:
        return "without " + _listed(i for i in range(n) if i not in set(shown))
    return "only " + _listed(shown)


def _listed(places: Iterable[int]) -> str:
    *first, last = [str(place + 1) for place in places]
    return f"{', '.join(first)} and {last}" if first else last


def _manner(intervention: Intervention) -> str:
    manner = "" if intervention.rendering == "plain" else f", as {intervention.rendering}"
    return manner + (f", draw {intervention.draw + 1}" if intervention.draw else "")
