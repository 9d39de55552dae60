"""A few conversations with a web service whose replicas and workers are killed (H9)."""

from __future__ import annotations

import pytest

from real_sessions import WHOLE
from stress.web_service import run_service


@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if WHOLE else ["postgres"])
def test_h9_conversations_survive_kills_of_replicas_and_workers(kind: str) -> None:
    run = run_service(kind, conversations=4, turns=4, kills=True, clients=4)
    assert run.problems == []
    assert run.counts["turns"] == 16
