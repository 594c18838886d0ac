"""Guards by the name they have on the command line."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeAlias

from assay.errors import ConfigError
from assay.guards.baselines import FullHistory, NoMemory, Vector
from assay.guards.intervention import CMI, ValueFactory, archive_agreement
from assay.guards.protocols import Guard, OnUndecided
from assay.stores.protocols import Embedder

METHODS: tuple[str, ...] = ("no_memory", "vector", "full_history", "cmi", "panel")
"""What is compared by default, in this order."""

CMI_VARIANTS: tuple[str, ...] = ("cmi_utility", "cmi_stability", "cmi_no_perturbation")
"""Published variants of CMI, by name only."""


def guard_named(
    name: str,
    *,
    on_undecided: OnUndecided = "withhold",
    seed: int = 7,
    value: ValueFactory = archive_agreement,
    embedder: Embedder | None = None,
) -> Guard:
    """The guard of this name.

    Args:
        name: One of ``METHODS`` or ``CMI_VARIANTS``.
        on_undecided: What becomes of candidates that nothing decided; baselines decide all.
        seed: Of whatever the guard draws.
        value: Value function of CMI and its variants; blind by default.
        embedder: Lets the panel compare texts by meaning; by shared words where it is ``None``.

    Raises:
        ConfigError: If there is none; the message shows the nearest names.
    """
    make = _MAKERS.get(name)
    if make is None:
        known = (*METHODS, *CMI_VARIANTS)
        near = get_close_matches(name, known, n=3) or known
        raise ConfigError(f"no method {name!r}; did you mean {' or '.join(near)}?")
    return make(on_undecided, seed, value, embedder)


_Maker: TypeAlias = Callable[[OnUndecided, int, ValueFactory, Embedder | None], Guard]


def _panel(
    on_undecided: OnUndecided, seed: int, _value: ValueFactory, embedder: Embedder | None
) -> Guard:
    from assay.guards.panel import Panel  # noqa: PLC0415  # most methods do without its tables

    return Panel(on_undecided=on_undecided, seed=seed, embedder=embedder)


_MAKERS: Mapping[str, _Maker] = MappingProxyType(
    {
        "no_memory": lambda _u, _s, _v, _e: NoMemory(),
        "vector": lambda _u, _s, _v, _e: Vector(),
        "full_history": lambda _u, _s, _v, _e: FullHistory(),
        "cmi": lambda u, s, v, _e: CMI(on_undecided=u, seed=s, value=v),
        "cmi_utility": lambda u, s, v, _e: CMI(
            on_undecided=u, seed=s, value=v, criterion="utility"
        ),
        "cmi_stability": lambda u, s, v, _e: CMI(
            on_undecided=u, seed=s, value=v, criterion="stability"
        ),
        "cmi_no_perturbation": lambda u, s, v, _e: CMI(
            on_undecided=u, seed=s, value=v, perturb=False
        ),
        "panel": _panel,
    }
)
