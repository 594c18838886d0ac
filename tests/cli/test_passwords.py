"""Nothing that is printed shows a password, however the URL is spelled."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli import main
from assay.errors import ConfigError
from assay.runtime.nats.address import address_of, masked
from assay.stores.banks import shown

LEAST = 4
PASSWORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=LEAST)
FIXED = ("postgresql://", "ann@", "127.0.0.1:5432", "/assay", "nats://")


def leaked(password: str, said: str) -> list[str]:
    """Parts of a password that can be read, but for what is said anyway."""
    parts = {password[i : i + LEAST] for i in range(len(password) - LEAST + 1)}
    return [part for part in parts if part in said and not any(part in text for text in FIXED)]


def told_of_bank(url: str) -> str:
    try:
        return shown(url)
    except ConfigError as error:
        return str(error)


def told_of_bus(url: str) -> str:
    try:
        return f"{masked(url)} {address_of(url).shown}"
    except ConfigError as error:
        return f"{masked(url)} {error}"


# Words of the message itself.
ADVICE = told_of_bank("postgresql://ann:p/@h/x")


@given(PASSWORDS)
def test_no_part_of_a_banks_password_is_shown(password: str) -> None:
    said = told_of_bank(f"postgresql://ann:{password}@127.0.0.1:5432/assay")

    assert said == ADVICE or leaked(password, said) == []


@given(PASSWORDS.filter(lambda password: "," not in password))
def test_no_part_of_a_buss_password_is_shown(password: str) -> None:
    said = told_of_bus(f"nats://ann:{password}@127.0.0.1:5432/assay")

    assert leaked(password, said.partition(" cannot be read")[0]) == []


@pytest.mark.parametrize("password", ["p@ss", "p@ss/w0rd", "p4ss/w0rd", "p4ss?w0rd", "p#w0rd"])
def test_a_bank_whose_password_is_not_encoded_is_refused_with_what_to_do(password: str) -> None:
    with pytest.raises(ConfigError, match=r"percent-encode .*@ is %40") as refused:
        shown(f"postgresql://ann:{password}@h/x")

    assert "w0rd" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://u:p@ss@h:1/x", "nats://h:1/x"),
        ("nats://u:p/ss@h:1/x", "nats://h:1/x"),
        ("nats://u:p,ss@h:1", "nats://h:1"),
        ("u:secret@h", "h"),
        ("nats://u:s@[::1]:4222,v:t@two/x", "nats://[::1]:4222,two/x"),
    ],
)
def test_a_bus_is_masked_up_to_the_last_at(url: str, expected: str) -> None:
    assert masked(url) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("salvage", "postgresql://ann:s3cretpw@h/db", "--out", "new"),
        ("salvage", "old", "--out", "postgresql://ann:s3cretpw@h/db"),
        ("backup", "old", "postgresql://ann:s3cretpw@h/db"),
        ("restore", "postgresql://ann:s3cretpw@h/db", "new"),
    ],
    ids=" ".join,
)
def test_a_url_in_the_place_of_a_file_is_refused(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(["bank", *words])

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    assert ("bank in a folder" if words[0] == "salvage" else "got a URL") in said
    assert "s3cret" not in said
    assert list(tmp_path.iterdir()) == []
