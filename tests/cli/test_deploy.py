"""The compose file starts what is there, with settings that exist."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from assay.cli.app import build_app
from assay.runtime.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ENVIRONMENT = {
    "SERVICE_KEY": "a-key-of-thirty-two-characters--",
    "POSTGRES_PASSWORD": "p",
    "NATS_PASSWORD": "n",
}
VARIABLE = re.compile(r"\$\{(\w+)(?::[-?][^}]*)?\}")


@pytest.fixture(scope="module")
def compose() -> Any:
    return msgspec.yaml.decode((DEPLOY / "compose.yaml").read_bytes())


def test_every_variable_is_in_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    example = dict(
        line.split("=", 1)
        for line in (DEPLOY / "example.env").read_text().splitlines()
        if line and not line.startswith("#")
    )

    assert set(VARIABLE.findall(text)) == set(example)
    assert not any("PASSWORD" in name or "KEY" in name for name, value in example.items() if value)


@pytest.mark.parametrize("service", ["serve", "worker"])
def test_settings_of_a_service_are_valid(compose: Any, service: str) -> None:
    given = compose["services"][service]["environment"]
    filled = {
        name: VARIABLE.sub(lambda found: ENVIRONMENT.get(found[1], ""), value)
        for name, value in given.items()
        if name.startswith(PREFIX)
    }
    filled["ASSAY_SERVE_MODEL"] = "local"

    settings = Settings.load(env=filled)

    assert settings.serve.bank == "postgresql://assay:p@postgres:5432/assay"
    assert settings.serve.bus == "nats://assay:n@nats:4222"


@pytest.mark.parametrize("service", ["serve", "worker"])
def test_a_command_of_a_service_is_there(compose: Any, service: str) -> None:
    command, *options = compose["services"][service]["command"]
    help_of = CliRunner().invoke(build_app(), [command, "--help"], env={"COLUMNS": "200"})

    assert help_of.exit_code == 0
    assert all(option in help_of.output for option in options if option.startswith("--"))


def test_the_image_gets_every_room() -> None:
    copied = set(re.findall(r"^COPY (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE))
    linked = {
        path.resolve().name for path in (ROOT / "src" / "assay").iterdir() if path.is_symlink()
    }

    assert linked | {"src", "requirements"} <= copied
