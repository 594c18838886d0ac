"""Bayes adaptive: ask what halves the posterior over fault structures, then verify.

The prior (``assay.guards.clearing.structures.prior``) is over kinds of structure, not over any
benchmark's mix. Contexts that no enumerated structure fits are handed to CORE-GROW with all the
evidence gathered; so are sets of candidates too many to enumerate.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay.guards.clearing.answers import Answers, Notebook
from assay.guards.clearing.core_grow import from_findings
from assay.guards.clearing.findings import Findings
from assay.guards.clearing.posterior import Draws, Posterior, space_of
from assay.guards.clearing.probes import Batch, Clearing, Search, anytime
from assay.guards.clearing.structures import Formula, PriorName, deletions
from assay.guards.coalitions import (
    Coalition,
    Utilities,
    coalition_of,
    grand,
    members,
    without,
)

CONTEXTS = 256
"""Contexts among which the next batch is chosen; all of them up to eight candidates."""

HYPOTHESES = 384
"""Hypotheses drawn to foresee how contexts will turn out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to ask.

    Attributes:
        batch: Questions of one stage; more cost evaluations and save rounds.
        prior: Which prior over structures.
        confidence: Posterior probability at which the harmful set is believed and verified.
        patience: Most stages of questions before the evidence goes to CORE-GROW.
        misfit: Probability that no structure fits, at which the evidence goes to CORE-GROW.
    """

    batch: int = 1
    prior: PriorName = "even"
    confidence: float = 0.99
    patience: int = 100
    misfit: float = 0.5


def adaptive(
    n: int, answers: Answers, rng: np.random.Generator, policy: Policy | None = None
) -> Search:
    """Search for the harmful candidates by Bayesian experiments.

    Args:
        n: Number of candidates; beyond about 50 CORE-GROW takes over from the start.
        answers: How noisy the answers are; gives the likelihood of an answer.
        rng: Draws contexts and hypotheses.
        policy: How to ask; the default is one question at a time.
    """
    findings = Findings(n, Notebook(answers))
    return anytime(_adaptive(findings, rng, policy or Policy()), findings.best)


def _adaptive(findings: Findings, rng: np.random.Generator, policy: Policy) -> Search:
    n, book = findings.n, findings.book
    space = space_of(n, policy.prior)
    if (yield from findings.grand_is_right()):
        return findings.clean()
    if space is None or n == 0:
        return (yield from from_findings(findings, rng))
    posterior = _Learner(Posterior(n, space), book)
    for _ in range(policy.patience):
        posterior.learn()
        if posterior.belief.misfit > policy.misfit:
            break
        if posterior.belief.hopeless() > policy.confidence:
            return findings.unrecovered()
        found = yield from _propose(findings, posterior.belief, policy)
        if found is not None:
            return found
        posterior.learn()
        batch = _next_batch(posterior.belief, findings, rng, policy)
        if not batch:
            break
        yield from book.ask(batch)
    return (yield from from_findings(findings, rng))


class _Learner:
    """Feeds the notebook's evidence to the posterior once."""

    def __init__(self, belief: Posterior, book: Notebook) -> None:
        self.belief = belief
        self._book = book
        self._seen: dict[Coalition, float] = {}

    def learn(self) -> None:
        for context, log_odds in self._book.evidence.items():
            news = log_odds - self._seen.get(context, 0.0)
            if news:
                self.belief.observe(context, news)
                self._seen[context] = log_odds


def _propose(
    findings: Findings, posterior: Posterior, policy: Policy
) -> Generator[Batch, Utilities, Clearing | None]:
    """Verify the most probable harm's smallest withholdings, once it is believed."""
    belief = posterior.belief()
    if belief.mass < policy.confidence or not belief.harm.mentioned:
        return None
    blame = posterior.blame()
    findings.flagged = sorted(members(belief.harm.mentioned), key=lambda i: -blame[i])
    for cleared in _by_evidence(findings, belief.harm):
        if (yield from findings.try_clearing(cleared)):
            return _with_order(findings.recovered(cleared), findings, blame)
    return None


def _by_evidence(findings: Findings, harm: Formula) -> list[Coalition]:
    everyone = grand(findings.n)
    evidence = findings.book.evidence
    return sorted(deletions(harm), key=lambda cleared: -evidence.get(without(everyone, cleared), 0))


def _with_order(clearing: Clearing, findings: Findings, blame: npt.NDArray[np.float64]) -> Clearing:
    rest = [int(i) for i in np.argsort(-blame, kind="stable") if i not in findings.flagged]
    return Clearing(
        flagged=clearing.flagged,
        cleared=clearing.cleared,
        order=(*findings.flagged, *rest),
        certificate=clearing.certificate,
        unmeasured=clearing.unmeasured,
        tested=clearing.tested,
    )


def _next_batch(
    posterior: Posterior, findings: Findings, rng: np.random.Generator, policy: Policy
) -> list[Coalition]:
    """The contexts whose outcomes, foreseen together, split the drawn hypotheses most evenly."""
    draws = posterior.draw(HYPOTHESES, rng)
    contexts = _pool(posterior, findings, draws, rng)
    if not contexts:
        return []
    outcomes = posterior.predict(contexts, draws)
    pattern = np.zeros(outcomes.shape[1], dtype=np.int64)
    chosen: list[Coalition] = []
    for _ in range(policy.batch):
        gains = _entropies(pattern, outcomes)
        best = int(gains.argmax())
        chosen.append(contexts[best])
        pattern = pattern * 2 + outcomes[best]
        pattern = np.unique(pattern, return_inverse=True)[1]
    return chosen if findings.book.answers.kind != "deterministic" else list(dict.fromkeys(chosen))


def _entropies(
    pattern: npt.NDArray[np.int64], outcomes: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Entropy of the pattern so far joined with each context's outcome, shape ``(m,)``, nats."""
    cells = int(pattern.max()) + 1
    indicator = np.zeros((pattern.shape[0], cells))
    indicator[np.arange(pattern.shape[0]), pattern] = 1.0
    right = outcomes.astype(np.float64) @ indicator
    wrong = indicator.sum(axis=0)[None, :] - right
    shares = np.concatenate([right, wrong], axis=1) / pattern.shape[0]
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1))


def _pool(
    posterior: Posterior, findings: Findings, draws: Draws, rng: np.random.Generator
) -> list[Coalition]:
    """Contexts worth asking: all of a small game, else ones that likely hypotheses suggest."""
    n = findings.n
    if 1 << n <= CONTEXTS:
        pool: Sequence[Coalition] = [Coalition(bits) for bits in range(1 << n)]
    else:
        pool = _suggested(posterior, draws, n, rng)
    if findings.book.answers.kind == "deterministic":
        return [context for context in pool if context not in findings.book.draws]
    return list(pool)


def _suggested(
    posterior: Posterior, draws: Draws, n: int, rng: np.random.Generator
) -> list[Coalition]:
    """For drawn hypotheses: their gold with part of the rest, their harm left out or in part."""
    step = max(1, draws.golds.shape[0] * 3 // CONTEXTS)
    some = Draws(draws.golds[::step], draws.harms[::step])
    everyone = grand(n)
    pool: dict[Coalition, None] = {}
    for gold, harm in posterior.hypotheses(some):
        part = coalition_of(int(i) for i in np.flatnonzero(rng.random(n) < rng.random()))
        pool[Coalition(gold | part & ~harm)] = None
        pool[without(everyone, harm)] = None
        pool[Coalition(gold | part)] = None
    return list(pool)
