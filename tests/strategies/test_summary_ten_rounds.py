"""Ten compactions in a row with a model that forgets half of its input: facts are restored from the log (H3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.forgetting import RULES, is_long_enough, run_rounds

from holdfast.transcripts.examples import example_path
from real_sessions import SESSIONS, transcript

LONG = [example_path("harbor"), *[path for path in SESSIONS[::14] if is_long_enough(transcript(path), 6_000)]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name[:13])
def test_h3_task_requests_files_and_errors_survive_ten_rounds(path: Path) -> None:
    kept = run_rounds(transcript(path), verify=True, target=6_000, rounds=10)
    assert kept.whole, kept
    assert kept.tokens <= 6_000


def test_h3_without_verification_most_facts_are_lost() -> None:
    alone = run_rounds(transcript(example_path("harbor")), verify=False, target=6_000, rounds=10)
    assert alone.rules < len(RULES) // 2
    assert not alone.whole
