"""Memories from other systems, and back, by the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import build_app
from assay.errors import ConfigError
from assay.runtime.exchange.formats import read

MEM0 = {
    "results": [
        {
            "id": "1",
            "memory": "Ann's cat is called Miso.",
            "user_id": "ann",
            "created_at": "2026-01-02T03:04:05+00:00",
        }
    ]
}
ITEMS = [
    {"namespace": ["memories", "ann"], "key": "k", "value": {"text": "Ann's cat is called Miso."}}
]
LINE = {"text": "Ann's cat is called Miso.", "user": "ann"}
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "My cat is called Miso."},
    {"role": "assistant", "content": "A lovely name."},
]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(build_app(), ["bank", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def take_in(tmp_path: Path, content: object, *more: str) -> dict[str, object]:
    source = tmp_path / "export.json"
    source.write_text(json.dumps(content))
    told = run(
        "import", str(source), "--bank", str(tmp_path / "bank"), "--embedder", "hashing",
        "--json", *more,
    )  # fmt: skip
    found: dict[str, object] = json.loads(told)
    return found


def give(tmp_path: Path, kind: str) -> str:
    return run(
        "export", "--bank", str(tmp_path / "bank"), "--embedder", "hashing", "--user", "ann",
        "--format", kind,
    )  # fmt: skip


@pytest.mark.parametrize("content", [MEM0, ITEMS, LINE], ids=["mem0", "langgraph", "jsonl"])
def test_statements_come_in_once_and_go_out_in_every_format(
    tmp_path: Path, content: object
) -> None:
    assert take_in(tmp_path, content)["records"] == 1
    assert take_in(tmp_path, content)["records"] == 1

    [line] = give(tmp_path, "jsonl").splitlines()
    assert json.loads(line)["text"] == "Ann's cat is called Miso."
    [memory] = json.loads(give(tmp_path, "mem0"))["results"]
    assert (memory["memory"], memory["user_id"]) == ("Ann's cat is called Miso.", "ann")
    [item] = json.loads(give(tmp_path, "langgraph"))
    assert item["value"] == {"text": "Ann's cat is called Miso."}


def test_what_goes_out_comes_back_the_same(tmp_path: Path) -> None:
    take_in(tmp_path, MEM0)
    for kind in ("jsonl", "mem0", "langgraph"):
        contents = read(give(tmp_path, kind).encode(), "again")
        assert contents.format == kind
        [statement] = contents.statements
        assert statement.text == "Ann's cat is called Miso."
        assert str(statement.claimed_at) == "2026-01-02 03:04:05+00:00"


def test_a_chat_log_becomes_turns_and_what_the_user_stated(tmp_path: Path) -> None:
    told = take_in(tmp_path, CHAT, "--user", "ann")

    assert told == {"format": "chat", "records": 1, "turns": 2}
    assert take_in(tmp_path, CHAT, "--user", "ann") == told
    assert "My cat is called Miso." in give(tmp_path, "jsonl")
    assert len(give(tmp_path, "jsonl").splitlines()) == 1


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"text": "a"}\n{oops', "line 2: expected a JSON object"),
        (b'{"colour": "red"}', "none of the formats jsonl, mem0, langgraph, chat"),
        (b"[]", "nothing is in it"),
        (b'[{"memory": "a", "created_at": "yesterday"}]', "entry 1: no entry of mem0"),
        (b'[{"text": "a"}, {"words": "b"}]', "entry 2: no entry of jsonl"),
    ],
)
def test_a_bad_file_says_where_and_what(raw: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(raw, "export.json")


def test_whose_memory_it_is_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--user"):
        take_in(tmp_path, CHAT)


@pytest.mark.parametrize("kind", ["jsonl", "mem0", "langgraph"])
def test_what_came_from_outside_is_not_the_user_s_after_a_round_trip(
    tmp_path: Path, kind: str
) -> None:
    take_in(tmp_path, MEM0, "--writer", "external")
    (tmp_path / "again.json").write_text(give(tmp_path, kind))
    other = tmp_path / "other"
    run(
        "import", str(tmp_path / "again.json"), "--bank", str(other), "--embedder", "hashing",
    )  # fmt: skip
    told = run(
        "export", "--bank", str(other), "--embedder", "hashing", "--user", "ann",
    )  # fmt: skip
    found = json.loads(told)
    assert (found["writer"], found["channel"]) == ("external", "import:mem0")
