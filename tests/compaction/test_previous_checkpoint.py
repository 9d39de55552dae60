"""Compaction without a session, round after round: `previous=` takes the last result's checkpoint."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from client_lists import aider_requests
from holdfast import KeepLedger, PruneToolResults, SlidingWindow, TokenWindow, Truncate, check, compact
from holdfast.errors import CheckpointMismatch
from holdfast.strategies import KeepLast
from holdfast.triggers import always

Messages = list[dict[str, Any]]


def talk(start: int, turns: int) -> Messages:
    text = "about the work at some length " * 6
    return [
        {"role": role, "content": f"{role[0]}{number} {text}"}
        for number in range(start, start + turns)
        for role in ("user", "assistant")
    ]


def test_previous_with_history_equals_previous_with_result() -> None:
    history = talk(1, 60)
    first = compact(history, budget=1_000)
    more = talk(61, 40)
    by_history = compact(history + more, budget=1_000, previous=first.checkpoint)
    by_result = compact(first.messages + more, budget=1_000, previous=first.checkpoint)
    assert by_history.messages == by_result.messages
    assert by_history.checkpoint.boundary == by_result.checkpoint.boundary
    assert by_history.round == by_result.round == 2
    assert by_history.archived == by_result.archived


def test_previous_archived_messages_are_in_neither_list() -> None:
    history = talk(1, 60)
    first = compact(history, budget=1_000)
    second = compact(history + talk(61, 40), budget=1_000, previous=first.checkpoint)
    assert not [message for message in second.archived if message in first.archived]
    assert not [message for message in second.kept if message in first.archived]


def test_previous_under_budget_returns_same_view_and_checkpoint() -> None:
    history = talk(1, 60)
    first = compact(history, budget=1_000)
    again = compact([*history, {"role": "user", "content": "and?"}], budget=1_000, previous=first.checkpoint)
    assert again.outcome == "not_needed"
    assert again.messages == [*first.messages, {"role": "user", "content": "and?"}]
    assert again.checkpoint == first.checkpoint


def test_previous_note_is_replaced_and_keeps_counting() -> None:
    history, checkpoint, result = talk(1, 60), None, None
    for start in range(61, 161, 20):
        result = compact(history, budget=1_000, previous=checkpoint)
        checkpoint = result.checkpoint
        history += talk(start, 20)
    assert result is not None
    notes = [m for m in result.messages if "are no longer shown" in str(m["content"])]
    assert len(notes) == 1
    assert f"{len(history) - 40 - (len(result.messages) - 1)} messages" in notes[0]["content"]


def test_note_in_messages_without_previous_is_replaced() -> None:
    first = compact(talk(1, 60), budget=1_000)
    second = compact(first.messages + talk(61, 40), budget=1_000)
    notes = [m for m in second.messages if "are no longer shown" in str(m["content"])]
    assert len(notes) == 1
    assert f"{200 - (len(second.messages) - 1)} messages" in notes[0]["content"]


def test_checkpoint_round_trips_through_json() -> None:
    history = talk(1, 60)
    first = compact(history, budget=1_000)
    stored = msgspec.json.encode(first.checkpoint)
    more = history + talk(61, 40)
    expected = compact(more, budget=1_000, previous=first.checkpoint).messages
    assert compact(more, budget=1_000, previous=stored).messages == expected
    assert compact(more, budget=1_000, previous=msgspec.json.decode(stored)).messages == expected


def test_previous_with_other_messages_raises_checkpoint_mismatch() -> None:
    first = compact(talk(1, 60), budget=1_000)
    with pytest.raises(CheckpointMismatch, match="whole history"):
        compact(talk(500, 60), budget=1_000, previous=first.checkpoint)


@pytest.mark.parametrize("plan", [SlidingWindow(2), KeepLast(2)])
def test_system_message_never_becomes_a_user_message(plan: Any) -> None:
    """Regression: separated from the tool results before it, a system message was encoded as a user message."""
    options: dict[str, Any] = {"budget": 10**9, "format": "anthropic", "trigger": always, "strategy": plan}
    history: Messages = [
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far", "signature": "EuYBCkQY"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": "ok"},
    ]
    more: Messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "found"}]},
        {"role": "assistant", "content": "done"},
    ]
    first = compact(history, **options)
    assert {"role": "user", "content": "be brief"} not in first.messages
    by_history = compact(history + more, previous=first.checkpoint, **options)
    by_result = compact(first.messages + more, previous=first.checkpoint, **options)
    assert by_history.messages == by_result.messages
    assert by_history.messages[0] == history[0]


PLANS = [
    KeepLedger(400),
    SlidingWindow(6),
    TokenWindow(300),
    Truncate(max_tokens=400),
    PruneToolResults(protect=100, minimum=0),
]


@pytest.mark.parametrize("profile", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@given(data=st.data())
@settings(max_examples=min(60, settings().max_examples))
def test_rolling_by_history_equals_rolling_by_result(profile: str, data: st.DataObject) -> None:
    history: Messages = data.draw(histories.wire(profile))
    options: dict[str, Any] = {"budget": 10**9, "estimator": "chars/4", "format": profile, "trigger": always}
    stops = [stop for stop in range(1, len(history)) if check(history[:stop], profile, ready=True) == []]
    stops = sorted(data.draw(st.sets(st.sampled_from(stops), max_size=4))) if stops else []
    checkpoint, shown, at = None, [], 0
    for stop in [*stops, len(history)]:
        plan = data.draw(st.sampled_from(PLANS))
        by_history = compact(history[:stop], strategy=plan, previous=checkpoint, **options)
        by_result = compact(shown + history[at:stop], strategy=plan, previous=checkpoint, **options)
        assert by_history.messages == by_result.messages
        if check(history[:stop], profile) == []:
            assert len(by_history.archived) == len(by_result.archived)
        checkpoint, shown, at = by_result.checkpoint, by_result.messages, stop


@pytest.mark.parametrize("reminder", ["user", "sys"])
def test_previous_fits_a_history_whose_reminder_moves(reminder: Any) -> None:
    """aider moves its rules along with the newest user message, over several compactions."""
    text = "about the work at some length " * 6
    checkpoint, rounds = None, 0
    for request in aider_requests([f"u{number} {text}" for number in range(40)], reminder):
        result = compact(request, budget=1_200, previous=checkpoint, format="openai-chat")
        checkpoint, rounds = result.checkpoint or checkpoint, max(rounds, result.round)
    assert rounds >= 3
