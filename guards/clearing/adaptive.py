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


GOAL = 1.0
"""Weight of what an answer tells about the harmful set, beside what it tells about the structure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to ask.

    Attributes:
        batch: Questions of one stage; more cost evaluations and save rounds.
        prior: Which prior over structures.
        worth_verifying: Posterior probability of a harmful set at which its withholding is verified.
        confidence: Posterior probability, verification included, at which it is believed.
        resignation: Probability that no subset does the task, at which the search gives up.
        patience: Most stages of questions before the evidence goes to CORE-GROW.
        misfit: Probability that no structure fits, at which the evidence goes to CORE-GROW.
    """

    batch: int = 1
    prior: PriorName = "simple"
    worth_verifying: float = 0.8
    confidence: float = 0.98
    resignation: float = 0.9999
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
    space = space_of(n, policy.prior) if n else None
    yield from book.ask([grand(n)])
    if book.is_right(grand(n)) and (yield from book.verify(grand(n))):
        return findings.clean()
    if space is None:
        return (yield from from_findings(findings, rng))
    learner = _Learner(Posterior(n, space), book)
    for _ in range(policy.patience):
        belief = learner.learn()
        if belief.misfit > policy.misfit:
            break
        if belief.hopeless() > policy.resignation:
            return findings.unrecovered()
        found = yield from _propose(findings, learner, policy)
        if found is not None:
            return found
        batch = _next_batch(learner.learn(), findings, rng, policy)
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

    def learn(self) -> Posterior:
        for context, log_odds in self._book.evidence.items():
            news = log_odds - self._seen.get(context, 0.0)
            if news:
                self.belief.observe(context, news)
                self._seen[context] = log_odds
        return self.belief


def _propose(
    findings: Findings, learner: _Learner, policy: Policy
) -> Generator[Batch, Utilities, Clearing | None]:
    """Verify the likeliest harm's smallest withholding; done once it is believed after that.

    Verification is worth its price early: its draws, all fresh, are evidence about the harm, too.
    """
    best = learner.belief.belief()
    if best.mass < policy.worth_verifying:
        return None
    cleared = _by_evidence(findings, best.harm)[0]
    if without(grand(findings.n), cleared) not in findings.book.verified:
        if not (yield from findings.try_clearing(cleared)):
            return None
        again = learner.learn().belief()
        if again.harm.mentioned != best.harm.mentioned:
            return None
        best = again
    if best.mass < policy.confidence:
        return None
    if not cleared:
        return findings.clean()
    blame = learner.belief.blame()
    findings.flagged = sorted(members(best.harm.mentioned), key=lambda i: -blame[i])
    return _with_order(findings.recovered(cleared), findings, blame)


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
    """The contexts whose answers, foreseen together, tell most about the drawn hypotheses."""
    draws = posterior.draw(HYPOTHESES, rng)
    contexts = _pool(posterior, findings, draws, rng)
    if not contexts:
        return []
    right, wrong = findings.book.answers.chances
    chances = np.where(posterior.predict(contexts, draws), right, wrong)
    noise = -(chances * np.log(chances) + (1 - chances) * np.log(1 - chances)).mean(axis=1)
    noise = noise + GOAL * _blurred(chances, posterior.blamed(draws))
    foreseen = np.ones((chances.shape[1], 1))
    chosen: list[Coalition] = []
    for _ in range(policy.batch):
        news = _entropies(foreseen, chances) * (1 + GOAL) - noise
        best = int(news.argmax())
        chosen.append(contexts[best])
        win = chances[best][:, None]
        foreseen = np.concatenate([foreseen * win, foreseen * (1 - win)], axis=1)
    return chosen


def _entropies(
    foreseen: npt.NDArray[np.float64], chances: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Entropy of the answers so far joined with one more context's, shape ``(m,)``, nats.

    Args:
        foreseen: Shape ``(draws, patterns)``: chance of each pattern of answers so far.
        chances: Shape ``(m, draws)``: chance of a right answer on each context.
    """
    right = chances @ foreseen
    wrong = foreseen.sum(axis=0)[None, :] - right
    shares = np.concatenate([right, wrong], axis=1) / foreseen.shape[0]
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1))


def _blurred(
    chances: npt.NDArray[np.float64], blamed: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Entropy left in each context's answer once the harmful set is known, shape ``(m,)``, nats."""
    _, group, counts = np.unique(blamed, return_inverse=True, return_counts=True)
    indicator = np.zeros((blamed.shape[0], counts.shape[0]))
    indicator[np.arange(blamed.shape[0]), group] = 1.0
    win = np.clip(chances @ indicator / counts, 1e-12, 1 - 1e-12)
    entropy = -(win * np.log(win) + (1 - win) * np.log(1 - win))
    return np.asarray(entropy @ counts / blamed.shape[0], dtype=np.float64)


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
