"""A turn in real processes: killed at any call of the store, or several at once (H9)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from turn_loop import EXPECTED

PROGRAM = Path(__file__).with_name("turn_processes.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")


def run(path: Path, how: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(PROGRAM), f"sqlite:///{path / 'turns.db'}", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_h9_turn_killed_at_any_call_goes_on_in_another_process(tmp_path: Path) -> None:
    reports = run(tmp_path, "killed")
    assert len(reports) > 5
    assert [report["events"] for report in reports] == [EXPECTED] * len(reports)
    assert not [problem for report in reports for problem in report["problems"]]


def test_h9_processes_do_one_turn_once_and_others_one_after_the_other(tmp_path: Path) -> None:
    (report,) = run(tmp_path, "together")
    assert report["events"][: len(EXPECTED)] == EXPECTED
    rest = report["events"][len(EXPECTED) :]
    turns = [rest[start : start + len(EXPECTED)] for start in range(0, len(rest), len(EXPECTED))]
    assert sorted(turns) == [[name.replace("t/", f"t{number}/", 1) for name in EXPECTED] for number in range(4)]
    assert not report["problems"]
