"""Ten compactions in a row with a model that forgets half of what it is told: the log does not forget (H3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.forgetting import WISHES, is_worth_it, lived

from holdfast.examples import example_path
from real_sessions import SESSIONS, transcript

LONG = [example_path("harbor"), *[path for path in SESSIONS[::7] if is_worth_it(transcript(path), 6_000)]]


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name[:13])
def test_h3_task_wishes_files_and_errors_are_there_after_the_tenth(path: Path) -> None:
    kept = lived(transcript(path), verify=True, target=6_000, rounds=10)
    assert kept.whole, kept
    assert kept.tokens <= 6_000


def test_h3_without_it_most_of_that_is_gone() -> None:
    alone = lived(transcript(example_path("harbor")), verify=False, target=6_000, rounds=10)
    assert alone.wishes < len(WISHES) // 2
    assert not alone.whole
