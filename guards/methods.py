"""Guards by the name they have on the command line."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from assay.errors import ConfigError
from assay.guards.baselines import FullHistory, NoMemory, Vector
from assay.guards.baselines_asking import Reflection, Summary
from assay.guards.baselines_graph import Graph
from assay.guards.batched import BatchedCMI
from assay.guards.intervention import CMI, Criterion, ValueFactory, archive_agreement
from assay.guards.jointcore import JointCore
from assay.guards.meclear import ClearingSearch, MeClear
from assay.guards.protocols import Guard, OnUndecided
from assay.stores.protocols import Embedder

METHODS: tuple[str, ...] = (
    "no_memory",
    "vector",
    "full_history",
    "summary",
    "graph",
    "reflection",
    "cmi",
    "panel",
    "jointcore",
    "meclear",
)
"""What is compared by default, in this order: the seven published methods, the panel, group
deletion, and clearing."""

CMI_VARIANTS: tuple[str, ...] = (
    "cmi_utility",
    "cmi_stability",
    "cmi_no_perturbation",
    "cmi_batch",
)
"""Published variants of CMI, by name only. The fifth, ``cmi_oracle``, needs the answer key, which
does not exist here: see ``assay.scenarios.oracle``."""

MECLEAR_VARIANTS: tuple[str, ...] = ("meclear_published", "meclear_exact")
"""Clearing as published (16 permutations, the nested filtration) and by the full table."""

PANEL_VARIANTS: tuple[str, ...] = ("panel_no_trust", "panel_full")
"""The panel that does not ask where a record comes from; and the one that clears and reduces, too."""

ORACLE = "cmi_oracle"
"""The variant that no blind run can have."""


def guard_named(  # noqa: PLR0913  # whatever any of them takes
    name: str,
    *,
    on_undecided: OnUndecided = "withhold",
    seed: int = 7,
    value: ValueFactory = archive_agreement,
    embedder: Embedder | None = None,
    perturbations: int = 1,
    tolerance: float = 0.0,
    clear: bool = False,
    reduce: bool = False,
) -> Guard:
    """The guard of this name.

    Args:
        name: One of ``METHODS``, ``CMI_VARIANTS``, ``MECLEAR_VARIANTS`` or ``PANEL_VARIANTS``.
        on_undecided: What becomes of candidates that nothing decided; baselines decide all.
        seed: Of whatever the guard draws.
        value: Value function of CMI, MeClear and their variants; blind by default.
        embedder: Lets the panel compare texts by meaning; by shared words where it is ``None``.
        perturbations: How many CMI shows of each candidate.
        tolerance: How far below 0 a stability may be and still count as stable.
        clear: Whether the panel clears what it admits further, by coalition values.
        reduce: Whether the panel reduces what it admits to a core with the same answer.

    Raises:
        ConfigError: If there is none; the message shows the nearest names, or all.
    """
    if name == ORACLE:
        raise ConfigError(
            f"{ORACLE} scores with the answer key, which no guard may see; it runs only as "
            "--protocol published --method cmi_oracle"
        )
    make = _MAKERS.get(name)
    if make is None:
        known = (*METHODS, *CMI_VARIANTS, *MECLEAR_VARIANTS, *PANEL_VARIANTS)
        near = get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f" (known: {', '.join(known)})"
        raise ConfigError(f"no method {name!r}{hint}")
    return make(
        _Wanted(on_undecided, seed, value, embedder, perturbations, tolerance, clear, reduce)
    )


class _Wanted(NamedTuple):
    """What a maker may use."""

    on_undecided: OnUndecided
    seed: int
    value: ValueFactory
    embedder: Embedder | None
    perturbations: int
    tolerance: float
    clear: bool
    reduce: bool


_Maker: TypeAlias = Callable[[_Wanted], Guard]


def _cmi(wanted: _Wanted, *, criterion: Criterion = "utility_and_stability") -> Guard:
    return CMI(
        on_undecided=wanted.on_undecided,
        seed=wanted.seed,
        value=wanted.value,
        criterion=criterion,
        perturbations=wanted.perturbations,
        tolerance=wanted.tolerance,
    )


def _without_perturbation(wanted: _Wanted) -> Guard:
    return CMI(
        on_undecided=wanted.on_undecided, seed=wanted.seed, value=wanted.value, perturb=False
    )


def _meclear(wanted: _Wanted, *, search: ClearingSearch = "auto") -> Guard:
    return MeClear(
        on_undecided=wanted.on_undecided, seed=wanted.seed, search=search, value=wanted.value
    )


def _panel(wanted: _Wanted) -> Guard:
    from assay.guards.panel import Panel  # noqa: PLC0415  # most methods do without its tables

    return Panel(
        on_undecided=wanted.on_undecided,
        seed=wanted.seed,
        embedder=wanted.embedder,
        clear=wanted.clear,
        reduce=wanted.reduce,
    )


def _panel_without_trust(wanted: _Wanted) -> Guard:
    from assay.guards.panel_variants import PanelWithoutTrust  # noqa: PLC0415  # as above

    return PanelWithoutTrust(
        on_undecided=wanted.on_undecided, seed=wanted.seed, embedder=wanted.embedder
    )


def _panel_full(wanted: _Wanted) -> Guard:
    from assay.guards.panel_variants import FullPanel  # noqa: PLC0415  # as above

    return FullPanel(on_undecided=wanted.on_undecided, seed=wanted.seed, embedder=wanted.embedder)


_MAKERS: Mapping[str, _Maker] = MappingProxyType(
    {
        "no_memory": lambda _: NoMemory(),
        "vector": lambda _: Vector(),
        "full_history": lambda _: FullHistory(),
        "summary": lambda _: Summary(),
        "graph": lambda _: Graph(),
        "reflection": lambda wanted: Reflection(on_undecided=wanted.on_undecided),
        "cmi": _cmi,
        "cmi_utility": lambda wanted: _cmi(wanted, criterion="utility"),
        "cmi_stability": lambda wanted: _cmi(wanted, criterion="stability"),
        "cmi_no_perturbation": _without_perturbation,
        "cmi_batch": lambda wanted: BatchedCMI(
            on_undecided=wanted.on_undecided, seed=wanted.seed, value=wanted.value
        ),
        "panel": _panel,
        "panel_no_trust": _panel_without_trust,
        "panel_full": _panel_full,
        "jointcore": lambda _: JointCore(),
        "meclear": _meclear,
        "meclear_published": lambda wanted: _meclear(wanted, search="published"),
        "meclear_exact": lambda wanted: _meclear(wanted, search="exact"),
    }
)
