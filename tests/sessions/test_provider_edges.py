"""Sessions with programs, approvals and references: what is open stays open, what dangles is closed or not shown."""

from __future__ import annotations

from typing import Any

import pytest

from edge_stories import (
    ASK,
    STORIES,
    TEXT,
    Approval,
    Messages,
    Program,
    Story,
    by_model,
    called_by,
    output,
    reference,
    results,
    server_result,
    server_use,
)
from holdfast import MemoryStore, SessionService, SlidingWindow, check
from holdfast.context import INTERRUPTED_TEXT
from holdfast.triggers import always
from judge import judge

pytestmark = pytest.mark.anyio
WORDS: dict[str, Any] = {"role": "user", "content": "never mind"}
STOPPED = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}


async def shown(messages: Messages, format: str, *, one_by_one: bool = True) -> Messages:
    """The context of a session with these messages, which a fold of its log gives as well."""
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create(format=format)
        for given in [[message] for message in messages] if one_by_one else [messages]:
            await sessions.append(session.id, given)
        assert await sessions.verify(session.id) == []
        return list(await sessions.context(session.id))


@pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "at once"])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_valid_story_is_shown_as_it_came(story: Story, one_by_one: bool) -> None:
    assert await shown(story.messages, story.profile, one_by_one=one_by_one) == story.messages


CASES: dict[str, tuple[str, Messages, Messages]] = {
    "a program that the user leaves": (
        "openai-responses",
        [ASK, Program.start, Program.call("a"), Program.output("a"), WORDS],
        [
            ASK,
            Program.start,
            Program.call("a"),
            Program.output("a"),
            {
                "type": "program_output",
                "id": "po_p1",
                "call_id": "p1",
                "result": INTERRUPTED_TEXT,
                "status": "incomplete",
            },
            WORDS,
        ],
    ),
    "code and its call that the user leaves": (
        "anthropic",
        [ASK, by_model(server_use("s"), called_by("a", "s")), WORDS],
        [
            ASK,
            by_model(server_use("s"), called_by("a", "s")),
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": INTERRUPTED_TEXT, "is_error": True}],
            },
            by_model({"type": "code_execution_tool_result", "tool_use_id": "s", "content": STOPPED}),
            WORDS,
        ],
    ),
    "an approval that the user does not give": (
        "openai-responses",
        [ASK, Approval.request, WORDS],
        [ASK, Approval.request, WORDS],
    ),
    "a reference to a call that the user leaves": (
        "openai-responses",
        [ASK, reference("fc_1"), WORDS],
        [ASK, WORDS],
    ),
    "an approval without its request": ("openai-responses", [ASK, Approval.response, WORDS], [ASK, WORDS]),
    "a call without its program": (
        "openai-responses",
        [ASK, Program.call("a"), Program.output("a"), WORDS],
        [ASK, WORDS],
    ),
    "an output that nothing asked for": ("openai-responses", [ASK, output("z"), WORDS], [ASK, WORDS]),
    "a result without the code": (
        "anthropic",
        [ASK, by_model(server_result("s"), TEXT), WORDS],
        [ASK, by_model(TEXT), WORDS],
    ),
    "a call without the code": (
        "anthropic",
        [ASK, by_model(TEXT, called_by("a", "s")), results("a"), WORDS],
        [ASK, by_model(TEXT), WORDS],
    ),
}


@pytest.mark.parametrize(("format", "messages", "expected"), CASES.values(), ids=CASES)
async def test_what_dangles_is_closed_or_not_shown(format: str, messages: Messages, expected: Messages) -> None:
    context = await shown(messages, format)
    assert context == expected
    assert check(context, format) == judge(context, format) == []


async def test_approval_leaves_a_pending_call_open() -> None:
    story = STORIES["an approval beside a call"]
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create(format=story.profile)
        await sessions.append(session.id, story.messages[:4])
        assert [call.id for call in await sessions.waiting(session.id)] == ["a"]
        await sessions.append(session.id, story.messages[4:])
        assert list(await sessions.context(session.id)) == story.messages


async def test_approval_is_no_turn() -> None:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create(format="openai-responses")
        await sessions.append(session.id, STORIES["an approval"].messages[:3])
        view = await (await sessions._live(session.id)).view()
        assert (view.turns, view.turn_count, view.event_count) == ([0], 1, 3)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_compaction_of_session_keeps_whole_units(story: Story) -> None:
    """At every number of kept messages, also while the newest unit goes on."""
    for keep in range(1, len(story.messages)):
        async with SessionService(MemoryStore()) as sessions:
            session = await sessions.create(format=story.profile)
            await sessions.append(session.id, story.messages)
            await sessions.compact(session.id, always, SlidingWindow(keep))
            context = list(await sessions.context(session.id))
            left = [message for message in context if message in story.messages]
            assert check(context, story.profile) == judge(context, story.profile) == []
            start = len(story.messages) - len(left)
            assert left == story.messages[start:] or left[1:] == story.messages[start + 1 :]
