"""What the attacks are replayed with: our guards, a rule that looks at origins only, an outside peer."""

import importlib.util
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from assay.errors import ConfigError
from assay.guards.baselines import FullHistory, decision_of
from assay.guards.methods import guard_named
from assay.guards.protocols import Case, Decision, Experimenter, Guard
from assay.scenarios.attacks_data import OriginShown
from assay.stores.protocols import Embedder
from assay.stores.records import MemoryRecord

METHODS: Final = (
    "no_guard",
    "vector",
    "cmi",
    "jointcore",
    "meclear",
    "panel",
    "origin_only",
    "agent_memory_guard",
)
"""All of them, in the order of the table."""

PEER: Final = "agent_memory_guard"
PEER_MISSING: Final = (
    f"{PEER} is left out: it is not installed (pip install 'assay[benchmark]' brings it)"
)


def peer_is_here() -> bool:
    """Whether the outside peer is installed."""
    return importlib.util.find_spec(PEER) is not None


def attack_guard(
    name: str, *, embedder: Embedder, origin: OriginShown = "visible", seed: int = 7
) -> Guard:
    """The guard of a name of ``METHODS``.

    Args:
        name: Which.
        embedder: For the panel.
        origin: ``hidden`` takes the panel that does not ask for origins.
        seed: Of whatever the guard draws.

    Raises:
        ConfigError: If the name is unknown, or the peer is not installed.
    """
    if name == PEER:
        return _peer()
    own: Mapping[str, Callable[[], Guard]] = MappingProxyType(
        {"no_guard": FullHistory, "origin_only": OriginOnly}
    )
    if name in own:
        return own[name]()
    if name == "panel" and origin == "hidden":
        name = "panel_no_trust"
    return guard_named(name, embedder=embedder, seed=seed)


class OriginOnly:
    """Withholds whatever came from outside, true or not, and nothing else."""

    @property
    def name(self) -> str:
        """``origin_only``."""
        return "origin_only"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        inside = [i for i, c in enumerate(case.candidates) if c.record.origin.writer != "external"]
        kept, left = "It did not come from outside.", "It came from outside."
        return decision_of(self.name, case, inside, kept=kept, left=left)


class TextDetectors:
    """An outside peer: withholds what detectors of suspicious text object to, one text at a time.

    Args:
        refuses: Whether they object to a record.
    """

    def __init__(self, refuses: Callable[[MemoryRecord], bool]) -> None:
        self._refuses = refuses

    @property
    def name(self) -> str:
        """``agent_memory_guard``."""
        return PEER

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        passed = [i for i, c in enumerate(case.candidates) if not self._refuses(c.record)]
        kept, left = "No detector objects.", "A detector objects."
        return decision_of(self.name, case, passed, kept=kept, left=left)


def _peer() -> Guard:
    if not peer_is_here():
        raise ConfigError(PEER_MISSING)
    # Optional, of the benchmark extra: type checkers need not find it.
    peer: Any = import_module(PEER)
    logging.getLogger(PEER).setLevel(logging.CRITICAL)  # it logs the texts that it blocks

    def refuses(record: MemoryRecord) -> bool:
        # A guard of its own each: among copies it would call the second one a rapid change.
        guard = peer.MemoryGuard(policy=peer.Policy.strict())
        said_by_user = record.origin.writer == "user"
        sources = peer.SourceClass
        source = sources.USER_INPUT if said_by_user else sources.EXTERNAL_TOOL
        try:
            action = guard.write("memory.record", record.text, source_class=source)
        except peer.PolicyViolation:
            return True
        return action in {peer.Action.BLOCK, peer.Action.QUARANTINE}

    return TextDetectors(refuses)
