"""The results as Markdown, with the command that makes them."""

from collections.abc import Iterable, Sequence

from assay.scenarios.jointcorebench.exact import ExactReport
from assay.scenarios.jointcorebench.hard import Row

EXACT_HEAD = ("method", "evaluations", "sufficient", "min-cost", "savings")
ROUNDS_HEAD = ("method", "at 1", "at 4", "at 8", "at 16")
TRACK_HEAD = (
    "variant",
    "method",
    "conditions",
    "evaluations",
    "most",
    "sufficient",
    "min-cost",
    "1-minimal",
)


def exact_cells(report: ExactReport) -> list[list[str]]:
    """One row per method: the means, then the questions by number of records."""
    return [
        [
            name,
            f"{m.evaluations:.3f}",
            f"{m.sufficiency:.4f}",
            f"{m.min_cost:.4f}",
            f"{m.savings:.4f}",
            *(f"{value:.3f}" for value in m.by_n.values()),
        ]
        for name, m in report.methods.items()
    ]


def exact_head(report: ExactReport) -> list[str]:
    """Headings of ``exact_cells``."""
    first = next(iter(report.methods.values()))
    return [*EXACT_HEAD, *(f"n={n}" for n in first.by_n)]


def round_cells(report: ExactReport) -> list[list[str]]:
    """One row per method that asks: rounds, and the questions spent for them."""
    return [
        [name, *(f"{m.rounds[c]:.2f} ({m.spent[c]:.1f})" for c in m.rounds)]
        for name, m in report.methods.items()
        if m.evaluations
    ]


def family_cells(report: ExactReport) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: one row per family, one column per method that asks."""
    asking = {name: m for name, m in report.methods.items() if m.evaluations}
    families = next(iter(asking.values())).by_family
    cells = [
        [family, *(f"{m.by_family[family]:.2f}" for m in asking.values())] for family in families
    ]
    return ["family", *asking], cells


def track_cells(rows: Sequence[Row]) -> list[list[str]]:
    """One row per variant and method."""
    return [
        [
            row.variant,
            row.method,
            f"{row.conditions:,}",
            f"{row.evaluations:.2f}",
            f"{row.most:,}",
            f"{row.sufficiency:.3f}",
            f"{row.min_cost:.3f}",
            f"{row.one_minimal:.3f}",
        ]
        for row in rows
    ]


def exact_markdown(report: ExactReport, command: str) -> str:
    """The exact stage as a page."""
    families, by_family = family_cells(report)
    return "\n\n".join(
        [
            "# JointCoreBench, exact stage",
            f"{report.conditions:,} conditions, seed base {report.seed}. Made by `{command}`.",
            "Evaluations are questions per condition; the reference with all records is not "
            "counted. The first eight methods are the published ones.",
            markdown_table(exact_head(report), exact_cells(report)),
            "## Rounds by questions in flight (questions spent)",
            "Equal questions are asked once here; the published searches above repeat them.",
            markdown_table(ROUNDS_HEAD, round_cells(report)),
            "## Evaluations by family",
            markdown_table(families, by_family),
        ]
    )


def tracks_markdown(rows: Sequence[Row], command: str, *, seed: int) -> str:
    """The harder tracks as a page part."""
    return "\n\n".join(
        [
            "# JointCoreBench, harder tracks",
            f"Seed base {seed}. Made by `{command}`.",
            "1-minimal: sufficient, and not with any one record fewer, by the true rule.",
            markdown_table(TRACK_HEAD, track_cells(rows)),
        ]
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
