"""A reader who follows a common flow passes few files: `scripts/flows.py` counts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WITHIN = ("compact, nothing due", "compact, ledger", "append", "service.compact")
"""The flows that are within their bounds."""


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    """What a new process counts: a flow that ran before would be warm in another way."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "flows.py", "--json"], capture_output=True, text=True, check=False
    )
    figures: dict[str, dict[str, int]] = json.loads(done.stdout)
    return figures


@pytest.mark.parametrize("flow", WITHIN)
def test_flow_enters_no_more_files_than_its_bound(flow: str, counted: dict[str, dict[str, int]]) -> None:
    assert 0 < counted[flow]["files"] <= counted[flow]["bound"]
