"""The fold from events to a context: what each kind of event does to a view (P6, L13)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.context import Checkpoint, HeadMessage, View
from holdfast.context.checkpoint import Carry
from holdfast.context.events import Event, EventKind
from holdfast.messages import framed_message
from holdfast.tokens import estimator_for


def view_of(*events: Event, format: str = "openai-chat", overhead: tuple[str, ...] = ()) -> View:
    view = View(estimator_for("chars/4"), format=format, prompt_overhead=overhead)
    for event in events:
        view.append(event)
    return view


def message(seq: int, role: str, content: str, **body: Any) -> Event:
    return Event(f"e{seq}", EventKind.MESSAGE, "", {"message": {"role": role, "content": content}, **body}, None, seq)


def texts(view: View) -> list[str]:
    return [shown.text for shown in view.context_messages()]


TURNS = [message(1, "user", "one"), message(2, "assistant", "two"), message(3, "user", "three")]


def test_fold_messages_appear_in_the_order_of_the_log() -> None:
    view = view_of(*TURNS)
    assert texts(view) == ["one", "two", "three"]
    assert (view.turn_count, view.event_count, view.version) == (2, 3, 3)


def test_fold_counts_each_message_once_and_the_prompt_overhead() -> None:
    assert view_of(*TURNS).tokens == 3 * 2 + 1 + 1 + 2
    assert view_of(*TURNS, overhead=("x" * 40,)).tokens == view_of(*TURNS).tokens + 10


def test_fold_uses_units_stored_by_the_same_estimator() -> None:
    assert view_of(message(1, "user", "one", units=50, counter="chars/4")).tokens == 50
    assert view_of(message(1, "user", "one", units=50, counter="other")).tokens == 3


def test_fold_synthetic_and_aside_messages_are_no_turns() -> None:
    view = view_of(*TURNS, message(4, "user", "continue", aside=True), message(5, "user", "a note", synthetic=True))
    assert view.turn_count == 2
    assert texts(view) == ["one", "two", "three", "continue", "a note"]


def test_fold_notes_are_no_turns_also_where_nothing_marks_them() -> None:
    """A list that another process compacted may be appended as it is."""
    ours, foreign = (
        framed_message("The tide table is lost."),
        "This session is being continued from a previous conversation.",
    )
    view = view_of(
        message(1, "user", ours.text), message(2, "user", foreign), message(3, "user", "When is high water?")
    )
    assert (view.turn_count, view.synthetic, view.turns) == (1, [0, 1], [2])


def test_fold_unknown_kinds_change_nothing() -> None:
    view = view_of(*TURNS, Event("e4", "from the future", "", {"anything": 1}, None, 4))
    assert texts(view) == ["one", "two", "three"]


def test_fold_pin_and_unpin() -> None:
    pin = Event("e4", EventKind.PIN, "", {"event": "e1", "pinned": True}, None, 4)
    assert view_of(*TURNS, pin).pins == {"e1"}
    unpin = msgspec.structs.replace(pin, id="e5", seq=5, body={"event": "e1", "pinned": False})
    assert view_of(*TURNS, pin, unpin).pins == set()


def test_fold_checkpoint_shows_its_head_before_the_events_after_it() -> None:
    view = View(estimator_for("chars/4"), format="openai-chat")
    note = framed_message("notes")
    checkpoint = Checkpoint(boundary="e2", carry=Carry(round=3))
    view.start_from("c1", checkpoint, [HeadMessage("note", note)], 4)
    view.append(TURNS[2])
    assert texts(view) == [note.text, "three"]
    assert (view.checkpoint.carry.round, view.checkpoint_id) == (3, "c1")


def test_fold_attempt_is_remembered_until_the_next_message() -> None:
    attempt = Event("e4", EventKind.ATTEMPT, "", {"failures": 2, "retry_at": 9.0, "why": "x"}, None, 4)
    view = view_of(*TURNS, attempt)
    assert (view.attempted, view.failures) == (True, 2)
    view.append(message(5, "user", "four"))
    assert (view.attempted, view.failures) == (False, 2)


def test_fold_calls_wait_until_their_results_come() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [_call("a"), _call("b")]}
    events = [TURNS[0], Event("e2", EventKind.MESSAGE, "", {"message": call}, None, 2)]
    assert [waiting.id for waiting in view_of(*events).pending_calls] == ["a", "b"]
    results = [
        Event(
            f"r{id}",
            EventKind.MESSAGE,
            "",
            {"message": {"role": "tool", "tool_call_id": id, "content": "ok"}},
            None,
            seq,
        )
        for seq, id in enumerate("ab", 3)
    ]
    assert view_of(*events, *results).pending_calls == ()


def test_fold_late_result_of_a_closed_call_is_not_shown() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [_call("a")]}
    closing = {"role": "tool", "tool_call_id": "a", "content": "(interrupted)"}
    late = {"role": "tool", "tool_call_id": "a", "content": "late"}
    view = view_of(
        TURNS[0],
        Event("e2", EventKind.MESSAGE, "", {"message": call}, None, 2),
        Event("e3", EventKind.MESSAGE, "", {"message": closing, "closes": True}, None, 3),
        message(4, "user", "go on"),
        Event("e5", EventKind.MESSAGE, "", {"message": late}, None, 5),
    )
    assert "late" not in str(view.context_messages())


def test_fold_snapshot_does_not_grow_with_the_view() -> None:
    view = view_of(*TURNS)
    snapshot = view.snapshot()
    view.append(message(4, "assistant", "four"))
    assert len(snapshot.context_messages()) == 3
    assert len(view.context_messages()) == 4


def _call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
