"""Model names as users write them."""

import subprocess
import sys
from pathlib import Path

import pytest

from assay.errors import ConfigError
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.models.opening import open_model, parse_spec
from assay.runtime.settings import Settings

from .fault_server import answer, http, serving
from .support import KEY, asking


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("locl", "did you mean 'local'"),
        ("gpt-4", "known: cassette, local, openai, scripted"),
        ("", "unknown model"),
        ("openai", "lacks"),
        ("openai:", "lacks"),
        ("cassette", "lacks"),
        ("local:a\0b", "NUL"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_ones(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_spec(spec)


def test_what_follows_the_first_colon_is_kept() -> None:
    assert parse_spec("openai:org/model:tag") == ("openai", "org/model:tag")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("local:smolm2-135m", "did you mean 'smollm2-135m'"),
        ("local:none/x.gguf", "no model file"),
        ("local:../../etc/passwd", "unknown local model"),
        ("scripted:none.toml", "No such file"),
        ("cassette:none.jsonl", "No such file"),
    ],
)
async def test_what_is_not_there_is_said(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        async with open_model(spec, settings=Settings()):
            pass


async def test_a_base_url_goes_with_an_endpoint_only() -> None:
    with pytest.raises(ConfigError, match="base URL"):
        async with open_model("scripted", settings=Settings(), base_url="http://x"):
            pass


async def test_an_endpoint_on_this_machine_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async with (
        serving(http(answer("Paris"))) as server,
        open_model("openai:m", settings=Settings(), base_url=server.url) as model,
    ):
        completion = await model.complete(asking())

        assert model.identity == f"openai:m@{server.url}"

    assert completion.text == "Paris"
    assert server.bodies[0]["model"] == "m"


@pytest.mark.parametrize(
    ("url", "env", "said"),
    [
        ("http://example.org/v1", {}, "set OPENAI_API_KEY"),
        (None, {}, "set OPENAI_API_KEY"),
        ("ftp://localhost/v1", {}, "http://HOST:PORT"),
        ("localhost:8080", {}, "http://HOST:PORT"),
        ("http://localhost:x/v1", {}, "malformed"),
        ("http://me:secret@localhost/v1", {}, "user or password"),
        ("http://localhost/v1?key=1", {}, "query"),
        ("http://localhost", {"OPENAI_API_KEY": "sk\n"}, "characters"),
    ],
)
def test_an_unusable_endpoint_is_refused(url: str | None, env: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        Endpoint.of("m", base_url=url, env=env)

    assert "secret" not in str(raised.value)


def test_a_key_is_not_shown() -> None:
    endpoint = Endpoint.of("m", base_url=None, env={"OPENAI_API_KEY": KEY})

    assert KEY not in repr(endpoint)
    assert KEY not in endpoint.identity


def test_help_loads_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys, assay, assay.cli.app, assay.runtime.models.opening\n"
        "assay.cli.app.build_app()\n"
        "print([m for m in ('openai', 'xllamacpp', 'huggingface_hub') if m in sys.modules])"
    )

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
