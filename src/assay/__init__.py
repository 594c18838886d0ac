"""An event-driven agent runtime whose memory has to earn its place in the prompt.

::

    async with assay.open_runtime(model="local") as runtime:
        reply = await runtime.session(user="u1").send("Where do I live?")

Names load when first used, so ``import assay`` is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.errors import AssayError as AssayError
    from assay.errors import BudgetExceeded as BudgetExceeded
    from assay.errors import CassetteMiss as CassetteMiss
    from assay.errors import ConfigError as ConfigError
    from assay.errors import GuardError as GuardError
    from assay.errors import GuardFailed as GuardFailed
    from assay.errors import ModelError as ModelError
    from assay.errors import ModelUnavailable as ModelUnavailable
    from assay.errors import RecordNotFound as RecordNotFound
    from assay.errors import ScenarioError as ScenarioError
    from assay.errors import StoreError as StoreError
    from assay.errors import TurnError as TurnError
    from assay.errors import TurnFailed as TurnFailed
    from assay.errors import TurnTimeout as TurnTimeout
    from assay.guards.protocols import ChatModel as ChatModel
    from assay.guards.protocols import Completion as Completion
    from assay.guards.protocols import Decision as Decision
    from assay.guards.protocols import Guard as Guard
    from assay.guards.protocols import Judgement as Judgement
    from assay.guards.protocols import Ledger as Ledger
    from assay.guards.protocols import ToolCall as ToolCall
    from assay.runtime.clock import StoppedClock as StoppedClock
    from assay.runtime.commands import ToolResult as ToolResult
    from assay.runtime.facade import Runtime as Runtime
    from assay.runtime.models.scripted import Rule as Rule
    from assay.runtime.models.scripted import ScriptedModel as ScriptedModel
    from assay.runtime.reply import PastDecision as PastDecision
    from assay.runtime.reply import Reply as Reply
    from assay.runtime.session import Session as Session
    from assay.runtime.settings import Settings as Settings
    from assay.runtime.wiring import open_runtime as open_runtime
    from assay.stores.embeddings import HashingEmbedder as HashingEmbedder
    from assay.stores.records import MemoryRecord as MemoryRecord
    from assay.stores.records import Origin as Origin

_HOMES = {
    "assay.errors": (
        "AssayError BudgetExceeded CassetteMiss ConfigError GuardError GuardFailed ModelError "
        "ModelUnavailable RecordNotFound ScenarioError StoreError TurnError TurnFailed TurnTimeout"
    ),
    "assay.guards.protocols": "ChatModel Completion Decision Guard Judgement Ledger ToolCall",
    "assay.runtime.clock": "StoppedClock",
    "assay.runtime.commands": "ToolResult",
    "assay.runtime.facade": "Runtime",
    "assay.runtime.models.scripted": "Rule ScriptedModel",
    "assay.runtime.reply": "PastDecision Reply",
    "assay.runtime.session": "Session",
    "assay.runtime.settings": "Settings",
    "assay.runtime.wiring": "open_runtime",
    "assay.stores.embeddings": "HashingEmbedder",
    "assay.stores.records": "MemoryRecord Origin",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
