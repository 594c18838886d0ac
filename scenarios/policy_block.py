"""The block of a run's page that shows where a guard could not decide and a policy did."""

from collections.abc import Mapping

from assay.guards.protocols import Decision
from assay.scenarios.report import Cell, Column, Section, Table, number
from assay.scenarios.results import MethodResult


def policy_section(results: Mapping[str, MethodResult]) -> Section | None:
    """How often the ``on_guard_failure`` policy acted, by method; ``None`` if it never did."""
    rows: list[list[Cell]] = []
    for name, result in results.items():
        acted = [row.decision for row in result.rows if row.decision.fallback]
        if acted:
            first = acted[0]
            rows.append(
                [
                    Cell(name),
                    number(len(acted), digits=0, note=f"of {len(result.rows)}"),
                    Cell(first.fallback),
                    Cell(first.failure),
                ]
            )
    if not rows:
        return None
    columns = [Column("method"), Column("decisions"), Column("policy"), Column("first failure")]
    return Section(
        "Decided by policy",
        "The guard could not measure: what entered the prompt was the declared policy's choice.",
        tables=[Table(columns, rows)],
    )


def policy_lines(name: str, decision: Decision) -> list[tuple[str, str]]:
    """For the card of one example: which policy acted, and why; empty if none had to."""
    if not decision.fallback:
        return []
    return [(f"{name}, by policy {decision.fallback}", decision.failure)]
