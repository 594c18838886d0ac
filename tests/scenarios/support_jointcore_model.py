"""A model that judges the printed condition by the printed values, without a mistake."""

import re
from functools import cache

from assay.guards.protocols import Request
from assay.scenarios.jointcorebench.conditions import Condition
from assay.scenarios.jointcorebench.model_tasks import model_tasks
from assay.scenarios.jointcorebench.statements import Statement, statement_of


@cache
def tasks() -> list[Condition]:
    return model_tasks()


@cache
def statements() -> dict[str, Statement]:
    found = [statement_of(task.task) for task in tasks()]
    return {statement.text: statement for statement in found}


def is_true(prompt: str) -> bool:
    text = re.search(r"Condition: (.*)\.\n", prompt)
    assert text is not None
    lines = prompt.partition("Records:\n")[2].splitlines()[:-1]
    values = dict(line.split("=") for line in lines if "=" in line)
    return statements()[text[1]].holds(values)


def reads(request: Request) -> str:
    prompt = request.messages[-1].content
    true = is_true(prompt)
    rule = re.search(r"the action is (\w+), otherwise (\w+)", prompt)
    if rule is None:
        return "YES" if true else "NO"
    action = str(rule[1 if true else 2])
    options = [(str(found[2]), str(found[1])) for found in re.finditer(r"([AB]): (\w+)\.", prompt)]
    return dict(options).get(action, action)
