"""Surprise: what the agent wrote next, predicted from a context."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.lab.contestants import Lineup, choose_contestants
from holdfast.lab.report import build_report
from holdfast.lab.results import LabSettings, SessionResults
from holdfast.lab.run import run_lab
from holdfast.lab.surprise import (
    COUNTED_CHARACTERS,
    HORIZONS,
    MESSAGE_CHARACTERS,
    PIECE_CHARACTERS,
    RESULT_CHARACTERS,
    ContinuationPart,
    Predictor,
    Surprise,
    choose_predictor,
    mean_by_horizon,
    next_passages,
    piece_of_another,
    ppmd_surprise,
    session_piece,
)
from holdfast.lab.text import plain_text
from holdfast.lab.trial import measure_session
from holdfast.messages import Message, Text, ToolCall, assistant, user
from holdfast.transcripts.examples import example_path
from lab_story import long_history, used, write_session

QUICK = LabSettings(budgets=(4_000,), rounds=(3,), cuts=1, half="all", contestants=("tail w", "ledger"))
TEXT = "The mooring of berth nine needs a longer chain before the spring tide.\n" * 2
OTHER = "Quarterly figures: 48,113 units sold in region Q7; margins fell by 3.9 percent (unaudited)."


def test_plain_text_is_name_values_and_results() -> None:
    call, answer = used("Read", "12 lines", file_path="/harbor/tides.py")
    assert (
        plain_text(Message("assistant", (Text("Let me look."), *call.parts))) == "Let me look.\nRead\n/harbor/tides.py"
    )
    assert plain_text(answer) == "12 lines" and plain_text(answer, results=2) == "12"
    assert plain_text(call, arguments=3) == "Read\n/ha"


def test_repeated_text_surprises_little_and_unrelated_text_much() -> None:
    passage = [ContinuationPart(1, True, TEXT)]
    known, unknown = (ppmd_surprise(context, passage)["surprise_1"] for context in (TEXT, OTHER))
    assert known < 0.5 < 1 < unknown


def test_text_between_is_read_but_not_counted() -> None:
    supplied = [ContinuationPart(0, False, TEXT), ContinuationPart(1, True, TEXT)]
    assert ppmd_surprise(OTHER, supplied)["surprise_1"] < 0.5
    assert ppmd_surprise(TEXT, [ContinuationPart(0, False, OTHER)]) == {}


def test_horizons_count_their_steps() -> None:
    costs = [(1, 10.0, 10), (2, 40.0, 10), (3, 40.0, 10), (8, 10.0, 10)]
    assert mean_by_horizon(costs) == {"surprise_1": 1.0, "surprise_3": 3.0, "surprise_8": 2.5}
    assert mean_by_horizon([(4, 8.0, 4)]) == {"surprise_8": 2.0}


def test_step_is_run_of_assistant_messages() -> None:
    thought, (call, answer) = assistant("I will look."), used("Read", "12 lines", file_path="tides.py")
    found = next_passages([user("go"), thought, call, answer, assistant("Done.")])
    assert found == [
        ContinuationPart(0, False, "go"),
        ContinuationPart(1, True, "I will look."),
        ContinuationPart(1, True, "Read\ntides.py"),
        ContinuationPart(1, False, "12 lines"),
        ContinuationPart(2, True, "Done."),
    ]


def test_steps_end_at_longest_horizon() -> None:
    after = [message for n in range(20) for message in used("Read", "seen", path=str(n))]
    found = next_passages(after)
    assert [one.step for one in found if one.counted] == list(range(1, 9))
    assert found[-1] == ContinuationPart(8, False, "seen")


def test_passages_have_limits() -> None:
    found = next_passages([user("u" * 2_000), *used("Write", "r" * 2_000, content="w" * 2_000)])
    assert [len(one.text) for one in found] == [MESSAGE_CHARACTERS, MESSAGE_CHARACTERS, RESULT_CHARACTERS]
    many = next_passages([message for _ in range(8) for message in used("Write", "ok", content="w" * 1_300)])
    counted = [len(one.text) for one in many if one.counted]
    assert sum(counted) == COUNTED_CHARACTERS and counted[-1] < counted[0]
    assert many[-1].counted, "nothing is read after the last counted character"


def test_parallel_results_are_cut_one_by_one() -> None:
    calls = [ToolCall(str(n), "Read", {"path": str(n)}) for n in range(2)]
    results = tuple(part for n in range(2) for part in used("Read", f"{n}" * 700)[1].parts)
    found = next_passages([Message("assistant", tuple(calls)), Message("tool", results)])
    assert found[-1].text == "0" * RESULT_CHARACTERS + "\n" + "1" * RESULT_CHARACTERS


def test_piece_is_of_next_session_of_same_kind(tmp_path: Path) -> None:
    files = [write_session(tmp_path / f"{n}.json", 30 + n) for n in range(2)]
    pieces = [session_piece(file) for file in files]
    assert pieces[0] and pieces[1] and pieces[0].text != pieces[1].text
    assert piece_of_another("mine", "messages", files) == pieces[0].text
    assert piece_of_another(pieces[0].session, "messages", files) == pieces[1].text, "never of the session itself"
    assert piece_of_another("mine", "claude-code", files) == pieces[0].text, "of another kind if there is no other"


def test_piece_ends_in_the_middle(tmp_path: Path) -> None:
    history = long_history(30)
    piece = session_piece(write_session(tmp_path / "one.json", 30))
    assert piece is not None and len(piece.text) == PIECE_CHARACTERS
    assert "\n".join(map(plain_text, history[: len(history) // 2])).endswith(piece.text)


def test_piece_of_bundled_example_without_other_sessions(tmp_path: Path) -> None:
    (tmp_path / "short.json").write_text('[{"role": "user", "content": "hello"}]')
    (tmp_path / "broken.json").write_text("{")
    harbor = session_piece(example_path())
    assert harbor is not None
    assert piece_of_another("mine", "codex", [tmp_path / "short.json", tmp_path / "broken.json"]) == harbor.text
    assert piece_of_another(harbor.session, "messages", [example_path()]) != harbor.text


def recorded(contexts: list[str]) -> Predictor:
    def predictor(context: str, passages: object) -> Surprise:
        contexts.append(context)
        return dict.fromkeys(HORIZONS, 1.0)

    return predictor


def test_same_piece_precedes_every_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write_session(tmp_path / f"{n}.json", 110 + n) for n in range(3)]
    contexts: list[str] = []
    monkeypatch.setattr("holdfast.lab.trial.choose_predictor", lambda *_: recorded(contexts))
    for place, other in ((0, 1), (2, 0)):
        contexts.clear()
        measure_session(files[place], QUICK, files)
        piece = session_piece(files[other])
        assert piece is not None and len(contexts) >= 2, "one for each contestant; equal contexts are predicted once"
        assert all(context.startswith(piece.text + "\n") for context in contexts)


def test_rows_and_cells_have_surprise_with_interval(tmp_path: Path) -> None:
    files = [write_session(tmp_path / f"{n}.json", 110 + 7 * n) for n in range(3)]
    results = run_lab(files, QUICK)
    for row in (row for session in results.sessions for row in (*session.rows, *session.in_a_row)):
        assert set(row.surprise) == set(HORIZONS) and all(0 < bits < 8 for bits in row.surprise.values())
    (kind,) = build_report(results, choose_contestants(QUICK.contestants)).kinds
    for cell in kind.cells:
        for key in HORIZONS:
            value, interval = cell.values[key], cell.intervals[key]
            assert value is not None and interval.low is not None and interval.high is not None
            assert interval.low <= value <= interval.high
    assert {lead.quantity for lead in kind.leads} >= set(HORIZONS)


def test_failing_contestant_has_no_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no way")

    good = choose_contestants(("tail w",)).contestants[0]
    bad = msgspec.structs.replace(good, name="broken rule", compact=broken)
    monkeypatch.setattr("holdfast.lab.trial._cached_contestants", lambda *_: Lineup((good, bad)))
    found = measure_session(example_path(), QUICK)
    assert isinstance(found, SessionResults)
    assert {row.contestant for row in found.rows if row.surprise} == {"tail window"}


def test_no_surprise_without_pyppmd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.lab.surprise.find_spec", lambda name: None)
    assert choose_predictor() is None
    found = measure_session(example_path(), QUICK)
    assert isinstance(found, SessionResults) and found.rows
    assert all(row.surprise == {} for row in found.rows)
