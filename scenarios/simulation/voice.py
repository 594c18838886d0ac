"""Has a model put what a user says and asks in words of its own; what is said stays the same."""

from msgspec.structs import replace

from assay.guards.protocols import ChatModel, Message, Parameters, Request
from assay.runtime.statements import statements
from assay.scenarios.normalise import holds, words
from assay.scenarios.rollouts import Plant, Question, Step, Tell
from assay.scenarios.simulation.days import Days

_TOKENS = 60
_SYSTEM = (
    "You play a user who talks to an assistant. Say the given sentence in other words. Keep every "
    "name, number, date and fact. Answer with one sentence and nothing else."
)


async def voiced(days: Days, model: ChatModel, *, seed: int) -> dict[str, str]:
    """For each fact told and each question asked, how the model says it.

    Where the model's sentence does not keep what it must, the script's own stands, so it is not in
    the result: a fact has to stay one statement with its value in it, a question a question.

    Raises:
        ModelError: If the model does not answer.
    """
    lines: dict[str, str] = {}
    for sentence in dict.fromkeys(_sentences(days)):
        request = Request(
            model=model.identity,
            messages=(
                Message(role="system", content=_SYSTEM),
                Message(role="user", content=sentence),
            ),
            parameters=Parameters(max_tokens=_TOKENS, seed=seed),
        )
        said = " ".join((await model.complete(request)).text.split()).strip('"')
        if said != sentence and _keeps(said, days.values.get(sentence)):
            lines[sentence] = said
    return lines


def spoken(days: Days, lines: dict[str, str]) -> Days:
    """The days with the given sentences in the model's words."""
    if not lines:
        return days
    sessions = tuple(
        replace(session, step=tuple(_in_words(step, lines) for step in session.step))
        for session in days.rollout.session
    )
    return days._replace(rollout=replace(days.rollout, session=sessions))


def _in_words(step: Step, lines: dict[str, str]) -> Step:
    match step:
        case Tell():
            return replace(step, says={name: lines.get(s, s) for name, s in step.says.items()})
        case Question():
            return replace(step, text=lines.get(step.text, step.text))
        case Plant():
            return step


def _sentences(days: Days) -> list[str]:
    found: list[str] = []
    for step in days.rollout.steps():
        match step:
            case Tell():
                found += [sentence for sentence in step.says.values() if sentence in days.values]
            case Question():
                found.append(step.text)
            case Plant():
                pass
    return found


def _keeps(said: str, value: str | None) -> bool:
    if value is None:
        return said.endswith("?")
    return statements(said) == [said] and holds(words(said), words(value))
