"""One session through the lab: the summary that its tool wrote, contestants that fail, files of one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from holdfast.examples import example_path
from holdfast.lab.contestants import LEDGER, REAL, Field, field, tokens_of
from holdfast.lab.report import report
from holdfast.lab.results import NotMeasured, Row, SessionResults
from holdfast.lab.run import run
from holdfast.lab.settings import Settings
from holdfast.lab.trial import NO_ROOM, Trial, try_session
from holdfast.messages import Message, user
from holdfast.tokens import estimator_for
from holdfast.transcripts import PastCompaction
from lab_story import long_history, transcript, write_session

QUICK = Settings(budgets=(4_000,), rounds=(), cuts=1, half="all", contestants=("tail w", "ledger"))


@pytest.fixture(scope="module")
def history() -> list[Message]:
    return long_history(120)


def broken(*_: object) -> None:
    raise ValueError("no way")


def at_summary(history: Sequence[Message], summary: str | None) -> dict[str, Row]:
    """A session whose tool compacted it after two thirds, and what everyone makes of the same size."""
    place = next(n for n in range(len(history) * 2 // 3, len(history)) if history[n].role == "user")
    compactions = (PastCompaction(place, summary=summary),)
    messages = [*history[:place], user(summary or "cleared"), *history[place:]]
    found = Trial("a-session", transcript(messages, compactions), QUICK).results("a-session.jsonl")
    assert all(row.cut == place for row in found.at_summary)
    return {row.contestant: row for row in found.at_summary}


def test_everyone_gets_the_size_of_the_real_summary(history: list[Message]) -> None:
    summary = "Round after round of moorings was looked at, and every berth is done. " * 100
    rows = at_summary(history, summary)
    assert set(rows) == {REAL, "tail window", LEDGER}
    size = tokens_of([user(summary)], estimator_for("chars/4"))
    assert rows[REAL].tokens == size
    for row in rows.values():
        assert row.budget == size and row.tokens <= size


def test_the_real_summary_is_measured_like_everyone_else(history: list[Message]) -> None:
    """Rounds after the compaction edit four berths from before it, with one line of each."""
    told = "\n".join(f"value_{n}_3 = compute_3(berth_{n}, tide=levels[3]) in berth_{n}.py" for n in range(60, 120))
    told += "\nand so on" * 1_000
    full, bare = at_summary(history, told)[REAL].score, at_summary(history, "and so on " * 1_000)[REAL].score
    assert (full.names, full.edited_lines) == (1.0, 1.0)
    assert (bare.names, bare.edited_lines) == (0.0, 0.0)


def test_where_no_summary_can_be_read_nobody_is_measured_beside_it(history: list[Message]) -> None:
    assert at_summary(history, None) == {}
    assert at_summary(history, "ok") == {}, "no valid context is as small as this one"


def test_a_contestant_that_fails_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    good = field(("tail w",)).contestants[0]
    bad = msgspec.structs.replace(good, name="broken rule", compact=broken)
    monkeypatch.setattr("holdfast.lab.trial._field", lambda *_: Field((good, bad)))
    found = try_session(example_path(), QUICK)
    assert isinstance(found, SessionResults)
    assert {row.contestant for row in found.rows} == {"tail window"}
    assert found.failures == ("broken rule: ValueError: no way",)


def test_why_a_session_that_can_be_cut_gave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    small = try_session(example_path(), msgspec.structs.replace(QUICK, budgets=(1,)))
    assert isinstance(small, NotMeasured) and small.why == NO_ROOM
    bad = msgspec.structs.replace(field(("tail w",)).contestants[0], compact=broken)
    monkeypatch.setattr("holdfast.lab.trial._field", lambda *_: Field((bad,)))
    failed = try_session(example_path(), QUICK)
    assert isinstance(failed, NotMeasured) and failed.why == "nobody could compact it: tail window: ValueError: no way"


def test_what_would_be_fetched_is_counted_by_the_estimator_of_the_run() -> None:
    fetched = []
    for estimator in ("chars/4", "chars/3"):
        found = try_session(
            example_path(), msgspec.structs.replace(QUICK, estimator=estimator, contestants=("random",))
        )
        assert isinstance(found, SessionResults)
        fetched.append(found.rows[0].score.fetch)
    assert fetched[1] > fetched[0] > 0


def test_plain_files_of_one_name_are_sessions_of_their_own(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / str(n)).mkdir()
    files = [write_session(tmp_path / str(n) / "messages.json", 120) for n in range(3)]
    (found,) = report(run(files, QUICK), field(QUICK.contestants)).kinds
    assert (found.sessions, found.cuts) == (3, 3)
    assert found.cells[0].intervals, "three sessions have an interval"
