"""Killed writers: acknowledged events are stored once, and the session remains usable (H1).

HOLDFAST_KILL_ROUNDS is the number of rounds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from stress.kill import run_rounds
from stress.kill_points import unsynced
from stress.system_calls import NOT_ALLOWED, Call, is_supported

ROUNDS = int(os.environ.get("HOLDFAST_KILL_ROUNDS", "4"))
OPERATIONS = ("append several", "pin", "compact by the ledger", "undo", "redact")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_session_killed_writers_leave_consistent_log(kind: str, tmp_path: Path) -> None:
    for check, _ in run_rounds(kind, tmp_path, ROUNDS, random.Random()):
        assert check.problems == []


@pytest.mark.skipif(not is_supported(), reason="system calls are traced on Linux only")
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_operation_killed_at_a_system_call_is_done_or_not(kind: str) -> None:
    """In a process of its own, which forks and waits for children."""
    operations = [argument for name in OPERATIONS for argument in ("--operation", name)]
    command = [sys.executable, "-m", "tests.stress.kill", "--points", "6", "--store", kind, *operations]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if NOT_ALLOWED in done.stderr:
        pytest.skip(NOT_ALLOWED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout


def test_unsynced_names_files_that_a_power_failure_would_lose() -> None:
    write, sync = Call("pwrite64", "/s.db-wal"), Call("fdatasync", "/s.db-wal")
    new = [Call("write", "/d/s.jsonl.new"), Call("fsync", "/d/s.jsonl.new")]
    rename, folder, done = (
        Call("rename", "/d/s.jsonl.new", "/d/s.jsonl"),
        Call("fsync", "/d"),
        Call("write", "pipe:[1]"),
    )
    assert unsynced([write, sync, *new, rename, folder, done, write]) == []
    assert unsynced([write, sync, write, done, sync]) == ["/s.db-wal was not synced before the acknowledgement"]
    assert unsynced([*new, rename, done]) == ["the folder of /d/s.jsonl was not synced before the acknowledgement"]
