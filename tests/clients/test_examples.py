"""The examples of the adapters, run as a reader would."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "package", "said"),
    [
        ("langgraph_agent", "langchain", "Your cat is called Miso."),
        ("pydantic_ai_agent", "pydantic_ai", "Miso."),
        ("mcp_client", "mcp", "admitted: It bears on the question"),
    ],
)
def test_an_example_runs(name: str, package: str, said: str) -> None:
    pytest.importorskip(package, reason="needs its extra: make clients")
    run = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=True
    )
    assert said in run.stdout
