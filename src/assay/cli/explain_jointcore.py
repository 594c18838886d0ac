"""``assay explain jointcore``: group deletion on the published example, step by step."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.tree import Tree


def jointcore() -> None:
    """Show how group deletion finds what a decision needs, on JointCore's worked example.

    Sixteen records, two channels of which either suffices. Every line is one question: is the
    decision the same without these records?
    """
    from rich.console import Console  # noqa: PLC0415  # only when it runs

    Console().print(_tree())


def _tree() -> "Tree":
    from rich.tree import Tree  # noqa: PLC0415

    from assay.guards.coalitions import members, size  # noqa: PLC0415
    from assay.scenarios.jointcorebench.worked import worked_example  # noqa: PLC0415

    example = worked_example()
    problem = example.problem
    tree = Tree(
        f"{problem.n} records, cost {problem.cost(problem.everything):g}; "
        f"either of {_named(example.channels)} suffices"
    )
    branch = tree
    for step in example.steps:
        line = f"without {_named(members(step.group))} ({size(step.group)}): "
        if step.same:
            branch.add(line + "[green]same: deleted[/green]")
        elif size(step.group) == 1:
            branch.add(line + "[red]differs: kept[/red]")
        else:
            branch = branch.add(line + "[red]differs: kept, halved[/red]")
    kept = members(example.kept)
    tree.add(
        f"core [bold]{_named(kept)}[/bold], cost {problem.cost(example.kept):g}, "
        f"{len(example.steps)} questions; one by one it takes {example.singleton_questions}, "
        f"leaving one out keeps {_named(members(example.leave_one_out))}"
    )
    return tree


def _named(records: list[int]) -> str:
    if not records:
        return "nothing"
    return ", ".join(f"m{i}" for i in records)
