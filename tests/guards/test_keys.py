"""A question's name is the same for ever, and another question's is another."""

import msgspec
import pytest

from assay.guards.keys import Question, decode_question, encode_question, question_key
from assay.guards.protocols import Message, Parameters, Request
from assay.stores.records import Namespace

PLAIN = Question(
    request=Request(
        model="smollm2",
        messages=(
            Message(role="system", content="Answer briefly."),
            Message(role="user", content="Where does Ann live? é"),
        ),
        parameters=Parameters(max_tokens=32, seed=7),
    )
)
ANN = Namespace("ann")


def with_parameters(parameters: Parameters) -> Question:
    return msgspec.structs.replace(
        PLAIN, request=msgspec.structs.replace(PLAIN.request, parameters=parameters)
    )


def test_the_key_of_a_known_question_never_changes() -> None:
    golden = "0267b21c3bb2762cacca9ea6b28092a0c5d687dea4c28fb1f44812b02fc9ac5b"

    assert question_key(ANN, "smollm2@abc", PLAIN) == golden


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(PLAIN, answer="Rome"),
        msgspec.structs.replace(PLAIN, answer=""),
        msgspec.structs.replace(PLAIN, draw=1),
        msgspec.structs.replace(PLAIN, rendering="negation"),
        with_parameters(Parameters(max_tokens=33, seed=7)),
        with_parameters(Parameters(max_tokens=32, seed=8)),
        with_parameters(Parameters(max_tokens=32, seed=7, temperature=0.5)),
    ],
)
def test_another_question_has_another_key(other: Question) -> None:
    assert question_key(ANN, "m", other) != question_key(ANN, "m", PLAIN)


def test_another_namespace_or_model_has_another_key() -> None:
    keys = {
        question_key(ANN, "m", PLAIN),
        question_key(Namespace("bob"), "m", PLAIN),
        question_key(ANN, "m2", PLAIN),
        question_key(Namespace("an"), "nm", PLAIN),
    }

    assert len(keys) == 4


def test_a_question_survives_its_encoding() -> None:
    question = msgspec.structs.replace(PLAIN, answer="Rome", draw=2, rendering="entity")

    assert decode_question(encode_question(question)) == question


def test_what_an_encoding_leaves_out_is_what_it_always_left_out() -> None:
    """Defaults are not encoded: changing one would give new questions the old answers' keys."""
    assert Parameters() == Parameters(
        max_tokens=256, temperature=0.0, seed=0, top_logprobs=0, stop=(), tools=""
    )
    assert Message(role="user", content="") == Message(
        role="user", content="", tool_calls=(), tool_call_id=None
    )
    assert Question(request=PLAIN.request) == Question(
        request=PLAIN.request, answer=None, rendering="plain", draw=0
    )
