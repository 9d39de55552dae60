"""A caller's list of messages, followed as a session in memory (L12)."""

from __future__ import annotations

import copy
from typing import Any

import anyio
import pytest

from client_lists import aider_requests
from holdfast import Keeper, MemoryStore, SessionService, compact
from holdfast.errors import InvalidInput, InvalidLimit
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


@pytest.mark.anyio
async def test_marks_that_move_through_a_list_are_sent_where_they_are_and_fork_nothing() -> None:
    """An Anthropic client marks its newest message, in a list made anew for each request."""
    sessions = SessionService(MemoryStore())
    keeper, history = Keeper(sessions, format="anthropic"), Messages()
    for turn in range(4):
        mark = {"cache_control": {"type": "ephemeral"}}
        text = {"type": "text", "text": f"question {turn}"}
        given = copy.deepcopy([*history, {"role": "user", "content": [text | mark]}])
        assert (await keeper.prepare_step(given)).messages == given
        assert (await keeper.prepare_step(given)).messages == given, "also by the same objects"
        history += [{"role": "user", "content": [text]}, {"role": "assistant", "content": f"answer {turn}"}]
    [session] = await sessions.list()
    events = await sessions.events(session.id, kind="message")
    assert len(events) == 7 and not any("cache_control" in str(event.body) for event in events)


@pytest.mark.anyio
async def test_mark_that_moves_in_place_is_sent_where_it_is() -> None:
    keeper, history = Keeper(format="anthropic"), [{"role": "user", "content": [{"type": "text", "text": "one"}]}]
    for turn in range(4):
        for message in history:
            message["content"][-1].pop("cache_control", None)
        history[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        assert (await keeper.prepare_step(history)).messages == history
        history.append({"role": "assistant", "content": [{"type": "text", "text": f"answer {turn}"}]})
        history.append({"role": "user", "content": [{"type": "text", "text": f"question {turn}"}]})
    assert len(await keeper.sessions.list()) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("reminder", ["user", "sys"])
async def test_list_with_a_reminder_that_moves_stays_one_session(reminder: Any) -> None:
    keeper, ids = Keeper(format="openai-chat"), set()
    for request in aider_requests([f"Rename tide_{number}." for number in range(16)], reminder):
        context = await keeper.prepare_step(request)
        assert context.messages[-1] == request[-1] and context.messages[0] == request[0]
        ids.add(keeper.session_id)
    assert len(ids) == 1


@pytest.mark.anyio
async def test_edited_list_forks_where_the_service_is_the_callers() -> None:
    """Neither history is lost; a list of its own service has nothing to fork from that anybody could read."""
    sessions = SessionService(MemoryStore())
    keeper = Keeper(sessions, format="openai-chat")
    await keeper.prepare_step(talk(5))
    root = keeper.session_id
    edited = [*talk(3), {"role": "assistant", "content": "another answer"}, {"role": "user", "content": "Why?"}]
    assert (await keeper.prepare_step(edited)).messages == edited
    assert (await sessions.get(keeper.session_id)).parent == root
    fork = keeper.session_id
    await keeper.prepare_step([*talk(5), *talk(2)])
    assert keeper.session_id == root
    assert {session.id for session in await sessions.list()} == {root, fork}


@pytest.mark.anyio
async def test_stored_list_with_whole_replies_is_found_again() -> None:
    """A program appends the reply of the SDK as it is; the log has only what may be sent back."""
    sessions = SessionService(MemoryStore())
    await sessions.create(id="s", format="anthropic")
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "harbor",
        "content": [{"type": "text", "text": "7 m."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }
    history = [{"role": "user", "content": "How deep?"}, reply, {"role": "user", "content": "And berth 5?"}]
    await Keeper(sessions, "s", format="anthropic").prepare_step(history)
    again = Keeper(sessions, "s", format="anthropic")
    await again.prepare_step([*history, {"role": "assistant", "content": "8 m."}, {"role": "user", "content": "Why?"}])
    assert again.session_id == "s"


@pytest.mark.anyio
async def test_another_conversation_is_a_session_of_its_own_with_its_own_system_prompt() -> None:
    sessions = SessionService(MemoryStore())
    keeper = Keeper(sessions, format="openai-chat")
    for name in ("pier", "quay"):
        system = {"role": "system", "content": f"You keep the {name}."}
        given = [system, {"role": "user", "content": f"Where is the {name}?"}]
        assert (await keeper.prepare_step(given)).messages == given
        record = await sessions.get(keeper.session_id)
        assert record.parent is None and record.system == [system]
    assert len(await sessions.list()) == 2


@pytest.mark.anyio
async def test_invalid_list_leaves_the_session_as_it_was() -> None:
    keeper = Keeper(format="openai-chat")
    await keeper.prepare_step(talk(5))
    session = keeper.session_id
    with pytest.raises(InvalidInput):
        await keeper.prepare_step([{"role": "user", "content": "edited"}, {"role": "nobody", "content": "?"}])
    assert (await keeper.prepare_step(talk(7))).messages == talk(7)
    assert keeper.session_id == session
