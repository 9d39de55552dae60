"""Two processes on one session: whoever loses a race says so, and nothing is lost (S3, H1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fire.two_writers import place_for, race


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_two_writers(kind: str, tmp_path: Path) -> None:
    finding, counts = race(place_for(kind, tmp_path), tmp_path, seconds=4)
    assert finding.problems == []
    assert finding.compactions == counts["compacted"] >= 3
    assert counts["conflict"] >= 3
