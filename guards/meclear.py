"""MeClear live: withhold the smallest set without which the answer is verified to be right again.

Source: "MeClear" (2609.09115); the searches are our own (``assay.guards.clearing``). The value is
blind by default: the share of the answer's own words that archived turns about it contain.
"""

from typing import Literal, TypeAlias

import numpy as np

from assay.errors import BudgetExceeded, GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.clearance import minimal_deletions
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.core_grow import core_grow
from assay.guards.clearing.judging import Cleared, judgements, traced
from assay.guards.clearing.live import Bar, LiveGame
from assay.guards.clearing.measured import own_game
from assay.guards.clearing.pivot import pivot
from assay.guards.clearing.probes import Clearing, Search, conduct
from assay.guards.clearing.published import by_exact_deletion, meclear
from assay.guards.coalitions import EMPTY, Coalition, grand, size, union, without
from assay.guards.intervention import ValueFactory, archive_agreement
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Case, Decision, Experimenter, OnUndecided
from assay.guards.undecided import QUESTION

ClearingSearch: TypeAlias = Literal["auto", "exact", "published"]

PIVOT_UP_TO = 16
"""Candidates up to which ``auto`` pivots on one right core; beyond, it tests groups."""

TABLE_UP_TO = 8
"""Candidates up to which ``exact`` asks every context; beyond, it does as ``auto``."""

PROPOSALS = 3
"""Withholdings verified at most, the search's own first."""

BLAMED_UP_TO = 4
"""Harmful candidates up to which all their combinations are asked, to tell how they interact."""


class MeClear:
    """Clears what makes the answer wrong, for this question only; the bank is untouched.

    Every candidate stays unless withholding it was verified: the context without it reached the bar
    and, asked again by draws that no search has seen, reached it again. Where nothing is verified,
    the context stays as it was. A candidate whose effect could not be measured, where nothing was
    verified, is undecided.

    The bar: a context is right at ``bar.threshold``, and a cleared one has to beat the context with
    every candidate by ``bar.least_gain`` besides. For values that are not 0 or 1 this is a
    convention, not a fact about the answer; the trace shows the utilities beside the bar.

    Args:
        on_undecided: What becomes of candidates nothing was measured about.
        seed: Of the search's own choices.
        search: ``auto``: PIVOT up to 16 candidates (about 10 questions of 5), CORE-GROW beyond.
            ``exact``: every context up to 8 candidates, then the smallest deletion. ``published``:
            16 sampled permutations and the nested filtration, with our verification after it.
        value: Makes the value function of a case.
        bar: When the task counts as done.
        verifications: Independent draws that all have to agree, at least 1. A greedy model tends
            to repeat itself, so there a draw checks the endpoint more than the answer.

    Raises:
        ValueError: If there are fewer than 1 verifications.
    """

    def __init__(  # noqa: PLR0913  # one field each
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        search: ClearingSearch = "auto",
        value: ValueFactory = archive_agreement,
        bar: Bar | None = None,
        verifications: int = 1,
    ) -> None:
        if verifications < 1:
            raise ValueError(f"verifications must be at least 1, got {verifications!r}")
        self._on_undecided: OnUndecided = on_undecided
        self._seed = seed
        self._search: ClearingSearch = search
        self._value = value
        self._bar = bar or Bar()
        self._verifications = verifications

    @property
    def name(self) -> str:
        """``meclear``, or the name of its variant."""
        return "meclear" if self._search == "auto" else f"meclear_{self._search}"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Clear.

        A budget that ends early leaves the best withholding verified by then, and the certificate
        says that it was stopped.

        Raises:
            GuardFailed: If the model gave no answer with all candidates.
        """
        if not case.candidates:
            return Decision(method=self.name, judgements=())
        before = laboratory.ledger()
        game = LiveGame(
            self._value(case, laboratory), laboratory, n=len(case.candidates), bar=self._bar
        )
        found = await self._cleared(game)
        judged = judgements(case, game, found, method=self.name, policy=self._on_undecided)
        unsure = any(not judgement.decided for judgement in judged)
        return Decision(
            method=self.name,
            judgements=judged,
            spent=spent_between(before, laboratory.ledger()),
            certificate=found.words,
            ask=QUESTION if unsure and self._on_undecided == "ask" else "",
            trace=traced(case, game, found),
        )

    async def _cleared(self, game: LiveGame) -> Cleared:
        try:
            outcome = await game.begin()
        except BudgetExceeded:
            return Cleared(certificate="none", stopped=True)
        if not has_answer(outcome) and outcome.log_likelihood is None:
            raise GuardFailed(
                f"the question with all {game.n} records gave no answer: "
                f"{outcome.status}: {outcome.detail}"
            )
        if np.isnan(game.before):
            return Cleared(certificate="none")
        if game.is_clean:
            return Cleared(certificate="clean")
        clearing = await conduct(self._start(game.n), game.ask)
        return await self._verified(game, clearing)

    def _start(self, n: int) -> Search:
        rng = np.random.default_rng([self._seed, n])
        if self._search == "published":
            return meclear(n, rng)
        if self._search == "exact" and n <= TABLE_UP_TO:
            return by_exact_deletion(n)
        return (pivot if n <= PIVOT_UP_TO else core_grow)(n, Answers(), rng)

    async def _verified(self, game: LiveGame, clearing: Clearing) -> Cleared:
        """The first proposal that independent draws confirm; nothing if none."""
        tested = list(clearing.tested)
        stopped = clearing.stopped
        confirmed: Coalition = EMPTY
        for proposal in _proposals(game, clearing):
            if proposal not in tested:
                tested.append(proposal)
            try:
                passed = await game.verify(without(grand(game.n), proposal), self._verifications)
            except BudgetExceeded:
                stopped = True
                break
            if passed:
                confirmed = proposal
                break
        blamed = union(clearing.flagged, confirmed)
        if confirmed:
            await _explain(game, blamed)
        return Cleared(
            certificate="recovered" if confirmed else "none",
            cleared=confirmed,
            blamed=blamed,
            tested=tuple(tested),
            stopped=stopped,
        )


def _proposals(game: LiveGame, clearing: Clearing) -> list[Coalition]:
    """What the search would withhold, then other smallest deletions that recovered when asked."""
    everyone = grand(game.n)
    others = [
        deleted
        for deleted in minimal_deletions(_as_seen(game), game.n)
        if deleted and deleted != clearing.cleared
    ]
    others.sort(key=lambda deleted: -game.known[without(everyone, deleted)])
    return [*([clearing.cleared] if clearing.cleared else []), *others][:PROPOSALS]


def _as_seen(game: LiveGame) -> dict[Coalition, float]:
    worth = np.array(list(game.known.values()), dtype=np.float64)
    return dict(zip(game.known, game.graded(worth).tolist(), strict=True))


async def _explain(game: LiveGame, blamed: Coalition) -> None:
    """Ask what is missing of the game among a few harmful candidates, if the budget allows."""
    if not 1 < size(blamed) <= BLAMED_UP_TO:
        return
    missing = [context for context in own_game(game.n, blamed) if context not in game.known]
    try:
        await game.measure(missing)
    except BudgetExceeded:
        return
