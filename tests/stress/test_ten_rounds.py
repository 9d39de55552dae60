"""The shipped session through messages alone; ten rounds of all sessions in every format are a command of their own."""

from __future__ import annotations

from benchmarks.forgetting import RULES

from holdfast.transcripts.examples import example_path
from stress.ten_rounds import run_session


def test_h3_rounds_of_a_real_session_through_messages_alone_lose_nothing() -> None:
    report = run_session(example_path(), "gemini", "ledger", 3_000, rounds=3, length=40)
    assert report.losses == []
    assert report.alone.task and report.alone.rules == set(RULES)
