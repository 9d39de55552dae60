"""Cuts, pieces and halves of sessions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.lab.corpus import (
    even_fractions,
    in_half,
    is_for_learning,
    iter_cuts,
    sample_files,
    session_files,
    session_name,
)
from holdfast.lab.trial import reply_positions, split_history
from holdfast.messages import Message, Text, ToolCall, assistant, user
from holdfast.transcripts import PastCompaction
from lab_story import long_history, transcript, used


def test_cuts_are_before_a_reply_with_calls_after() -> None:
    history = long_history(180)
    found = list(iter_cuts(transcript(history)))
    assert len(found) == 6, "at every eighth, but the first: too few tokens before it"
    for cut in found:
        assert len(cut.before) < len(history)
        assert history[len(cut.before)].role == "assistant"
        assert sum(len(message.calls) for message in cut.after) <= 41


def test_cuts_count_is_configurable() -> None:
    history = transcript(long_history(180))
    often = [len(cut.before) for cut in iter_cuts(history, even_fractions(31))]
    assert len(often) > 20
    assert {len(cut.before) for cut in iter_cuts(history)} <= set(often), (
        "where it is cut by default, it is cut then, too"
    )


def test_cuts_skip_short_history() -> None:
    assert list(iter_cuts(transcript(long_history(6)))) == []


def test_cuts_end_at_first_compaction() -> None:
    history = long_history(180)
    place = next(n for n in range(600, len(history)) if history[n].role == "user")
    history.insert(place, user("This session is being continued: summary_of_all"))
    done = transcript(history, (PastCompaction(place, summary="the summary"),))
    found = list(iter_cuts(done))
    assert found and all(len(cut.before) <= place and cut.summary is None for cut in found)
    (last,) = iter_cuts(done, (1.0,))
    assert (len(last.before), last.summary) == (place, "the summary")
    assert "summary_of_all" not in "".join(message.text for message in last.after)


def test_cut_without_summary_has_none() -> None:
    history = long_history(180)
    place = next(n for n in range(600, len(history)) if history[n].role == "user")
    history.insert(place, user("Please go on with mooring_nine"))
    (last,) = iter_cuts(transcript(history, (PastCompaction(place),)), (1.0,))
    assert last.after[0].text == "Please go on with mooring_nine"


def test_cuts_exclude_system_messages() -> None:
    system = Message("system", (Text("be brief " * 40),))
    found = list(iter_cuts(transcript([system, *long_history(180)])))
    assert found and all(message.role != "system" for cut in found for message in cut.before)


def test_split_history_keeps_calls_with_results() -> None:
    history = long_history(20)
    for count in (1, 3, 5, 10):
        pieces = split_history(history, count)
        assert len(pieces) == count
        assert [message for piece in pieces for message in piece] == history
        for piece in pieces:
            called = {call.id for message in piece for call in message.calls}
            assert called == {result.call_id for message in piece for result in message.results}


def test_split_history_of_short_history_has_fewer_pieces() -> None:
    assert len(split_history([user("a"), assistant("b"), user("c"), assistant("d")], 10)) == 3
    assert split_history([], 3) == []


def test_reply_positions_skip_open_calls() -> None:
    both = [assistant("two at once"), *(Message("assistant", (ToolCall(n, "look", {}),)) for n in "ab")]
    done = used("look", "x", where="y")
    assert reply_positions([user("go"), *both, *done, assistant("end")]) == [1]
    assert reply_positions([user("go"), *both, *done, assistant("a"), user("b"), assistant("c")]) == [1, 8]
    assert reply_positions([user("go"), *done, assistant("end")]) == [1, 3]


def test_session_half_depends_on_id() -> None:
    names = [f"session-{n}" for n in range(400)]
    learning = [name for name in names if is_for_learning(name)]
    assert 150 < len(learning) < 250
    for name in names:
        assert in_half(name, "learn") != in_half(name, "report")
        assert in_half(name, "all")
    assert is_for_learning("harbor.json") and not is_for_learning("review.json"), "never another half"


def test_session_name_is_its_id() -> None:
    assert session_name(transcript(long_history(1)), Path("here/messages.json")) == "a-session"


def test_session_name_of_plain_file_depends_on_content() -> None:
    one, other = (msgspec.structs.replace(transcript(long_history(rounds)), id=None) for rounds in (1, 2))
    called = session_name(one, Path("one/messages.json"))
    assert called.startswith("messages.json")
    assert called == session_name(one, Path("moved/one/messages.json"))
    assert called != session_name(other, Path("other/messages.json"))


def test_session_files_finds_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.jsonl", "deep/a.json.gz", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert [file.name for file in session_files(tmp_path)] == ["b.jsonl", "a.json.gz"]
    assert session_files(tmp_path / "b.jsonl") == [tmp_path / "b.jsonl"]
    with pytest.raises(InvalidInput, match="does not exist"):
        session_files(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="No session files"):
        session_files(tmp_path / "notes.txt")


def test_sample_files_is_deterministic() -> None:
    files = [Path(f"folder/{n}.jsonl") for n in range(50)]
    some = sample_files(files, 10)
    assert len(some) == 10 and some == sorted(some, key=files.index)
    assert sample_files(list(reversed(files)), 10) == list(reversed(some))
    assert sample_files(files, 50) == files == sample_files(files, 99)
    assert set(some) <= set(sample_files(files, 20))


def test_sample_files_with_equal_names_uses_path() -> None:
    files = [Path(f"{n:02}/messages.json") for n in range(50)]
    some = sample_files(files, 10)
    assert some != files[:10]
    assert sample_files(list(reversed(files)), 10) == list(reversed(some))
