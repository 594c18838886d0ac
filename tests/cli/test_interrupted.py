"""Ctrl-C during work of many processes: exit code 130, one line, and no process left."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

ASSAY = (sys.executable, "-c", "from assay.cli import main; main()")


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    "words",
    [
        "games --size 200000 --workers 2",
        "games --size 200000 --workers 1 --method meclear",
        "jointcorebench --processes 2",
    ],
)
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_an_interrupted_command_ends_at_once(words: str, *, whole_group: bool) -> None:
    with subprocess.Popen(  # noqa: S603 - ourselves
        [*ASSAY, "replay", *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _wait_for_work(process)
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=10)
        finally:
            process.kill()

    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("assay: interrupted")
    assert "Traceback" not in said
    _wait_for_the_end_of(process.pid)


def _wait_for_the_end_of(group: int) -> None:
    """Until no process is left; one that stays fails the test by its time limit."""
    while _of_group(group):
        os.sched_yield()


def _wait_for_work(process: "subprocess.Popen[str]") -> None:
    """Until it has computed for a while, on a slow or a fast machine: imports are over then."""
    while _seconds_of(process.pid) < 2.5:
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"ended by itself with {process.wait(0.05)}: {process.communicate()[1]}")


def _seconds_of(pid: int) -> float:
    """CPU seconds of a process and its group."""
    return sum(_cpu(one) for one in (_of_group(pid) or [pid]))


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _of_group(group: int) -> list[int]:
    """Processes of a group that still run."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
