"""Synthetic clearing games: contexts with known evidence and known harm, and how answers scatter.

No text and no model: a game says what a context is worth. Source: "MeClear" (2609.09115) for the mix of
faults; the values are this project's, so that methods can be measured by the thousand.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from assay.errors import ScenarioError
from assay.guards.attribution import membership
from assay.guards.clearance import RIGHT
from assay.guards.clearing.answers import AnswerKind
from assay.guards.clearing.probes import Batch, Probe
from assay.guards.coalitions import Coalition, Utilities, coalition_of

Mix: TypeAlias = Literal["paper", "r3", "r4", "mixed", "vote", "weak", "ungated", "clean"]
MIXES: tuple[Mix, ...] = get_args(Mix)

Structure: TypeAlias = Literal["direct", "redundant", "joint", "mixed", "clean"]
Values: TypeAlias = Literal["veto", "ungated", "weak", "vote"]

PAPER_MIX: tuple[tuple[Structure, int], ...] = (("direct", 375), ("redundant", 285), ("joint", 85))
PAPER_SIZE = 745
CONVERSATIONS = 10
"""Games are dealt to this many groups, for intervals like the paper's."""

BACKGROUND_SD = 0.02

INDEPENDENT = -1
"""Number of the draw that judges a result; no search draws it."""

GRADED: dict[Mix, Values] = {"vote": "vote", "weak": "weak", "ungated": "ungated"}


class Levels(NamedTuple):
    """Values of one game's contexts, in [0, 1].

    Attributes:
        high: Evidence there, no harm active.
        harmed: Some harm active.
        bare: Evidence missing, no harm active.
    """

    high: float
    harmed: float
    bare: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One context with known faults.

    Attributes:
        n: Number of candidates.
        conversation: Group for two-level intervals.
        structure: How the harm works.
        values: How a context's value is made.
        gold: Evidence records.
        any_gold: Any of the evidence suffices; else all of it is needed.
        alone: Harmful records each of which harms alone.
        together: Records that harm only if all are there.
        levels: The values of the three kinds of context.
        effects: Small effect of each record, shape ``(n,)``; 0 except for background.
        seed: Of the answers.
    """

    n: int
    conversation: int
    structure: Structure
    values: Values
    gold: Coalition
    any_gold: bool
    alone: Coalition
    together: Coalition
    levels: Levels
    effects: npt.NDArray[np.float64]
    seed: int

    @property
    def harmful(self) -> Coalition:
        """Every record that takes part in a harm."""
        return Coalition(self.alone | self.together)

    def value(self, coalitions: Sequence[Coalition]) -> Utilities:
        """True value of each context, shape ``(m,)``, in [0, 1]."""
        levels = np.array([self._level(coalition) for coalition in coalitions], dtype=np.float64)
        graded = levels + membership(coalitions, self.n) @ self.effects
        return np.asarray(np.clip(graded, 0.0, 1.0), dtype=np.float64)

    def is_right(self, coalition: Coalition) -> bool:
        """Whether the true value is at least one half."""
        return bool(self.value([coalition])[0] >= RIGHT)

    def _level(self, coalition: Coalition) -> float:
        if self.values == "vote":
            return self._vote(coalition)
        joint_active = self.together and coalition & self.together == self.together
        if coalition & self.alone or joint_active:
            return self.levels.harmed
        gold = coalition & self.gold
        enough = bool(gold) if self.any_gold else gold == self.gold
        return self.levels.high if enough else self.levels.bare

    def _vote(self, coalition: Coalition) -> float:
        gold = (coalition & self.gold).bit_count()
        harm = (coalition & self.alone).bit_count()
        if self.together and coalition & self.together == self.together:
            harm += 1
        return 1.0 / (1.0 + math.exp(-(2.2 + 0.8 * (gold - 1) - 3.0 * harm)))


@dataclass(slots=True)
class Answerer:
    """Answers of a game. Each (context, draw) has one answer, a function of the game's seed.

    Attributes:
        game: Whose values.
        kind: ``deterministic``: the value; ``gaussian``: plus noise, clipped; ``bernoulli``: 0 or 1.
        sd: Standard deviation of gaussian noise.
        asked: Answers given, redraws included.
    """

    game: Game
    kind: AnswerKind
    sd: float = 0.1
    asked: int = field(default=0)

    def __call__(self, probes: Batch) -> Utilities:
        """One utility per probe, shape ``(m,)``."""
        self.asked += len(probes)
        values = self.game.value([probe.coalition for probe in probes])
        if self.kind == "deterministic":
            return np.asarray(values, dtype=np.float64)
        chance = np.array([self._uniforms(p.coalition, p.draw) for p in probes]).reshape(-1, 2)
        if self.kind == "bernoulli":
            return (chance[:, 0] < values).astype(np.float64)
        noise = np.sqrt(-2 * np.log(chance[:, 0])) * np.cos(2 * math.pi * chance[:, 1])
        return np.asarray(np.clip(values + self.sd * noise, 0.0, 1.0), dtype=np.float64)

    def independent(self, coalition: Coalition) -> float:
        """An answer that no search can have drawn."""
        return float(self([Probe(coalition, INDEPENDENT)])[0])

    def _uniforms(self, coalition: Coalition, draw: int) -> tuple[float, float]:
        text = f"{self.game.seed}|{coalition:x}|{draw}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        halves = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
        return (halves[0] + 1) / 2.0**64, halves[1] / 2.0**64


def cohort(size: int, n: int, seed: int, mix: Mix = "paper") -> list[Game]:
    """Games with exactly the mix's shares of structures, in random order.

    Args:
        size: How many games; 745 has exactly 375 direct, 285 redundant and 85 joint.
        n: Candidates per game.
        seed: Equal seeds give equal games.
        mix: ``paper``: one wrong record, two copies, or a joint pair, with a veto; ``vote``,
            ``weak``, ``ungated``: the same faults with other values; ``r3``, ``r4``: that many
            copies; ``mixed``: one wrong record and a joint pair; ``clean``: no fault.

    Raises:
        ScenarioError: If a structure and its evidence do not fit ``n`` candidates.
    """
    if size < 1:
        raise ScenarioError(f"a cohort needs at least 1 game, got {size!r}")
    rng = np.random.default_rng([seed, n, MIXES.index(mix), 0])
    kinds = _structures(size, mix)
    order = rng.permutation(size)
    return [_game(n, kinds[int(k)], mix, place, seed) for place, k in enumerate(order)]


def _structures(size: int, mix: Mix) -> list[Structure]:
    if mix in {"r3", "r4"}:
        return ["redundant"] * size
    if mix == "mixed":
        return ["mixed"] * size
    if mix == "clean":
        return ["clean"] * size
    return shares(size)


def shares(size: int) -> list[Structure]:
    """The paper's shares of structures, by largest remainder; exact at its own size."""
    exact: list[tuple[Structure, float]] = [
        (kind, size * count / PAPER_SIZE) for kind, count in PAPER_MIX
    ]
    counts: dict[Structure, int] = {kind: int(share) for kind, share in exact}
    by_remainder = sorted(exact, key=lambda pair: -(pair[1] - int(pair[1])))
    for kind, _ in by_remainder[: size - sum(counts.values())]:
        counts[kind] += 1
    return [kind for kind, count in counts.items() for _ in range(count)]


def _game(n: int, structure: Structure, mix: Mix, place: int, seed: int) -> Game:
    rng = np.random.default_rng([seed, n, MIXES.index(mix), 1, place])
    alone, together = _harm_sizes(structure, mix)
    harm = alone + together
    if n < harm + 1:
        raise ScenarioError(
            f"{harm} harmful records and 1 evidence record do not fit {n} candidates; raise --k"
        )
    kind = rng.random()
    pair = kind >= 0.5 and n >= harm + 2  # noqa: PLR2004  # half of the games need or offer two
    seats = [int(i) for i in rng.permutation(n)]
    golds = 2 if pair else 1
    gold, rest = seats[:golds], seats[golds:]
    background = rest[harm:]
    effects = np.zeros(n)
    effects[background] = rng.normal(0.0, BACKGROUND_SD, len(background))
    values = GRADED.get(mix, "veto")
    return Game(
        n=n,
        conversation=place % CONVERSATIONS,
        structure=structure,
        values=values,
        gold=coalition_of(gold),
        any_gold=bool(kind >= 0.75),  # noqa: PLR2004  # a quarter of the games
        alone=coalition_of(rest[:alone]),
        together=coalition_of(rest[alone:harm]),
        levels=_levels(values, rng),
        effects=effects,
        seed=int(rng.integers(1 << 62)),
    )


def _harm_sizes(structure: Structure, mix: Mix) -> tuple[int, int]:
    copies = {"r3": 3, "r4": 4}.get(mix, 2)
    sizes: dict[Structure, tuple[int, int]] = {
        "direct": (1, 0),
        "redundant": (copies, 0),
        "joint": (0, 2),
        "mixed": (1, 2),
        "clean": (0, 0),
    }
    return sizes[structure]


def _levels(values: Values, rng: np.random.Generator) -> Levels:
    high, harmed, bare = rng.uniform([0.80, 0.0, 0.02], [0.98, 0.10, 0.15])
    if values == "ungated":
        bare = rng.uniform(0.55, 0.75)
    if values == "weak":
        high, harmed = rng.uniform([0.58, 0.25], [0.75, 0.42])
    return Levels(float(high), float(harmed), float(bare))
