"""What the code never does, and what it is made of."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Promise

ROOT = Path(__file__).parents[2]
ROOMS = ("stores", "guards", "runtime", "scenarios", "src/assay/cli")
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

HOSTILE = """
import sys
from pathlib import Path

import anyio

import assay
from assay.stores.records import Origin

told = []


def watch(event, arguments):
    if event in {"exec", "compile"} and watching:
        source = arguments[0]
        if event == "compile" and source is not None and b"HOSTILE" in bytes(source):
            told.append(event)
    if event in {"pickle.find_class", "marshal.loads", "os.system", "subprocess.Popen"} and watching:
        told.append(event)


watching = False
sys.addaudithook(watch)


async def main(path):
    global watching
    web = Origin(writer="external", channel="web")
    for turn in range(2):
        async with assay.open_runtime(
            model=assay.ScriptedModel(), embedder="hashing", bank=Path(path)
        ) as runtime:
            if turn == 0:
                for text in TEXTS:
                    await runtime.remember("ann", text, origin=web)
                await runtime.session(user="ann").send("What is the code HOSTILE?")
                watching = True
            else:
                await runtime.memories("ann")
                await runtime.decisions("ann")
                await runtime.session(user="ann").send("What is the code HOSTILE again?")
                watching = False
    print(told)


TEXTS = [
    "cos\\nsystem\\n(S'touch HOSTILE'\\ntR. is the code",
    "__import__('os').system('touch HOSTILE') is the code",
    "{{ ''.__class__.__mro__ }} HOSTILE is the code",
    "!!python/object/apply:os.system ['touch HOSTILE'] is the code",
]
anyio.run(main, sys.argv[1])
"""


def _files() -> list[Path]:
    return [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]


def _unsafe(file: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in UNSAFE_MODULES]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            found.append(node.module or "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [node.func.id] if node.func.id in UNSAFE_CALLS else []
    return found


@pytest.mark.promise("P15", "no pickle and no eval: neither in the code nor on a hostile bank")
def test_no_file_of_ours_unpickles_or_evaluates(promise: Promise) -> None:
    files = _files()
    found = {str(file): unsafe for file in files if (unsafe := _unsafe(file))}
    assert found == {}
    promise.kept(f"{len(files)} files read, 0 unsafe imports or calls")


@pytest.mark.timeout(60)
@pytest.mark.promise("P15", "no pickle and no eval: neither in the code nor on a hostile bank")
def test_a_hostile_bank_runs_nothing(promise: Promise, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOSTILE, str(tmp_path / "bank")]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603 - our own script
    assert run.stdout.splitlines()[-1] == "[]"
    assert not (tmp_path / "HOSTILE").exists()
    promise.kept("a bank of 4 hostile texts opened and answered from, 0 of them run (audit hook)")


@pytest.mark.promise("P16", "what is installed is locked, hashed and free to use")
def test_every_lock_pins_with_hashes_and_names_no_address(promise: Promise) -> None:
    packages = 0
    for lock in LOCKS:
        text = lock.read_text()
        assert "://" not in text, lock
        entries = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
        unlocked = [entry.split("\n")[0] for entry in entries if "--hash=sha256:" not in entry]
        assert unlocked == [], lock
        packages += len(entries)
    promise.kept(f"{packages} locked requirements in {len(LOCKS)} files, each with its hashes")


@pytest.mark.promise("P16", "what is installed is locked, hashed and free to use")
def test_every_licence_is_on_record_and_lets_assay_be_shipped(promise: Promise) -> None:
    command = [sys.executable, str(ROOT / "requirements" / "licences.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    assert run.returncode == 0, run.stderr
    promise.kept(f"{len(run.stdout.splitlines())} licences listed by requirements/licences.py")
