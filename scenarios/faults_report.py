"""Figures of a fault replay: JSON, Markdown, and a page with the risk frontier."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assay.scenarios.faults_elsewhere import Share
from assay.scenarios.faults_replay import FaultRow, FaultsConfig
from assay.scenarios.faults_verifying import VERIFIED
from assay.scenarios.games_report import figures, markdown, page
from assay.scenarios.games_runner import Plan, Played
from assay.scenarios.locomo_faults import CANDIDATES, STRUCTURES
from assay.scenarios.report import Cell, Column, Report, Section, Table, number

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "meclear": {
        "recall": 0.859,
        "exact": 0.470,
        "recovery": 0.823,
        "extra": 0.623,
        "recall_redundant": 0.832,
        "recovery_redundant": 0.684,
        "recall_joint": 0.871,
        "recovery_joint": 0.918,
    },
    "leave_one_out": {
        "recall": 0.383,
        "exact": 0.342,
        "recovery": 0.568,
        "recall_redundant": 0.123,
        "recovery_redundant": 0.063,
    },
}
"""As printed in the paper (2609.09115) over its 745 cases; the second row by its differences."""

DIFFERENCES = (
    "The published figures are of another reader, other wrong records (a language model wrote "
    "them), 745 cases and a judge of answers; here the faults are made by rules, only cases this "
    "reader verifies count, and utility is what the configuration names."
)


class Replayed(NamedTuple):
    """A finished replay.

    Attributes:
        rows: One per case.
        config: What was run.
        identity: The model that answered.
        command: As typed.
        shares: What each worker did, where workers did it.
    """

    rows: Sequence[FaultRow]
    config: FaultsConfig
    identity: str
    command: str
    shares: Mapping[str, Share] = {}


class Verification(NamedTuple):
    """One structure's cases: tried, verified, and why the others were not."""

    tried: int
    verified: int
    rate: float
    why_not: Mapping[str, int]


def verification(rows: Sequence[FaultRow]) -> dict[str, Verification]:
    """How many cases the model verifies, by structure."""
    found: dict[str, Verification] = {}
    for structure in STRUCTURES:
        own = [row for row in rows if row.structure == structure]
        if not own:
            continue
        verdicts = Counter(row.verdict for row in own)
        count = verdicts.pop(VERIFIED, 0)
        found[structure] = Verification(
            len(own), count, count / len(own), dict(verdicts.most_common())
        )
    return found


def result(replayed: Replayed) -> dict[str, object]:
    """The replay as one JSON object; ``methods`` is empty when no case was verified."""
    config = replayed.config
    played = played_of(replayed)
    workers = {name: share._asdict() for name, share in replayed.shares.items()}
    methods: Mapping[str, object] = (
        figures(played, concurrency=config.concurrency) if played else {"methods": {}}
    )
    return {
        "suite": "locomo-faults",
        "protocol": config.protocol,
        "utility": config.utility,
        "model": config.model,
        "identity": replayed.identity,
        "seed": config.seed,
        "concurrency": config.concurrency,
        "budget": config.budget,
        "bar": config.bar,
        "cases": len(replayed.rows),
        "verified": sum(row.verdict == VERIFIED for row in replayed.rows),
        "by_structure": {name: row._asdict() for name, row in verification(replayed.rows).items()},
        "methods": methods["methods"],
        "spent": {
            "evaluations": sum(row.evaluations for row in replayed.rows),
            "live": sum(row.live for row in replayed.rows),
            "seconds": round(sum(row.seconds for row in replayed.rows), 1),
        },
        "published": {name: dict(row) for name, row in PUBLISHED.items()},
        "differences": DIFFERENCES,
        **({"workers": workers} if workers else {}),
    }


def tables(replayed: Replayed) -> str:
    """Markdown: how many cases were verified, and what each method did on them."""
    config = replayed.config
    lines = [
        f"# Fault replay, {config.protocol} protocol",
        "",
        f"`{replayed.command}`",
        "",
        f"Model {replayed.identity}, utility {config.utility}, bar {config.bar:g}, "
        f"seed {config.seed}, {len(replayed.rows)} cases. {DIFFERENCES}",
        "",
        "| structure | tried | verified | rate | why not |",
        "|---|---|---|---|---|",
    ]
    for structure, row in verification(replayed.rows).items():
        lines.append(
            f"| {structure} | {row.tried} | {row.verified} | {row.rate:.3f} | "
            f"{_listed(row.why_not)} |"
        )
    played = played_of(replayed)
    for title, part in _parts(played) if played else []:
        lines += ["", f"## {title}", "", markdown(part, concurrency=config.concurrency)]
    lines += ["", "## As published", "", "| method | measure | value |", "|---|---|---|"]
    lines += [
        f"| {name} | {measure.replace('_', ' ')} | {value:.3f} |"
        for name, row in PUBLISHED.items()
        for measure, value in row.items()
    ]
    return "\n".join(lines) + "\n"


def replay_page(replayed: Replayed) -> Report:
    """The page: verification, the tables, and the risk frontier, over all and by structure."""
    config = replayed.config
    played = played_of(replayed)
    sections = [_verification_section(replayed.rows)]
    for title, part in _parts(played) if played else []:
        [section] = page([part], command=replayed.command, concurrency=config.concurrency).sections
        sections.append(section._replace(title=title))
    sections.append(_published_section())
    return Report(
        title=f"LoCoMo faults, {config.protocol} protocol",
        summary=f"{len(replayed.rows)} cases, each verified on the model before it counts.",
        facts=[
            ("Command", replayed.command),
            ("Model", replayed.identity),
            ("Utility", config.utility),
            ("Bar of the methods", f"{config.bar:g}"),
            ("Seed", str(config.seed)),
            ("Data", f"sha256 {config.data_sha256}"),
            ("Intervals", "95 %, 2,000 two-level bootstrap replicates: conversations, then cases"),
        ],
        headlines=[],
        sections=sections,
    )


def played_of(replayed: Replayed) -> Played | None:
    """The verified cases as a cohort of games; ``None`` if there are none."""
    rows = [row for row in replayed.rows if row.verdict == VERIFIED]
    if not rows:
        return None
    config = replayed.config
    plan = Plan(size=len(rows), k=CANDIDATES, seed=config.seed, limit=config.budget)
    scores = {name: [row.scores[name] for row in rows] for name in config.methods}
    return Played(plan=plan, scores=scores, not_run={})


def _parts(played: Played) -> list[tuple[str, Played]]:
    """All verified cases, then each structure's."""
    parts = [("All verified cases", played)]
    for structure in STRUCTURES:
        scores = {
            name: [s for s in own if s.structure == structure]
            for name, own in played.scores.items()
        }
        if size := max(map(len, scores.values()), default=0):
            plan = Plan(size=size, k=played.plan.k, seed=played.plan.seed, limit=played.plan.limit)
            parts.append((structure.capitalize(), Played(plan=plan, scores=scores, not_run={})))
    return parts


def _verification_section(rows: Sequence[FaultRow]) -> Section:
    columns = [Column("structure"), Column("tried"), Column("verified"), Column("why not")]
    cells = [
        [
            Cell(structure),
            number(row.tried, digits=0),
            number(row.verified, digits=0, note=f"{row.rate:.0%}"),
            Cell(_listed(row.why_not)),
        ]
        for structure, row in verification(rows).items()
    ]
    text = (
        "A case counts only if the model is right without the faults, wrong with them, wrong "
        "without any record, and misled in the way the structure claims."
    )
    return Section("Causal verification", text, tables=[Table(columns, cells)])


def _published_section() -> Section:
    columns = [Column("method"), Column("measure"), Column("value")]
    cells = [
        [Cell(name), Cell(measure.replace("_", " ")), number(value)]
        for name, row in PUBLISHED.items()
        for measure, value in row.items()
    ]
    return Section("As published", DIFFERENCES, tables=[Table(columns, cells)])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in counts.items()) or "-"
