"""A caller's list of messages, followed as a session in memory (L12)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Keeper, compact
from holdfast.errors import InvalidLimit

Messages = list[dict[str, Any]]


def marked(turns: int) -> Messages:
    """A conversation with a mark for the prompt cache on its newest user message only."""
    history: Messages = []
    for turn in range(turns):
        history.append({"role": "user", "content": [{"type": "text", "text": f"question {turn}"}]})
        history.append({"role": "assistant", "content": [{"type": "text", "text": f"answer {turn}"}]})
    history.append(
        {"role": "user", "content": [{"type": "text", "text": "now?", "cache_control": {"type": "ephemeral"}}]}
    )
    return history


@pytest.mark.anyio
async def test_message_list_with_moving_cache_marks_is_sent_as_it_is_given() -> None:
    keeper = Keeper(format="anthropic")
    for turns in range(8):
        given = marked(turns)
        assert (await keeper.prepare_step(given)).messages == given


@pytest.mark.anyio
async def test_message_list_with_another_unread_field_is_another_list() -> None:
    keeper = Keeper(format="openai-chat")
    for name in ("alice", "bob"):
        given = [{"role": "user", "name": name, "content": "hi"}]
        assert (await keeper.prepare_step(given)).messages == given


@pytest.mark.anyio
async def test_message_list_that_grows_stays_one_session() -> None:
    keeper = Keeper(format="openai-chat")
    history: Messages = []
    sessions = set()
    for turn in range(5):
        history += [{"role": "user", "content": f"q{turn}"}, {"role": "assistant", "content": f"a{turn}"}]
        await keeper.prepare_step([*history, {"role": "user", "content": f"q{turn + 1}"}][:-1])
        sessions.add(keeper.session_id)
    assert len(sessions) == 1


def test_compact_without_a_budget_is_an_error() -> None:
    with pytest.raises(InvalidLimit, match="budget must be"):
        compact([{"role": "user", "content": "hi"}], budget=None)  # type: ignore[arg-type]
