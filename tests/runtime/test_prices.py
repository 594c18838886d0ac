"""A price list, and budgets in money that need one."""

from pathlib import Path

import pytest

from assay.errors import ConfigError
from assay.guards.budget import Price
from assay.runtime.settings import BudgetSettings, Settings

from .models.fault_server import answer, http, serving
from .models.support import endpoint
from .rooms import SESSION, USER, runtime

LISTED = '[prices."openai:m"]\nprompt = 0.15\ncompletion = 0.6\n'
IDENTITY = "openai:m@http://127.0.0.1/v1"


def loaded(path: Path, text: str) -> Settings:
    file = path / "settings.toml"
    file.write_text(text, encoding="utf-8")
    return Settings.load(file, env={})


def test_a_model_costs_what_its_table_says(tmp_path: Path) -> None:
    settings = loaded(tmp_path, LISTED + "[budget]\nmoney = 1.5\n")

    assert settings.price_of(IDENTITY) == Price(prompt=0.15, completion=0.6)
    assert settings.price_of("scripted") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[prices."openai:m"]\nprompt = -1\ncompletion = 1\n', "prompt"),
        ('[prices."openai:m"]\nprompt = 1\n', r"lacks \['completion'\]"),
        ('[prices."openai:m"]\nprompt = 1\ncompletion = nan\n', "completion"),
        ('[prices."openai:m"]\nprompts = 1\ncompletion = 1\n', "did you mean|prompts"),
        ('[prices]\n"openai:m" = 3\n', "expected a table"),
    ],
)
def test_a_price_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        loaded(tmp_path, text)


def test_a_budget_of_money_without_a_price_is_refused() -> None:
    settings = Settings(budget=BudgetSettings(money=1.0))

    with pytest.raises(ConfigError, match=r'add \[prices."openai:m"\]'):
        settings.price_of(IDENTITY)


async def test_a_reply_tells_what_it_cost_and_is_asked_again(tmp_path: Path) -> None:
    settings = loaded(tmp_path, LISTED)
    replies = [http({"error": {}}, status=500), http(answer("Noted."))]
    async with (
        serving(*replies) as server,
        endpoint(server.url) as model,
        runtime(model=model, guard="no_memory", settings=settings) as rt,
    ):
        reply = await rt.session(user=USER, session_id=SESSION).send("Hello.")

    assert reply.text == "Noted."
    assert reply.ledger.live == 2
    assert reply.ledger.money == pytest.approx((11 * 0.15 + 1 * 0.6) / 1e6)
