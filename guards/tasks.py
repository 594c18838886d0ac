"""Questions about the records themselves, put to a model beside the user's: renderings by name.

A renderer that is asked for one of these numbers the records it shows, from 1 in the case's order,
and puts the task before the user's question. Nothing else of the prompt changes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

SUMMARISE = "summarise"
REFLECT = "reflect"


class Task(NamedTuple):
    """What the model is to do with the numbered records.

    Attributes:
        words: The instruction.
        tokens: Least room for its answer.
    """

    words: str
    tokens: int


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        SUMMARISE: Task(
            "Summarise the numbered notes in a few sentences. Keep names, numbers and dates, and whatever "
            "bears on the question below. Do not answer it.",
            tokens=192,
        ),
        REFLECT: Task(
            "Which of the numbered notes are true and needed to answer the question below? Reply with "
            "their numbers only, or with the word none.",
            tokens=24,
        ),
    }
)
