"""The 6,912 exact conditions, bit for bit: same hashes, same shuffles, same rounding."""

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from assay.guards.coalitions import Coalition, coalition_of
from assay.scenarios.jointcorebench.rules import EQUAL_COSTS, FAMILIES, Family, Rule, rule_for

Domain: TypeAlias = Literal[
    "orders", "access_control", "deployment", "calendar", "database", "file_debug"
]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
SIZES = (8, 16, 32, 64)
SUPPORTS = (2, 4)
HORIZONS = (1, 4, 8, 16)
BLOCKS = (0, 1, 2, 3)
EXACT_SEED = 26082701
"""Seed base of the published exact stage."""

_SEPARATOR = "\x1f"
_UNIT = 0xFFFFFFFFFFFFFFFF
T = TypeVar("T")


def hashed(*parts: object) -> int:
    """The first 16 hex digits of SHA-256 over the parts joined by U+001F."""
    text = _SEPARATOR.join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def uniform(*parts: object) -> float:
    """``hashed`` scaled to [0, 1]."""
    return hashed(*parts) / _UNIT


def shuffled(items: Sequence[T], *parts: object) -> list[T]:
    """The items in the order Python's own generator gives, seeded by ``hashed``."""
    result = list(items)
    random.Random(hashed(*parts)).shuffle(result)  # noqa: S311  # the published order, no secret
    return result


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Records with costs and scores, and the rule they are judged by.

    Attributes:
        key: What every random draw of this task is derived from.
        domain: Where the story is set; does not touch the rule.
        family: Kind of rule.
        n: Number of records.
        seed: Seed of the task.
        support: Records the rule speaks of, ascending.
        proxy: The tempting record that is not needed; ``None`` except for ``proxy_confounded``.
        costs: Shape ``(n,)``, positive.
        scores: Shape ``(n,)``, in [0, 1], rounded to 8 decimals.
    """

    key: str
    domain: Domain
    family: Family
    n: int
    seed: int
    support: tuple[int, ...]
    proxy: int | None
    costs: tuple[float, ...]
    scores: tuple[float, ...]

    @property
    def rule(self) -> Rule:
        """When a retained set suffices."""
        return rule_for(self.family, self.support)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of the benchmark.

    Attributes:
        id: The published text that names it; every draw is derived from it.
        task: Records and rule.
        support_size: The ``s`` of the product, 2 or 4.
        horizon: Horizon label.
        block: Seed block.
    """

    id: str
    task: Task
    support_size: int
    horizon: int
    block: int

    @property
    def record_order(self) -> list[int]:
        """Order of the records in a prompt; no effect on the exact stage."""
        return shuffled(range(self.task.n), self.id, "record-order")

    @property
    def executes_when_sufficient(self) -> bool:
        """Orientation: which action sufficiency means; no effect on the exact stage."""
        return hashed(self.id, "orientation") % 2 == 0

    def random_b(self, count: int) -> Coalition:
        """The ``count`` records the random baseline keeps."""
        task_id = _digest({"task": self.task.key, "version": 1})
        paper = _digest({"condition": self.id, "stateful_task_id": task_id, "version": 1})
        return coalition_of(shuffled(range(self.task.n), paper, "random_b")[:count])


class Coordinates(NamedTuple):
    """Where a condition stands in the product."""

    domain: Domain
    family: Family
    n: int
    support_size: int
    horizon: int
    block: int


class Axes(NamedTuple):
    """The product the exact stage runs over; narrow it for a quick look."""

    domains: Sequence[Domain] = DOMAINS
    families: Sequence[Family] = FAMILIES
    sizes: Sequence[int] = SIZES
    supports: Sequence[int] = SUPPORTS
    horizons: Sequence[int] = HORIZONS
    blocks: Sequence[int] = BLOCKS


def coordinates(axes: Axes | None = None) -> Iterator[Coordinates]:
    """The product in published order; with the defaults the 6,912 of the exact stage."""
    for point in itertools.product(*(axes or Axes())):
        yield Coordinates(*point)


def condition(at: Coordinates, *, base: int = EXACT_SEED) -> Condition:
    """One condition by its coordinates and the seed base."""
    domain, family, n, s, horizon, block = at
    name = f"{domain}|{family}|n={n}|s={s}|h={horizon}|b={block}|{base}"
    seed = base + 1009 * block + hashed(name, "task") % 997
    task = make_task(domain, family, n, s, seed)
    return Condition(id=name, task=task, support_size=s, horizon=horizon, block=block)


def make_task(domain: Domain, family: Family, n: int, s: int, seed: int) -> Task:
    """Draw records and rule from their key; shared with the model stage."""
    key = f"{domain}|{family}|n={n}|s={s}|d={min(s, 4)}|seed={seed}"
    count = 1 if family == "single_variable" else s
    support = sorted(shuffled(range(n), key, "support-order")[:count])
    proxy = None
    if family == "proxy_confounded":
        proxy = next(i for i in range(n) if i not in support)
    drawn = [_record(key, family, seed, i, supports=i in support) for i in range(n)]
    if proxy is not None:
        drawn[proxy] = (5, 0.995)
    return Task(
        key=key,
        domain=domain,
        family=family,
        n=n,
        seed=seed,
        support=tuple(support),
        proxy=proxy,
        costs=tuple(float(cost) for cost, _ in drawn),
        scores=tuple(round(score, 8) for _, score in drawn),
    )


def _record(key: str, family: Family, seed: int, i: int, *, supports: bool) -> tuple[int, float]:
    if not supports:
        cost = 1 + int(12 * uniform(key, "distractor-cost", i))
        return cost, 0.02 + 0.70 * uniform(key, "distractor-score", i)
    score = 0.76 + 0.18 * uniform(key, "support-score", i)
    if family in EQUAL_COSTS:
        return 3 + seed % 7, score
    return 3 + int(7 * uniform(key, "support-cost", i)), score


def _digest(content: dict[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
