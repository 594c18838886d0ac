"""Every situation of the data has a test that names it."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent


def test_no_situation_is_left_out(shared_data: Path) -> None:
    lines = (shared_data / "bug_cases.jsonl").read_text(encoding="utf-8").splitlines()
    known = {json.loads(line)["id"].lower() for line in lines}
    tests = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))

    assert known - set(re.findall(r"def test_(o\d\d)_", tests)) == set()
