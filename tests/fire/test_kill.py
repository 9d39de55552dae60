"""Writers that are killed: what was acknowledged is there once, and the session goes on (H1).

HOLDFAST_KILL_ROUNDS says how often.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from fire.kill import rounds

ROUNDS = int(os.environ.get("HOLDFAST_KILL_ROUNDS", "4"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_killed_while_writing(kind: str, tmp_path: Path) -> None:
    for finding, _ in rounds(kind, tmp_path, ROUNDS, random.Random()):
        assert finding.problems == []
