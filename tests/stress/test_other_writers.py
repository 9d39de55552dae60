"""A short history over each store, with other writers beside a gateway and keepers."""

from __future__ import annotations

import pytest

from stress.other_writers import STORES, run_episodes


@pytest.mark.parametrize("kind", STORES)
def test_conversations_survive_what_others_do_to_their_sessions(kind: str) -> None:
    counts = run_episodes(1, seed=7, kinds=(kind,), steps=8, most=1)
    assert counts["violations"] == 0
    assert counts["steps of clients"] >= 30 and counts["steps of keepers"] >= 16
