"""Strands' conversation manager: streams, sessions, other middleware, structured output, overflow, recall."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("strands")
pytest.importorskip("anthropic")

from pydantic import BaseModel
from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.models.anthropic import AnthropicModel
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException
from tests.integrations.agents.strands import agent_on
from tests.integrations.harbour_task import ANSWER, SMALL, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, check, open_store
from holdfast.integrations.strands import HoldfastConversationManager


def holdfast(**options: Any) -> HoldfastConversationManager:
    return HoldfastConversationManager(**{"window": SMALL.window} | options)


def anthropic_model(server: Harbour) -> AnthropicModel:
    client = {"base_url": server.anthropic_url, "api_key": "harbor-0123456789", "max_retries": 0}
    return AnthropicModel(client_args=client, model_id="harbor-1", max_tokens=500)


def test_stream_finishes_and_the_agent_keeps_every_message() -> None:
    async def run(server: Harbour) -> str:
        agent = agent_on(server, holdfast(), model=anthropic_model(server))
        texts = [event["data"] async for event in agent.stream_async(SMALL.prompt) if "data" in event]
        assert len(agent.messages) > SMALL.logs and check(agent.messages, "strands") == []
        return "".join(texts)

    with Harbour() as server:
        assert asyncio.run(run(server)).endswith(ANSWER)
    assert server.refused == [] and server.overflowed == 0


def test_own_manager_removes_what_this_one_keeps() -> None:
    with Harbour() as server:
        agent = agent_on(server, SlidingWindowConversationManager(proactive_compression=True))
        agent(SMALL.prompt)
        assert SMALL.prompt not in str(agent.messages)


def test_overflow_in_a_stream_is_compacted_and_asked_again_once() -> None:
    async def run(agent: Agent) -> list[Any]:
        return [event["data"] async for event in agent.stream_async(SMALL.prompt) if "data" in event]

    with Harbour() as server:
        texts = asyncio.run(run(agent_on(server, holdfast(window=4 * SMALL.window))))
        assert "".join(texts).endswith(ANSWER)
        assert server.overflowed == 1 and server.refused == []
    with Harbour(window=20) as server:  # nothing fits
        with pytest.raises(ContextWindowOverflowException):
            asyncio.run(run(agent_on(server, holdfast())))
        assert server.overflowed <= 2


def test_later_process_continues_the_session_of_the_agents_session_manager(tmp_path: Path) -> None:
    with Harbour() as server:
        for prompt in (SMALL.prompt, "What was the seal word?"):
            sessions = FileSessionManager("thread-1", storage_dir=str(tmp_path / "strands"))
            manager = holdfast(store=tmp_path / "agent.db")
            agent = agent_on(server, manager, session_manager=sessions)
            assert ANSWER in str(agent(prompt))
        assert server.requests[-1].size < SMALL.window and server.refused == []

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as stored:
            assert [record.id for record in await stored.list()] == ["thread-1"]
            assert await stored.verify("thread-1") == [] and await stored.round("thread-1") >= 2

    anyio.run(read)


def test_agents_that_share_a_manager_have_conversations_of_their_own(tmp_path: Path) -> None:
    manager = holdfast(store=tmp_path / "agent.db", session_id="harbour")
    with Harbour() as server:
        for agent_id in (None, "pilot"):
            assert str(agent_on(server, manager, agent_id=agent_id)(SMALL.prompt)).strip() == ANSWER
    assert manager.conversations.keys() == ["harbour", "harbour/pilot"]
    free = holdfast()
    with Harbour() as server:
        agents = [agent_on(server, free) for _ in range(2)]
        assert all(str(agent(SMALL.prompt)).strip() == ANSWER for agent in agents)
    assert len(free.conversations.keys()) == 2


def test_what_other_middleware_adds_to_the_newest_message_is_sent_and_not_kept(tmp_path: Path) -> None:
    tides = iter(range(1_000))

    def inject(context: InvokeModelContext) -> InvokeModelContext:
        *earlier, last = context.messages
        added = {"text": f"The tide is at {next(tides)} feet."}
        return context.replace(messages=[*earlier, last | {"content": [*last["content"], added]}])

    seen: list[str] = []

    def look(request: Request) -> Any:
        seen.append(str(request.body["messages"]))
        return server.model(request)

    manager = holdfast(store=tmp_path / "agent.db", session_id="harbour")
    with Harbour() as server:
        server.script = look
        agent = agent_on(server, manager, model=anthropic_model(server))
        agent.add_middleware(InvokeModelStage.Input, inject)
        assert str(agent(SMALL.prompt)).strip() == ANSWER
        assert server.refused == []
    assert all(text.count("The tide is at") == 1 for text in seen)

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            assert [record.id for record in await sessions.list()] == ["harbour"]
            assert not await sessions.events("harbour", text="The tide is at")

    anyio.run(read)


def test_messages_that_other_middleware_rewrites_are_compacted_as_rewritten() -> None:
    def redact(context: InvokeModelContext) -> InvokeModelContext:
        return context.replace(messages=[_without(message, "pilot") for message in context.messages])

    seen: list[str] = []

    def look(request: Request) -> Any:
        seen.append(str(request.body["messages"]))
        return server.model(request)

    with Harbour() as server:
        server.script = look
        agent = agent_on(server, holdfast())
        agent.add_middleware(InvokeModelStage.Input, redact)
        assert str(agent(SMALL.prompt)).strip() == ANSWER
        assert server.refused == []
    assert "left with the ebb" in seen[-1] and not any("pilot" in text for text in seen)


def _without(value: Any, word: str) -> Any:
    match value:
        case str():
            return value.replace(word, "")
        case dict():
            return {key: _without(item, word) for key, item in value.items()}
        case list():
            return [_without(item, word) for item in value]
    return value


def test_roles_alternate_in_every_request() -> None:
    """Bedrock refuses two messages of one role in a row; Strands passes these on as they are."""
    roles: list[list[str]] = []

    async def record(context: InvokeModelContext, next_fn: Any) -> Any:
        roles.append([message["role"] for message in context.messages])
        async for event in next_fn(context):
            yield event

    with Harbour() as server:
        agent = agent_on(server, holdfast())
        agent.add_middleware(InvokeModelStage, record)  # after the manager's
        agent(SMALL.prompt)
    assert len(roles) > SMALL.logs // 2
    assert all(one == ["user", "assistant"] * (len(one) // 2) + ["user"] for one in roles)


def test_failed_tool_and_reasoning_stay_valid() -> None:
    @tool
    def sound(number: int) -> str:
        """Sounds the depth."""
        raise RuntimeError("The line is too short. " * 40)

    def script(request: Request) -> Any:
        if (number := next(numbers)) > 30:
            return "It is deep."
        return Say(thinking=f"I try {number}.", calls=(Call("sound", {"number": number}),))

    numbers = iter(range(1_000))
    with Harbour() as server:
        server.script = script
        agent = agent_on(server, holdfast(window=4_000), model=anthropic_model(server), tools=[sound])
        assert str(agent("Sound it.")).strip() == "It is deep."
    assert server.refused == [] and server.overflowed == 0


def test_structured_output_after_a_compaction() -> None:
    class Berth(BaseModel):
        """A berth."""

        number: int

    def script(request: Request) -> Any:
        return Say("", calls=(Call("Berth", {"number": 2}),)) if "ORLOP" in str(server.model(request)) else "I begin."

    with Harbour() as server:
        manager = holdfast()
        agent = agent_on(server, manager)
        agent(SMALL.prompt)
        server.script = script
        assert agent("Which berth?", structured_output_model=Berth).structured_output == Berth(number=2)
        assert server.refused == []


def test_agent_recalls_what_was_archived() -> None:
    def script(request: Request) -> Any:
        messages = request.body["messages"]
        last = str(messages[-1].get("content"))
        if messages[-1]["role"] == "tool" and "berth 2 has 97 feet" in last and "#" in last[:40]:
            return "It has 97 feet."
        if any("Compaction round" in str(message.get("content")) for message in messages):
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_log", {"number": next(numbers)}),))

    numbers = iter(range(1, 1_000))
    manager = holdfast()
    with Harbour() as server:
        server.script = script
        agent = agent_on(server, manager, tools=[tool(read_log), *manager.recall_tools()])
        assert str(agent("Read the logs.")).strip() == "It has 97 feet."
        assert server.refused == []
