"""Measuring one session: real summaries, failing contestants, files with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from holdfast.lab.contestants import (
    LEDGER,
    REAL,
    ContestantResult,
    ContestantTask,
    Lineup,
    choose_contestants,
    count_message_tokens,
)
from holdfast.lab.report import build_report
from holdfast.lab.results import LabSettings, NotMeasured, ScoreRow, SessionResults
from holdfast.lab.run import run_lab
from holdfast.lab.trial import NO_ROOM, SessionTrial, measure_session
from holdfast.messages import Message, user
from holdfast.tokens import estimator_for
from holdfast.transcripts import PastCompaction
from holdfast.transcripts.examples import example_path
from lab_story import long_history, transcript, write_session

QUICK = LabSettings(budgets=(4_000,), rounds=(), cuts=1, half="all", contestants=("tail w", "ledger"))


@pytest.fixture(scope="module")
def history() -> list[Message]:
    return long_history(120)


def broken(*_: object) -> None:
    raise ValueError("no way")


def at_summary(history: Sequence[Message], summary: str | None) -> dict[str, ScoreRow]:
    """Rows at the size of the tool's own summary, written after two thirds of the session."""
    place = next(n for n in range(len(history) * 2 // 3, len(history)) if history[n].role == "user")
    compactions = (PastCompaction(place, summary=summary),)
    messages = [*history[:place], user(summary or "cleared"), *history[place:]]
    found = SessionTrial("a-session", transcript(messages, compactions), QUICK).results("a-session.jsonl")
    assert all(row.cut == place for row in found.at_summary)
    return {row.contestant: row for row in found.at_summary}


def test_contestants_get_size_of_real_summary(history: list[Message]) -> None:
    summary = "Round after round of moorings was looked at, and every berth is done. " * 100
    rows = at_summary(history, summary)
    assert set(rows) == {REAL, "tail window", LEDGER}
    size = count_message_tokens([user(summary)], estimator_for("chars/4"))
    assert rows[REAL].tokens == size
    for row in rows.values():
        assert row.budget == size and row.tokens <= size


def test_real_summary_is_followed_by_newest_messages_at_twice_its_size(history: list[Message]) -> None:
    summary = "Every berth is done. " * 400
    place = next(n for n in range(len(history) * 2 // 3, len(history)) if history[n].role == "user")
    messages = [*history[:place], user(summary), *history[place:]]
    trial = SessionTrial("a-session", transcript(messages, (PastCompaction(place, summary=summary),)), QUICK)
    rows = {row.contestant: row for row in trial.results("a-session.jsonl").after_summary}
    size = count_message_tokens([user(summary)], estimator_for("chars/4"))
    assert set(rows) == {REAL, "tail window", LEDGER}
    assert {row.budget for row in rows.values()} == {2 * size}
    assert size < rows[REAL].tokens <= 2 * size


def test_real_summary_is_scored_alike(history: list[Message]) -> None:
    """Rounds after the compaction edit four berths from before it, with one line of each."""
    summary = "\n".join(f"value_{n}_3 = compute_3(berth_{n}, tide=levels[3]) in berth_{n}.py" for n in range(60, 120))
    summary += "\nand so on" * 1_000
    full, bare = at_summary(history, summary)[REAL].score, at_summary(history, "and so on " * 1_000)[REAL].score
    assert (full.names, full.edited_lines) == (1.0, 1.0)
    assert (bare.names, bare.edited_lines) == (0.0, 0.0)


def test_summary_contestant_is_measured_at_the_summary_only(
    history: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the summary itself is its context, whatever compact() would make of it."""
    given: list[str | None] = []

    def summary_alone(_: object, task: ContestantTask, __: object) -> ContestantResult:
        given.append(task.summary)
        return ContestantResult([user(task.summary or "")], 0.0)

    tail = choose_contestants(("tail w",)).contestants[0]
    ours = msgspec.structs.replace(tail, name="ours", compact=summary_alone, needs_summary=True)
    monkeypatch.setattr("holdfast.lab.trial._cached_contestants", lambda *_: Lineup((tail, ours)))
    summary = "Round after round of moorings was looked at, and every berth is done. " * 100
    rows = at_summary(history, summary)
    assert given == 2 * [summary], "at its size, and at twice its size"
    assert rows["ours"].score == rows[REAL].score and rows["ours"].surprise == rows[REAL].surprise


def test_no_comparison_without_readable_summary(history: list[Message]) -> None:
    assert at_summary(history, None) == {}
    assert at_summary(history, "ok") == {}, "no valid context is as small as this one"


def test_failing_contestant_does_not_stop_others(monkeypatch: pytest.MonkeyPatch) -> None:
    good = choose_contestants(("tail w",)).contestants[0]
    bad = msgspec.structs.replace(good, name="broken rule", compact=broken)
    monkeypatch.setattr("holdfast.lab.trial._cached_contestants", lambda *_: Lineup((good, bad)))
    found = measure_session(example_path(), QUICK)
    assert isinstance(found, SessionResults)
    assert {row.contestant for row in found.rows} == {"tail window"}
    assert found.failures == ("broken rule: ValueError: no way",)


def test_failure_reason_if_all_contestants_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    small = measure_session(example_path(), msgspec.structs.replace(QUICK, budgets=(1,)))
    assert isinstance(small, NotMeasured) and small.why == NO_ROOM
    bad = msgspec.structs.replace(choose_contestants(("tail w",)).contestants[0], compact=broken)
    monkeypatch.setattr("holdfast.lab.trial._cached_contestants", lambda *_: Lineup((bad,)))
    failed = measure_session(example_path(), QUICK)
    assert (
        isinstance(failed, NotMeasured)
        and failed.why == "no contestant could compact it: tail window: ValueError: no way"
    )


def test_fetch_uses_estimator_of_the_run() -> None:
    fetched = []
    for estimator in ("chars/4", "chars/3"):
        found = measure_session(
            example_path(), msgspec.structs.replace(QUICK, estimator=estimator, contestants=("random",))
        )
        assert isinstance(found, SessionResults)
        fetched.append(found.rows[0].score.fetch)
    assert fetched[1] > fetched[0] > 0


def test_plain_files_with_equal_names_are_separate_sessions(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / str(n)).mkdir()
    files = [write_session(tmp_path / str(n) / "messages.json", 120) for n in range(3)]
    (found,) = build_report(run_lab(files, QUICK), choose_contestants(QUICK.contestants)).kinds
    assert (found.sessions, found.cuts) == (3, 3)
    assert found.cells[0].intervals, "three sessions have an interval"
