"""Every message that came in is visible afterwards or archived, and never both (S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast import KeepLast, Outcome, PruneToolResults, always, compact
from sized import Messages, calls, result, said, user

PROFILES = ["anthropic", "gemini", "openai-chat", "openai-responses"]


def written(messages: list[Any]) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), keep=st.integers(1, 6))
def test_s2_kept_and_archived_are_all_that_came_in(profile: str, broken: bool, data: st.DataObject, keep: int) -> None:
    """As it came in, also where it had to be mended before anything could be decided about it."""
    messages = data.draw(histories.wire(profile, broken=broken))
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(keep), format=profile)
    assert written(after.kept + after.archived) == written(messages)
    assert after.removed == len(after.archived)
    if after.outcome is not Outcome.COMPACTED:
        assert after.archived == []


def test_s2_they_come_in_their_order() -> None:
    messages = [user(10, f"u{number}x") for number in range(20)]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (after.archived, after.kept) == (messages[:16], messages[16:])


def test_s2_messages_that_say_the_same_are_told_apart_by_their_place() -> None:
    messages: Messages = [user(10, "yes")] * 12
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (len(after.archived), len(after.kept)) == (8, 4)


def test_s2_what_was_edited_is_kept_and_named_as_it_was() -> None:
    messages = [user(10), calls("c1"), result("c1", 900), said(10), user(10)]
    after = compact(messages, budget=10**9, trigger=always, strategy=PruneToolResults(0, 100))
    assert (after.kept, after.archived, after.edited) == (messages, [], [messages[2]])


def test_s2_a_result_without_its_call_is_archived_with_what_is_archived() -> None:
    """It cannot be shown to any model, and it is not lost without a word either."""
    orphan = result("nobody", 30)
    messages = [orphan, *(user(10, f"u{number}x") for number in range(12))]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert orphan in after.archived
