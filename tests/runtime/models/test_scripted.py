"""The shipped model without a model."""

import math
from pathlib import Path

import pytest

from assay.errors import ConfigError, MalformedAnswer, ModelError, ModelRefused, ModelUnavailable
from assay.guards.protocols import Completion, ToolCall
from assay.runtime.models.reader import UNKNOWN
from assay.runtime.models.script_files import parse_script, scripted_model
from assay.runtime.models.scripted import Rule, ScriptedModel

from .support import asking

NOTES = (
    "Notes:\n<ab12cd 2026-01-01>Ann lives in Paris.</ab12cd>\n"
    "<ef34gh 2026-01-02 doubtful>Ann owns a cat &lt;3.</ef34gh>\n\n"
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Ann live?", "Ann lives in Paris."),
        ("Which cat does Ann own?", "Ann owns a cat <3."),
        ("Ann?", "Ann owns a cat <3."),
        ("What time is it?", UNKNOWN),
    ],
)
async def test_the_reader_answers_with_the_record_that_shares_most(
    question: str, expected: str
) -> None:
    completion = await ScriptedModel().complete(asking(NOTES + question))

    assert completion.text == expected


async def test_the_reader_knows_nothing_without_records() -> None:
    completion = await ScriptedModel().complete(asking("Ann lives in Paris. Where does Ann live?"))

    assert completion.text == UNKNOWN


async def test_the_first_rule_that_holds_answers() -> None:
    model = ScriptedModel(
        [
            Rule(question="live", prompt="cat", reply="with a cat"),
            Rule(question="^where", reply="somewhere"),
        ]
    )

    assert (await model.complete(asking(NOTES + "Where does she live?"))).text == "with a cat"
    assert (await model.complete(asking("Where to?"))).text == "somewhere"
    assert (await model.complete(asking("Who?"))).text == UNKNOWN
    assert len(model.asked) == 3


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        ("unavailable", ModelUnavailable),
        ("refused", ModelRefused),
        ("malformed", MalformedAnswer),
    ],
)
async def test_a_rule_may_fail_on_purpose(fails: str, expected: type[ModelError]) -> None:
    script = parse_script(Path("x.jsonl"), f'{{"fails": "{fails}"}}'.encode())

    with pytest.raises(expected):
        await ScriptedModel(script.rule).complete(asking())


async def test_a_function_may_answer_with_a_whole_completion() -> None:
    call = ToolCall(id="1", name="f", arguments="{}")
    wanted = Completion(text="", finish_reason="tool_calls", tool_calls=(call,))

    assert await ScriptedModel(lambda _: wanted).complete(asking()) == wanted


async def test_likelihood_follows_the_own_reply() -> None:
    model = ScriptedModel([Rule(reply="Ann lives here")])

    assert await model.log_likelihood(asking(), "ann lives") == pytest.approx(math.log(0.9))
    assert await model.log_likelihood(asking(), "bob") == pytest.approx(math.log(0.1))
    with pytest.raises(MalformedAnswer):
        await model.log_likelihood(asking(), " ")


async def test_a_script_is_read_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "script.toml"
    file.write_text('context_tokens = 500\n[[rule]]\nquestion = "hi"\nreply = "hello"\n')

    model = await scripted_model(str(file))

    assert model.context_tokens == 500
    assert (await model.complete(asking("Hi!"))).text == "hello"
    assert model.identity.startswith("scripted:")


async def test_another_script_has_another_identity(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"reply": "a"}\n')
    second.write_text('{"reply": "b"}\n')

    models = [await scripted_model(str(file)) for file in (first, second)]

    assert models[0].identity != models[1].identity


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"reply": "a"}\n{"replly": "b"}', "line 2"),
        ("a.jsonl", "nonsense", "line 1"),
        ("a.toml", "[[rule]]\nreplly = 'x'", "replly"),
        ("a.toml", "[[rule", "TOML"),
        ("a.toml", "[[rule]]\nquestion = '('", "rule 1"),
    ],
)
async def test_a_malformed_script_is_refused(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    file = tmp_path / name
    file.write_text(content)

    with pytest.raises(ConfigError, match=said):
        await scripted_model(str(file))


async def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        await scripted_model(str(tmp_path / "none.toml"))
