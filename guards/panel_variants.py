"""The panel with a lever taken out, or with every one in, to be compared with the usual one."""

from assay.guards.panel import Panel
from assay.guards.protocols import OnUndecided
from assay.stores.protocols import Embedder


class PanelWithoutTrust(Panel):
    """The panel that does not ask where a record comes from: texts and archive decide alone.

    Args:
        on_undecided: What becomes of candidates that nothing decided.
        seed: Part of every guard's interface.
        embedder: Measures likeness by meaning; by shared words where it is ``None``.
    """

    def __init__(
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        embedder: Embedder | None = None,
    ) -> None:
        super().__init__(on_undecided=on_undecided, seed=seed, embedder=embedder, trust=False)

    @property
    def name(self) -> str:
        """``panel_no_trust``."""
        return "panel_no_trust"


class FullPanel(Panel):
    """All three experiments on one laboratory: the panel, then verified clearing, then a core.

    Args:
        on_undecided: What becomes of candidates that nothing decided.
        seed: Of the clearing's own choices.
        embedder: Measures likeness by meaning; by shared words where it is ``None``.
    """

    def __init__(
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        embedder: Embedder | None = None,
    ) -> None:
        super().__init__(
            on_undecided=on_undecided, seed=seed, embedder=embedder, clear=True, reduce=True
        )

    @property
    def name(self) -> str:
        """``panel_full``."""
        return "panel_full"
