"""LlamaIndex messages in every form, the memory, and the agent: streaming, restarts, chat engines, recall."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.llms.openai")

from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer, Memory
from tests.integrations.agents.llama_index import chat_model
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import check, compact
from holdfast.errors import InvalidInput
from holdfast.integrations.llama_index import HoldfastFunctionAgent, HoldfastMemory
from holdfast.messages import Media, Opaque, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, load_object

PNG = "iVBORw0KGgo="
CACHE = CachePoint(cache_control={"type": "ephemeral"})
CALL = ToolCallBlock(tool_call_id="c1", tool_name="look", tool_kwargs={"at": "tide"})
MESSAGES: dict[str, tuple[ChatMessage, str, tuple[Any, ...]]] = {
    "text": (ChatMessage("ahoy", role="user", additional_kwargs={"name": "Ann"}), "user", (Text("ahoy"),)),
    "system": (ChatMessage("be brief", role="system"), "system", (Text("be brief"),)),
    "developer": (ChatMessage("be brief", role="developer"), "system", (Text("be brief"),)),
    "model": (ChatMessage("ahoy", role="model"), "assistant", (Text("ahoy"),)),
    "texts": (ChatMessage([TextBlock(text="a"), TextBlock(text="b")]), "user", (Text("a"), Text("b"))),
    "call": (ChatMessage([CALL], role="assistant"), "assistant", (ToolCall("c1", "look", {"at": "tide"}),)),
    "call in additional_kwargs": (
        ChatMessage(
            "",
            role="assistant",
            additional_kwargs={"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
        ),
        "assistant",
        (Text(""), ToolCall("c1", "look", "{}")),
    ),
    "call in both": (
        ChatMessage(
            [CALL],
            role="assistant",
            additional_kwargs={"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
        ),
        "assistant",
        (ToolCall("c1", "look", {"at": "tide"}),),
    ),
    "thinking": (
        ChatMessage([ThinkingBlock(content="hm", additional_information={"signature": "s"})], role="assistant"),
        "assistant",
        (Reasoning("hm", "s", origin="llama_index"),),
    ),
    "image": (
        ChatMessage([ImageBlock(image=PNG.encode(), image_mimetype="image/png")]),
        "user",
        (Media("image", "image/png", PNG),),
    ),
    "document": (
        ChatMessage([DocumentBlock(url="https://x.test/a.pdf", title="a", document_mimetype="application/pdf")]),
        "user",
        (Media("file", "application/pdf", None, "https://x.test/a.pdf", None, "a"),),
    ),
    "unknown block": (ChatMessage([CACHE]), "user", (Opaque("cache", CACHE.model_dump(), "llama_index"),)),
    "result": (
        ChatMessage("3 feet", role="tool", additional_kwargs={"tool_call_id": "c1", "name": "look"}),
        "tool",
        (ToolResult("c1", (Text("3 feet"),), False, "look"),),
    ),
    "failed result": (
        ChatMessage("[tool error] no tide", role="tool", additional_kwargs={"tool_call_id": "c1"}),
        "tool",
        (ToolResult("c1", (Text("no tide"),), True),),
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = MESSAGES[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "llama_index")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given


def agent_on(server: Harbour, **options: Any) -> HoldfastFunctionAgent:
    return HoldfastFunctionAgent(llm=chat_model(server), system_prompt=SYSTEM, timeout=None, **options)


def test_streamed_run_finishes_and_the_memory_keeps_every_message() -> None:
    async def run(server: Harbour) -> str:
        memory = HoldfastMemory(window=SMALL.window)
        agent = agent_on(server, tools=[read_log], streaming=True)
        answer = str(await agent.run(SMALL.prompt, memory=memory, max_iterations=200))
        again = str(await agent.run("And the seal word?", memory=memory))
        assert len(memory.get_all()) > SMALL.logs and len(memory.get()) < len(memory.get_all())
        return answer + again

    with Harbour() as server:
        assert asyncio.run(run(server)) == ANSWER + ANSWER
    assert server.refused == [] and server.overflowed == 0


def test_chat_engine_continues_in_another_process(tmp_path: Path) -> None:
    options: dict[str, Any] = {"session_id": "thread-1", "window": SMALL.window, "store": tmp_path / "chat.db"}
    with Harbour() as server:
        server.script = lambda request: "x" * 3_000 if len(request.body["messages"]) < 4 else "Fine."
        for _ in range(2):
            engine = SimpleChatEngine.from_defaults(llm=chat_model(server), memory=HoldfastMemory(**options))
            for number in range(8):
                engine.chat(f"Berth {number}: " + "is it free? " * 200)
        assert len(HoldfastMemory(**options).get_all()) == 32
        assert server.refused == [] and server.overflowed == 0
        assert server.requests[-1].size < SMALL.window


def test_memory_is_reset_and_copied() -> None:
    memory = HoldfastMemory.from_defaults(window=SMALL.window)
    memory.put(ChatMessage("ahoy"))
    memory.set([ChatMessage("a"), ChatMessage("b", role="assistant")])
    assert [message.content for message in memory.get()] == ["a", "b"]
    assert HoldfastMemory.from_dict(memory.to_dict()).session_id == memory.session_id
    memory.reset()
    assert memory.get() == memory.get_all() == []


def test_agent_needs_the_memory() -> None:
    with Harbour() as server, pytest.raises(InvalidInput, match="pass one as memory="):
        asyncio.run(_run(agent_on(server, tools=[read_log]), ChatMemoryBuffer.from_defaults()))


async def _run(agent: HoldfastFunctionAgent, memory: Any) -> str:
    return str(await agent.run("Read the logs.", memory=memory, max_iterations=200))


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
    memory = HoldfastMemory(window=SMALL.window)
    with Harbour() as server:
        server.script = script
        agent = agent_on(server, tools=[read_log, *memory.recall_tools()], streaming=False)
        assert asyncio.run(_run(agent, memory)) == "It has 97 feet."


def test_calls_are_counted() -> None:
    """LlamaIndex's `Memory` counts a call as no tokens, so that a history of calls never reaches its limit."""
    arguments = {"text": "tide " * 2_000}
    history = [ChatMessage("Write the logs.")]
    for number in range(10):
        call = ToolCallBlock(tool_call_id=f"c{number}", tool_name="write", tool_kwargs=arguments)
        history.append(ChatMessage([call], role="assistant"))
        history.append(ChatMessage("done", role="tool", additional_kwargs={"tool_call_id": f"c{number}"}))
    theirs = Memory.from_defaults(token_limit=4_000, chat_history_token_ratio=1.0)
    theirs.put_messages(history)
    assert len(theirs.get()) == len(history)
    result = compact(history, budget=4_000)
    assert result.tokens_before > 18_000 and result.tokens_after <= 4_000
    assert check(result.messages, "llama_index") == []
