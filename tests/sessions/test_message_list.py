"""A caller's list of messages, followed as a session in memory (L12)."""

from __future__ import annotations

import copy
from typing import Any

import anyio
import pytest

from holdfast import Keeper, MemoryStore, SessionService, compact
from holdfast.errors import InvalidLimit
from holdfast.messages import copy_json
from holdfast.sessions import message_list

Messages = list[dict[str, Any]]
OPENAI_STEPS: Messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "How deep is berth 4?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "7 m"},
    {"role": "assistant", "content": "7 m."},
    {"role": "user", "content": [{"type": "text", "text": "And berth 5?"}]},
]
ANTHROPIC_STEPS: Messages = [
    {"role": "user", "content": [{"type": "text", "text": "How deep is berth 4?"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "7 m"}]},
    {"role": "assistant", "content": "7 m."},
    {"role": "user", "content": [{"type": "text", "text": "And berth 5?"}]},
]


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


def talk(messages: int) -> Messages:
    return [{"role": ("user", "assistant")[number % 2], "content": f"m{number}"} for number in range(messages)]


@pytest.mark.anyio
async def test_l12_step_reads_only_what_the_list_grew_by(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, history = Keeper(format="openai-chat"), talk(1_001)
    await keeper.prepare_step(history)
    read: list[Any] = []
    monkeypatch.setattr(message_list, "copy_json", lambda message: read.append(message) or copy_json(message))
    for number in range(5):
        history += [{"role": "assistant", "content": f"a{number}"}, {"role": "user", "content": f"q{number}"}]
        assert (await keeper.prepare_step(history)).messages == history
    assert len(read) <= 5 * 12, "the two new messages, and a few that may still have changed"


@pytest.mark.anyio
async def test_l12_long_list_leaves_the_event_loop_to_other_tasks() -> None:
    keeper, turns = Keeper(SessionService(MemoryStore(), estimator="chars/4")), 0

    async def other_task() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(other_task)
        await keeper.prepare_step(talk(1_001))
        group.cancel_scope.cancel()
    assert turns >= 20


@pytest.mark.anyio
@pytest.mark.parametrize("index", [-1, -3])
async def test_message_changed_in_place_is_sent_as_it_is(index: int) -> None:
    keeper, history = Keeper(format="openai-chat"), talk(5)
    await keeper.prepare_step(history)
    history[index]["content"] = "changed"
    assert (await keeper.prepare_step(history)).messages == history


@pytest.mark.anyio
async def test_message_replaced_in_a_long_list_starts_anew_within_a_few_steps() -> None:
    keeper, history = Keeper(format="openai-chat"), talk(701)
    await keeper.prepare_step(history)
    history[300] = {"role": "user", "content": "replaced"}
    sent = [(await keeper.prepare_step(history)).messages == history for _ in range(3)]
    assert sent[-1]


@pytest.mark.anyio
async def test_equal_list_of_other_objects_stays_one_session() -> None:
    keeper, history = Keeper(format="openai-chat"), talk(5)
    await keeper.prepare_step(history)
    first = keeper.session_id
    await keeper.prepare_step(copy.deepcopy([*history, *talk(2)]))
    assert keeper.session_id == first


@pytest.mark.anyio
@pytest.mark.parametrize("steps", [OPENAI_STEPS, ANTHROPIC_STEPS], ids=["openai", "anthropic"])
async def test_format_that_shows_only_later_is_detected_from_the_whole_list(steps: Messages) -> None:
    keeper, history = Keeper(), []
    for message in steps:
        history.append(message)
        context = await keeper.prepare_step(history)
        assert context.messages[: len(history)] == history
    assert context.format == ("anthropic" if steps is ANTHROPIC_STEPS else "openai-chat")
    assert len(await keeper.sessions.list()) == 1


def test_compact_without_a_budget_is_an_error() -> None:
    with pytest.raises(InvalidLimit, match="budget must be"):
        compact([{"role": "user", "content": "hi"}], budget=None)  # type: ignore[arg-type]
