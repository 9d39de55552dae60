"""Agno messages in every form, and the wrapped model: async, streams, sessions, teams, recall."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("agno")
pytest.importorskip("openai")

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.media import File, Image
from agno.metrics import MessageMetrics
from agno.models.message import Message as AgnoMessage
from tests.integrations.agents.agno import chat_model
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, open_store
from holdfast.errors import InvalidInput
from holdfast.integrations.agno import RecallTools, compacting, conversation_key
from holdfast.messages import Media, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, load_object

PNG = "iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FIXED: dict[str, Any] = {"id": "m1", "created_at": 1}
MESSAGES: dict[str, tuple[AgnoMessage, str, tuple[Any, ...]]] = {
    "text": (AgnoMessage(role="user", content="ahoy", name="Ann", **FIXED), "user", (Text("ahoy"),)),
    "developer": (AgnoMessage(role="developer", content="be brief", **FIXED), "system", (Text("be brief"),)),
    "texts": (
        AgnoMessage(role="user", content=["a", {"type": "text", "text": "b"}], **FIXED),
        "user",
        (Text("a"), Text("b")),
    ),
    "call": (AgnoMessage(role="assistant", tool_calls=[CALL], **FIXED), "assistant", (ToolCall("c1", "look", "{}"),)),
    "thinking": (
        AgnoMessage(role="assistant", reasoning_content="hm", provider_data={"signature": "s"}, content="so", **FIXED),
        "assistant",
        (Reasoning("hm", "s", origin="agno"), Text("so")),
    ),
    "redacted thinking": (
        AgnoMessage(role="assistant", redacted_reasoning_content="xyz", **FIXED),
        "assistant",
        (Reasoning("", None, "xyz", origin="agno"),),
    ),
    "image": (
        AgnoMessage(role="user", images=[Image(content=b"\x89PNG\r\n\x1a\n", mime_type="image/png", id="i")], **FIXED),
        "user",
        (Media("image", "image/png", PNG),),
    ),
    "file": (
        AgnoMessage(role="user", files=[File(url="https://x.test/a.pdf", id="f")], **FIXED),
        "user",
        (Media("file", None, None, "https://x.test/a.pdf"),),
    ),
    "result": (
        AgnoMessage(role="tool", content="3 feet", tool_call_id="c1", tool_name="look", **FIXED),
        "tool",
        (ToolResult("c1", (Text("3 feet"),), False, "look"),),
    ),
    "failed result": (
        AgnoMessage(role="tool", content="no tide", tool_call_id="c1", tool_call_error=True, **FIXED),
        "tool",
        (ToolResult("c1", (Text("no tide"),), True),),
    ),
    "usage": (
        AgnoMessage(role="assistant", content="hi", metrics=MessageMetrics(input_tokens=9, output_tokens=1), **FIXED),
        "assistant",
        (Text("hi"),),
    ),
    "unknown field": (AgnoMessage(role="user", content="hi", berth=2, **FIXED), "user", (Text("hi"),)),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = MESSAGES[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "agno")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given


def test_message_from_a_stored_session_is_the_same_message() -> None:
    sent, read = (AgnoMessage(role="user", content="ahoy", from_history=old, **FIXED) for old in (False, True))
    assert dump_objects([sent])[0] == dump_objects([read])[0]


def agent_on(server: Harbour, model: Any = None, **options: Any) -> Agent:
    made = model or compacting(chat_model(server), window=SMALL.window)
    return Agent(model=made, system_message=SYSTEM, telemetry=False, **{"tools": [read_log]} | options)


def test_async_and_streamed_runs_finish() -> None:
    with Harbour() as server:
        result = asyncio.run(agent_on(server).arun(SMALL.prompt))
        assert result.messages is not None and result.messages[-1].content == ANSWER
        assert len(result.messages) > SMALL.logs
    with Harbour() as server:
        events = list(agent_on(server).run(SMALL.prompt, stream=True))
        assert "".join(str(event.content or "") for event in events).endswith(ANSWER)

    async def stream(server: Harbour) -> str:
        return "".join([str(event.content or "") async for event in agent_on(server).arun(SMALL.prompt, stream=True)])

    with Harbour() as server:
        model = compacting(chat_model(server), window=4 * SMALL.window)
        assert list(agent_on(server, model).run(SMALL.prompt, stream=True))
        assert server.overflowed == 1
    with Harbour() as server:
        assert asyncio.run(stream(server)).endswith(ANSWER)
    assert server.refused == [] and server.overflowed == 0


def test_second_run_continues_the_conversation(tmp_path: Path) -> None:
    db = InMemoryDb()
    with Harbour() as server:
        for prompt in (SMALL.prompt, "What was the seal word?"):
            model = compacting(chat_model(server), window=SMALL.window, store=tmp_path / "agent.db")
            agent = agent_on(server, model, db=db, add_history_to_context=True)
            result = agent.run(prompt, session_id="thread-1")
            assert result.messages is not None and ANSWER in str(result.messages[-1].content)
        assert server.requests[-1].size < SMALL.window and server.refused == []

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            assert [record.id for record in await sessions.list()] == ["thread-1"]
            assert await sessions.verify("thread-1") == []

    anyio.run(read)


def test_members_of_a_team_have_conversations_of_their_own() -> None:
    class Run:
        session_id, agent_id, parent_run_id = "thread-1", "clerk", "run-1"

    assert conversation_key(Run()) == "thread-1/clerk"
    assert conversation_key(None) == "conversation"


def test_agent_recalls_what_was_archived() -> None:
    def script(request: Request) -> Any:
        messages = request.body["messages"]
        last = str(messages[-1].get("content"))
        if messages[-1]["role"] == "tool" and "berth 2 has 97 feet" in last and last.startswith("#"):
            return "It has 97 feet."
        if any("Compaction round" in str(message.get("content")) for message in messages):
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_log", {"number": next(numbers)}),))

    numbers = iter(range(1, 1_000))
    with Harbour() as server:
        server.script = script
        model = compacting(chat_model(server), window=SMALL.window)
        result = agent_on(server, model, tools=[read_log, RecallTools(model)]).run("Read the logs.")
        assert result.messages is not None and result.messages[-1].content == "It has 97 feet."
        with pytest.raises(InvalidInput, match="compacting"):
            RecallTools(chat_model(server))
