"""Processes that are killed in the midst of every operation leave logs that agree with a model (S3, H1)."""

from __future__ import annotations

import os

import pytest

from stress.session_processes import KINDS, rounds

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.mark.parametrize("kind", KINDS if THOROUGH else KINDS[:1])
def test_h1_killed_processes_leave_logs_that_agree_with_a_model(kind: str) -> None:
    found, killed = next(rounds(kind, seconds=1, seed=kind, pause=1))
    assert found.problems == []
    assert killed >= 3
    assert any(name.endswith(": done") for name in found.counts)
