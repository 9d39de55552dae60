"""Every input message is kept or archived, and never both (S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast import Outcome, PruneToolResults, compact
from holdfast.strategies import KeepLast
from holdfast.triggers import always
from sized import Messages, assistant, calls, result, user

PROFILES = ["anthropic", "gemini", "openai-chat", "openai-responses"]


def sorted_json(messages: list[Any]) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), keep=st.integers(1, 6))
def test_s2_kept_and_archived_add_up_to_the_input(profile: str, broken: bool, data: st.DataObject, keep: int) -> None:
    """Kept and archived are input messages, even if the input had to be repaired first."""
    messages = data.draw(histories.wire(profile, broken=broken))
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(keep), format=profile)
    assert sorted_json(after.kept + after.archived) == sorted_json(messages)
    assert after.removed == len(after.archived)
    if after.outcome is not Outcome.COMPACTED:
        assert after.archived == []


def test_s2_kept_and_archived_are_in_order() -> None:
    messages = [user(10, f"u{number}x") for number in range(20)]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (after.archived, after.kept) == (messages[:16], messages[16:])


def test_s2_identical_messages_are_distinguished_by_position() -> None:
    messages: Messages = [user(10, "yes")] * 12
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert (len(after.archived), len(after.kept)) == (8, 4)


def test_s2_edited_messages_are_kept_and_listed() -> None:
    messages = [user(10), calls("c1"), result("c1", 900), assistant(10), user(10)]
    after = compact(messages, budget=10**9, trigger=always, strategy=PruneToolResults(0, 100))
    assert (after.kept, after.archived, after.edited) == (messages, [], [messages[2]])


def test_s2_orphan_result_is_archived() -> None:
    """It cannot be sent to a model, but it is listed as archived."""
    orphan = result("nobody", 30)
    messages = [orphan, *(user(10, f"u{number}x") for number in range(12))]
    after = compact(messages, budget=10**9, trigger=always, strategy=KeepLast(4))
    assert orphan in after.archived
