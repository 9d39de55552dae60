"""Killed writers: acknowledged events are stored once, and the session remains usable (H1).

HOLDFAST_KILL_ROUNDS is the number of rounds.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from stress.kill import run_rounds

ROUNDS = int(os.environ.get("HOLDFAST_KILL_ROUNDS", "4"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_session_killed_writers_leave_consistent_log(kind: str, tmp_path: Path) -> None:
    for check, _ in run_rounds(kind, tmp_path, ROUNDS, random.Random()):
        assert check.problems == []
