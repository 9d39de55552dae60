"""Where sessions are cut, in how many pieces they come, and to which half they belong."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.lab.corpus import drawn, in_half, is_for_learning, session_files, session_name
from holdfast.lab.cuts import cuts, evenly
from holdfast.lab.rolling import chunks, places_to_ask
from holdfast.messages import Message, Text, ToolCall, assistant, user
from holdfast.transcripts import PastCompaction
from lab_story import long_history, transcript, used


def test_cuts_are_before_a_reply_and_leave_calls_behind_them() -> None:
    history = long_history(180)
    found = list(cuts(transcript(history)))
    assert len(found) == 6, "at every eighth, but the first: too little stands before it"
    for cut in found:
        assert len(cut.before) < len(history)
        assert history[len(cut.before)].role == "assistant"
        assert sum(len(message.calls) for message in cut.after) <= 41


def test_few_sessions_may_be_cut_more_often() -> None:
    history = transcript(long_history(180))
    often = [len(cut.before) for cut in cuts(history, evenly(31))]
    assert len(often) > 20
    assert {len(cut.before) for cut in cuts(history)} <= set(often), "where it is cut by default, it is cut then, too"


def test_a_short_history_is_not_cut() -> None:
    assert list(cuts(transcript(long_history(6)))) == []


def test_only_what_was_visible_before_the_first_compaction_is_cut() -> None:
    history = long_history(180)
    place = next(n for n in range(600, len(history)) if history[n].role == "user")
    history.insert(place, user("This session is being continued: summary_of_all"))
    done = transcript(history, (PastCompaction(place, summary="the summary"),))
    found = list(cuts(done))
    assert found and all(len(cut.before) <= place and cut.summary is None for cut in found)
    (last,) = cuts(done, (1.0,))
    assert (len(last.before), last.summary) == (place, "the summary")
    assert "summary_of_all" not in "".join(message.text for message in last.after)


def test_what_stands_after_a_compaction_without_a_summary_is_no_summary() -> None:
    history = long_history(180)
    place = next(n for n in range(600, len(history)) if history[n].role == "user")
    history.insert(place, user("Please go on with mooring_nine"))
    (last,) = cuts(transcript(history, (PastCompaction(place),)), (1.0,))
    assert last.after[0].text == "Please go on with mooring_nine"


def test_system_messages_stand_beside_what_is_compacted() -> None:
    system = Message("system", (Text("be brief " * 40),))
    found = list(cuts(transcript([system, *long_history(180)])))
    assert found and all(message.role != "system" for cut in found for message in cut.before)


def test_pieces_hold_everything_once_and_part_no_call_from_its_result() -> None:
    history = long_history(20)
    for count in (1, 3, 5, 10):
        pieces = chunks(history, count)
        assert len(pieces) == count
        assert [message for piece in pieces for message in piece] == history
        for piece in pieces:
            called = {call.id for message in piece for call in message.calls}
            assert called == {result.call_id for message in piece for result in message.results}


def test_a_short_history_has_fewer_pieces() -> None:
    assert len(chunks([user("a"), assistant("b"), user("c"), assistant("d")], 10)) == 3
    assert chunks([], 3) == []


def test_no_place_to_ask_while_a_call_is_open() -> None:
    both = [assistant("two at once"), *(Message("assistant", (ToolCall(n, "look", {}),)) for n in "ab")]
    done = used("look", "x", where="y")
    assert places_to_ask([user("go"), *both, *done, assistant("end")]) == [1]
    assert places_to_ask([user("go"), *both, *done, assistant("a"), user("b"), assistant("c")]) == [1, 8]
    assert places_to_ask([user("go"), *done, assistant("end")]) == [1, 3]


def test_each_session_belongs_to_one_half_by_its_id() -> None:
    names = [f"session-{n}" for n in range(400)]
    learning = [name for name in names if is_for_learning(name)]
    assert 150 < len(learning) < 250
    for name in names:
        assert in_half(name, "learn") != in_half(name, "report")
        assert in_half(name, "all")
    assert is_for_learning("harbor.json") and not is_for_learning("review.json"), "never another half"


def test_a_session_is_called_by_its_id_wherever_its_file_lies() -> None:
    assert session_name(transcript(long_history(1)), Path("here/messages.json")) == "a-session"


def test_plain_files_of_one_name_are_told_apart_wherever_their_folder_lies() -> None:
    one, other = (msgspec.structs.replace(transcript(long_history(rounds)), id=None) for rounds in (1, 2))
    called = session_name(one, Path("one/messages.json"))
    assert called.startswith("messages.json")
    assert called == session_name(one, Path("moved/one/messages.json"))
    assert called != session_name(other, Path("other/messages.json"))


def test_sessions_are_found_in_folders_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.jsonl", "deep/a.json.gz", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert [file.name for file in session_files(tmp_path)] == ["b.jsonl", "a.json.gz"]
    assert session_files(tmp_path / "b.jsonl") == [tmp_path / "b.jsonl"]
    with pytest.raises(InvalidInput, match="no file or folder"):
        session_files(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="No session files"):
        session_files(tmp_path / "notes.txt")


def test_a_part_of_many_sessions_is_drawn_the_same_each_time() -> None:
    files = [Path(f"folder/{n}.jsonl") for n in range(50)]
    some = drawn(files, 10)
    assert len(some) == 10 and some == sorted(some, key=files.index)
    assert drawn(list(reversed(files)), 10) == list(reversed(some))
    assert drawn(files, 50) == files == drawn(files, 99)
    assert set(some) <= set(drawn(files, 20))


def test_of_files_with_one_name_not_only_the_first_are_drawn() -> None:
    files = [Path(f"{n:02}/messages.json") for n in range(50)]
    some = drawn(files, 10)
    assert some != files[:10]
    assert drawn(list(reversed(files)), 10) == list(reversed(some))
