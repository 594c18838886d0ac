import json
from pathlib import Path

import pytest

from assay.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    output = capsys.readouterr()
    return int(stopped.value.code or 0), output.out, output.err


@pytest.mark.timeout(120)  # builds every plan of the lattice once
def test_one_family_replays_to_one_json_object(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "results" / "page.md"

    code, out, _ = run(
        capsys,
        "replay", "jointcorebench", "--family", "threshold", "--n", "8", "--json",
        "--processes", "1", "--markdown", str(page),
    )  # fmt: skip

    report = json.loads(out)
    assert code == 0
    assert (report["suite"], report["stage"], report["seed"]) == (
        "jointcorebench",
        "exact",
        26082701,
    )
    assert set(report["methods"]["core"]["rounds"]) == {"1", "4", "8", "16"}
    assert "--family threshold" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stage", "exakt"), "unknown stage 'exakt'; did you mean 'exact'?"),
        (("--family", "treshold"), "unknown family 'treshold'; did you mean 'threshold'?"),
        (("--track", "score"), "unknown track 'score'; did you mean 'scores'"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_one(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], message: str
) -> None:
    code, out, err = run(capsys, "replay", "jointcorebench", *arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_track_prints_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("picire")

    code, out, _ = run(
        capsys, "replay", "jointcorebench", "--track", "costs", "--json", "--processes", "1"
    )

    rows = json.loads(out)["tracks"]
    assert code == 0
    assert {row["variant"] for row in rows} == {"unequal channel costs"}


def test_group_deletion_is_explained_on_the_worked_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "explain", "jointcore")

    assert code == 0
    assert "core m10, cost 3, 9 questions" in out
