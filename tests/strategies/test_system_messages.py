"""System and developer messages in mid-conversation are kept by every strategy, as those at the start are (S8, H1)."""

from __future__ import annotations

from typing import Any

import pytest
from strategy_table import STRATEGIES, Size

from holdfast import MemoryStore, SessionService, SlidingWindow, TokenWindow, check, compact
from holdfast.messages import Message, Text, decode_all, encode_all
from holdfast.triggers import always

PROFILES = ("openai-chat", "openai-responses", "anthropic")
"""The formats with system messages; Anthropic has none at the start."""
RULE = "From now on never touch berth_K7_production."


def conversation(profile: str, *, rules: int = 1, turns: int = 12) -> list[dict[str, Any]]:
    """Turns of a user and an assistant; rules come after the first user messages."""
    messages = [] if profile == "anthropic" else [Message("system", (Text("You keep a harbour."),))]
    for number in range(turns):
        messages.append(Message("user", (Text(f"Read berth {number}, please. " + "It is long and grey. " * 20),)))
        if 0 < number <= rules:
            messages.append(Message("system", (Text(RULE),)))
        messages.append(Message("assistant", (Text(f"Berth {number} is read. " + "All is well. " * 20),)))
    return encode_all(messages, profile)


def count(messages: Any, profile: str, text: str = RULE) -> int:
    return sum(message.text.count(text) for message in decode_all(messages, profile)[0])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_s8_system_message_in_the_middle_is_kept_by_every_strategy(strategy: str, profile: str) -> None:
    messages = conversation(profile)
    made = STRATEGIES[strategy](Size(400, 3, 2))
    result = compact(messages, budget=600, strategy=made, trigger=always, format=profile)
    assert count(result.messages, profile) == 1
    assert count(result.messages, profile, "You keep a harbour.") == count(messages, profile, "You keep a harbour.")
    assert check(result.messages, profile) == []
    longer = [*messages, *conversation(profile, rules=0)[-6:]]
    again = compact(longer, budget=600, strategy=made, trigger=always, format=profile, previous=result.checkpoint)
    assert count(again.messages, profile) == 1


def test_s8_developer_message_in_the_middle_stays_after_those_at_the_start() -> None:
    messages = conversation("openai-chat")
    place = next(index for index, message in enumerate(messages) if message["content"] == RULE)
    messages[place]["role"] = "developer"
    result = compact(messages, budget=600, strategy=SlidingWindow(3), trigger=always)
    assert result.messages[:2] == [messages[0], messages[place]]
    assert messages[place] not in result.archived


def test_s8_system_messages_do_not_count_as_window_events() -> None:
    messages = conversation("openai-chat", turns=3)
    result = compact(messages, budget=100_000, strategy=SlidingWindow(4), trigger=always)
    assert result.messages == [messages[0], *messages[3:]]
    unchanged = compact(messages, budget=100_000, strategy=SlidingWindow(6), trigger=always)
    assert unchanged.outcome == "nothing_to_compact"


def test_s8_of_equal_system_messages_the_newest_is_kept() -> None:
    """A reminder that a program repeats every turn would fill the window."""
    messages = conversation("openai-chat", rules=8)
    result = compact(messages, budget=600, strategy=SlidingWindow(3), trigger=always)
    assert count(result.messages, "openai-chat") == 1


@pytest.mark.anyio
async def test_s8_session_keeps_system_messages_in_the_middle_through_rounds() -> None:
    sessions = SessionService(MemoryStore())
    session = await sessions.create(format="openai-chat")
    for _ in range(3):
        await sessions.append(session.id, conversation("openai-chat"))
        await sessions.compact(session.id, always, TokenWindow(400))
        assert count(await sessions.context(session.id), "openai-chat") == 1
