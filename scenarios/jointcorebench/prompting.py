"""What a model is shown in the model stage, and between which labels it chooses. Pure.

Everything that is equal for all subsets of a task stands before the records, so that the prompts of
one task share a prefix.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, get_args

from assay.errors import ScenarioError
from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask, ChatModel, Message, Parameters, Renderer, Request
from assay.runtime.models.counting import bound_tokens
from assay.runtime.prompts import MESSAGE_TOKENS, estimate_tokens
from assay.scenarios.jointcorebench.conditions import Condition, hashed
from assay.scenarios.jointcorebench.statements import fields_of, statement_of, values_shown

Representation: TypeAlias = Literal["unknown", "deletion", "pending", "counterfactual"]
Interface: TypeAlias = Literal["boolean", "direct", "ab"]
Action: TypeAlias = Literal["EXECUTE", "HOLD"]

REPRESENTATIONS: tuple[Representation, ...] = get_args(Representation)
"""How omitted records are shown; the first is the primary one."""

INTERFACES: tuple[Interface, ...] = get_args(Interface)
"""What is asked; the first is the primary one."""

MOST_TOKENS = 768
"""A longer prompt is an error, never cut."""

TOP_LOGPROBS = 20
"""Alternatives asked of an endpoint that tells no likelihood of a given text."""

_OPPOSITE = {"ALLOW": "BLOCK", "BLOCK": "ALLOW", "ON": "OFF", "OFF": "ON"}
_SYSTEM = (
    "Judge a condition by the records alone. UNKNOWN, PENDING, INVALID and absent records never "
    "satisfy a requirement."
)

OMITTED: Mapping[Representation, Callable[[str], str | None]] = MappingProxyType(
    {
        "unknown": lambda _: "UNKNOWN",
        "deletion": lambda _: None,
        "pending": lambda _: "PENDING",
        "counterfactual": lambda value: _OPPOSITE.get(value, "INVALID"),
    }
)
"""What stands in the place of an omitted record's value; ``None``: no line at all."""


class Cell(NamedTuple):
    """One way to ask: how omitted records are shown, and between which labels to choose."""

    representation: Representation
    interface: Interface


class Form(NamedTuple):
    """A task as it is asked in one cell.

    Attributes:
        render: From a retained coalition to the request.
        actions: What each allowed label means.
        right: The action when the retained records suffice.
    """

    render: Renderer
    actions: Mapping[str, Action]
    right: Action

    @property
    def wrong(self) -> Action:
        """The action when they do not."""
        return "HOLD" if self.right == "EXECUTE" else "EXECUTE"


def form_of(condition: Condition, cell: Cell, model: ChatModel) -> Form:
    """How a task is asked in a cell.

    The returned renderer raises ``ScenarioError`` on a prompt of more than ``MOST_TOKENS`` tokens,
    by the model's own count, or by the estimate where the model only bounds it by bytes.
    """
    right: Action = "EXECUTE" if condition.executes_when_sufficient else "HOLD"
    wrong: Action = "HOLD" if right == "EXECUTE" else "EXECUTE"
    question, actions = _question(condition, cell.interface, right, wrong)
    task = condition.task
    fields, order = fields_of(task), condition.record_order
    labels = " or ".join(actions)
    before = f"Domain: {task.domain}. Condition: {statement_of(task).text}.\n{question}\nRecords:"

    def render(ask: Ask) -> Request:
        shown = values_shown(fields, ask.coalition, OMITTED[cell.representation])
        names = [fields[i].name for i in order]
        lines = [f"{name}={shown[name]}" for name in names if name in shown] or ["(none)"]
        text = "\n".join([before, *lines, f"Answer {labels}."])
        messages = (
            Message(role="system", content=_SYSTEM),
            Message(role="user", content=text),
        )
        require_short(messages, model)
        parameters = Parameters(max_tokens=1, top_logprobs=TOP_LOGPROBS)
        return Request(model=model.identity, messages=messages, parameters=parameters)

    return Form(render, actions, right)


def require_short(messages: tuple[Message, ...], model: ChatModel) -> None:
    """Refuse a prompt that is longer than ``MOST_TOKENS``.

    Raises:
        ScenarioError: If it is.
    """
    tokens = model.count_tokens(messages)
    if tokens >= bound_tokens(messages):
        # The model has no tokenizer at hand and counts bytes: four times too many.
        tokens = sum(estimate_tokens(m.content) + MESSAGE_TOKENS for m in messages)
    if tokens > MOST_TOKENS:
        raise ScenarioError(
            f"expected a prompt of at most {MOST_TOKENS} tokens, got {tokens}; nothing is cut"
        )


def shown_values(condition: Condition, cell: Cell, retained: Coalition) -> dict[str, str]:
    """Value by name, as the prompt of a retained coalition prints them."""
    return values_shown(fields_of(condition.task), retained, OMITTED[cell.representation])


def _question(
    condition: Condition, interface: Interface, right: Action, wrong: Action
) -> tuple[str, Mapping[str, Action]]:
    rule = f"If the condition is true, the action is {right}, otherwise {wrong}."
    match interface:
        case "boolean":
            return "Is the condition true?", {"YES": right, "NO": wrong}
        case "direct":
            return f"{rule} Which action?", {"EXECUTE": "EXECUTE", "HOLD": "HOLD"}
        case "ab":
            first: Action = "HOLD" if hashed(condition.id, "ab-order") % 2 else "EXECUTE"
            second: Action = "EXECUTE" if first == "HOLD" else "HOLD"
            return f"{rule} Which option? A: {first}. B: {second}.", {"A": first, "B": second}
