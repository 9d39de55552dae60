"""Every input message is kept or archived, and never both (S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast import BlockingSessionService, MemoryStore, Outcome, PruneToolResults, compact
from holdfast.context.events import message_in
from holdfast.messages import Message, Reasoning, Text, ToolCall, ToolResult
from holdfast.strategies import KeepLast
from holdfast.triggers import always
from holdfast.types import Event
from sized import Messages, assistant, calls, result, user

PROFILES = ["anthropic", "gemini", "openai-chat", "openai-responses"]


def sorted_json(messages: list[Any]) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


def payloads(events: list[Event]) -> Messages:
    return [event.message for event in events]


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), keep=st.integers(1, 6))
def test_s2_kept_and_archived_add_up_to_the_input(profile: str, broken: bool, data: st.DataObject, keep: int) -> None:
    """Kept and archived are input messages, even if the input had to be repaired first."""
    messages = data.draw(histories.wire(profile, broken=broken))
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(keep), format=profile)
    assert sorted_json(payloads(after.kept + after.archived)) == sorted_json(messages)
    assert after.removed == len(after.archived)
    if after.outcome is not Outcome.COMPACTED:
        assert after.archived == []


def test_s2_kept_and_archived_are_in_order() -> None:
    messages = [user(10, f"u{number}x") for number in range(20)]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (payloads(after.archived), payloads(after.kept)) == (messages[:16], messages[16:])
    assert [event.seq for event in after.archived] == list(range(1, 17))


def test_s2_identical_messages_are_distinguished_by_position() -> None:
    messages: Messages = [user(10, "yes")] * 12
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (len(after.archived), len(after.kept)) == (8, 4)


def test_s2_edited_messages_are_kept_and_listed() -> None:
    messages = [user(10), calls("c1"), result("c1", 900), assistant(10), user(10)]
    after = compact(messages, budget=10**9, trigger=always, strategy=PruneToolResults(0, 100))
    assert (payloads(after.kept), after.archived, payloads(after.edited)) == (messages, [], [messages[2]])


def test_s2_orphan_result_is_archived() -> None:
    """It cannot be sent to a model, but it is listed as archived."""
    orphan = result("nobody", 30)
    messages = [orphan, *(user(10, f"u{number}x") for number in range(12))]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert orphan in payloads(after.archived)


def test_s2_partition_has_the_same_elements_with_and_without_a_session() -> None:
    """Events, with the ids and numbers by which notes and recall refer to them."""
    messages = [user(10, f"u{number}x") for number in range(20)]
    listed = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    with BlockingSessionService(MemoryStore(), estimator="chars/4") as sessions:
        session = sessions.create()
        sessions.append(session.id, messages)
        stored = sessions.compact(session.id, always, KeepLast(4))
    for ours, theirs in ((listed.kept, stored.kept), (listed.archived, stored.archived)):
        assert [(event.kind, event.seq, event.message) for event in ours] == [
            (event.kind, event.seq, event.message) for event in theirs
        ]


def test_s2_continued_list_numbers_messages_as_the_whole_history_does() -> None:
    messages = [user(10, f"u{number}x") for number in range(20)]
    first = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    more = [user(10, f"u{number}x") for number in range(20, 30)]
    options: dict[str, Any] = {
        "budget": 10**9,
        "trigger": always,
        "strategy": KeepLast(4),
        "previous": first.checkpoint,
    }
    by_history, by_result = compact(messages + more, **options), compact([*first.messages, *more], **options)
    assert by_history.archived == by_result.archived
    assert [event.seq for event in by_history.archived] == list(range(17, 27))


def test_s2_partition_of_neutral_messages_loses_no_part() -> None:
    """A message that its format sends as none or as several is still one event."""
    results = Message("tool", (ToolResult("a", (Text("one"),)), ToolResult("b", (Text("two"),))))
    messages = [
        Message("user", (Text("read both"),)),
        Message("assistant", (Reasoning("hm"),)),
        Message("assistant", (Text("I read"), ToolCall("a", "read", {}), ToolCall("b", "read", {}))),
        results,
        Message("user", (Text("and now?"),)),
    ]
    for profile in PROFILES:
        after = compact(messages, budget=10**9, format=profile)
        assert len(after.kept) == 5
        assert [result.text for result in message_in(after.kept[3]).results] == ["one", "two"]
        assert len(message_in(after.kept[2]).calls) == 2


def test_s2_edited_events_are_among_the_kept() -> None:
    messages = [user(10), calls("c1"), result("c1", 900), assistant(10), user(10)]
    after = compact(messages, budget=10**9, trigger=always, strategy=PruneToolResults(0, 100))
    assert all(event in after.kept for event in after.edited)


def test_s2_events_of_a_repaired_list_have_the_ids_of_its_checkpoint() -> None:
    def turns(first: int, last: int) -> Messages:
        return [
            m
            for n in range(first, last)
            for m in (user(10, f"u{n}x"), calls(f"c{n}"), *([] if n % 3 else [result(f"c{n}", 20)]))
        ]

    options: dict[str, Any] = {"budget": 10**9, "trigger": always, "strategy": KeepLast(6)}
    first = compact(turns(0, 12), **options)
    second = compact([*first.messages, *turns(12, 24)], previous=first.checkpoint, **options)
    assert second.outcome is Outcome.COMPACTED
    assert {event.id for event in second.kept} & set(second.checkpoint.kept)  # type: ignore[union-attr]
