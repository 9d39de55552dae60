"""Two processes on one session: the loser of a race reports a conflict, and nothing is lost (S3, H1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from stress.two_writers import race, store_address

LEAST = 40


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_session_two_processes_lose_nothing(kind: str, tmp_path: Path) -> None:
    check, counts = race(store_address(kind, tmp_path), tmp_path, seconds=60, least=LEAST)
    assert check.problems == []
    assert check.compactions == counts["compacted"] >= LEAST
    assert counts["conflict"] >= LEAST
