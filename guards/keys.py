"""The name of a question: equal questions have equal keys, in every process and version.

A key is the SHA-256 of one JSON array: format, namespace, model identity, question. Change the
format name with any change of what is hashed; the golden test in ``tests/guards`` holds it still.
"""

import hashlib

import msgspec

from assay.guards.protocols import Request
from assay.stores.records import Namespace

_FORMAT = "assay.evaluation.1"
_encoder = msgspec.json.Encoder(order="deterministic")


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly what is asked; its JSON is ``CacheRow.request``.

    Attributes:
        request: Model, parameters and rendered messages.
        answer: Set when the likelihood of this answer is asked for, instead of an answer.
        rendering: How the coalition is shown.
        draw: Number of the draw.
    """

    request: Request
    answer: str | None = None
    rendering: str = "plain"
    draw: int = 0


def encode_question(question: Question) -> bytes:
    """The question as JSON, the same bytes for equal questions."""
    return _encoder.encode(question)


def decode_question(data: bytes) -> Question:
    """The question of a cache row.

    Raises:
        msgspec.DecodeError: If it is no question.
    """
    return msgspec.json.decode(data, type=Question)


def question_key(namespace: Namespace, identity: str, question: Question) -> str:
    """SHA-256 hex over namespace, model identity and question.

    Args:
        namespace: Whose question it is; nothing crosses it.
        identity: ``ChatModel.identity``: name, revision or file hash, base URL.
        question: Request, kind of ask, rendering and draw.
    """
    return key_of_encoded(namespace, identity, encode_question(question))


def key_of_encoded(namespace: Namespace, identity: str, encoded: bytes) -> str:
    """``question_key`` for a question that is encoded already."""
    named = _encoder.encode((_FORMAT, namespace, identity, msgspec.Raw(encoded)))
    return hashlib.sha256(named).hexdigest()
