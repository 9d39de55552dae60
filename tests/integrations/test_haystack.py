"""Haystack messages, the chat generator in blocking and asynchronous agents, and the compactor's three rules."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

pytest.importorskip("haystack")

from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ImageContent, ToolCall
from haystack.dataclasses.chat_message import ReasoningContent
from haystack.token_counters import ApproximateTokenCounter
from haystack.tools import create_tool_from_function
from tests.integrations.agents.haystack import TOOL, generator, with_compactor
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import check
from holdfast.integrations.haystack import HoldfastChatGenerator, HoldfastCompactor
from holdfast.messages import Media, Reasoning, Text, ToolResult, decode_all, encode_all
from holdfast.messages import ToolCall as NeutralCall
from holdfast.messages.frameworks import load_object

LOOK = ToolCall("look", {"at": "tide"}, "c1")
MESSAGES: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "text": (ChatMessage.from_user("ahoy", name="Ann", meta={"x": 1}), "user", (Text("ahoy"),)),
    "system": (ChatMessage.from_system("be brief"), "system", (Text("be brief"),)),
    "image": (
        ChatMessage.from_user(content_parts=["see", ImageContent("aGk=", "image/png", validation=False)]),
        "user",
        (Text("see"), Media("image", "image/png", "aGk=")),
    ),
    "call": (
        ChatMessage.from_assistant("so", tool_calls=[LOOK], reasoning=ReasoningContent("hm", {"signature": "s"})),
        "assistant",
        (
            Reasoning("hm", '{"signature":"s"}', origin="haystack"),
            Text("so"),
            NeutralCall("c1", "look", {"at": "tide"}),
        ),
    ),
    "failed result": (
        ChatMessage.from_tool("no tide", LOOK, error=True),
        "tool",
        (ToolResult("c1", (Text("no tide"),), True, "look"),),
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = MESSAGES[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "haystack")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given


def test_asynchronous_agent_finishes_and_keeps_its_messages() -> None:
    async def run(server: Harbour) -> dict[str, Any]:
        chat_generator = HoldfastChatGenerator(generator(server), window=SMALL.window)
        agent = Agent(chat_generator=chat_generator, tools=[TOOL], system_prompt=SYSTEM, max_agent_steps=1_000)
        agent.warm_up()
        result: dict[str, Any] = await agent.run_async(messages=[ChatMessage.from_user(SMALL.prompt)])
        return result

    with Harbour() as server:
        result = anyio.run(run, server)
    assert result["last_message"].text == ANSWER and len(result["messages"]) > 30
    assert server.refused == [] and server.overflowed == 0


def test_agent_recalls_what_was_archived() -> None:
    numbers = iter(range(1, 1_000))

    def read_next() -> str:
        """Reads the next log."""
        return read_log(next(numbers))

    def script(request: Request) -> Any:
        last = request.body["messages"][-1]
        if last["role"] == "tool" and last["content"].startswith("#"):
            return "It has 97 feet." if "berth 2 has 97 feet" in last["content"] else "I cannot find it."
        if request.number > SMALL.logs:
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_next"),))

    with Harbour() as server:
        server.script = script
        chat_generator = HoldfastChatGenerator(generator(server), window=SMALL.window)
        tools = [create_tool_from_function(read_next), *chat_generator.recall_tools()]
        agent = Agent(chat_generator=chat_generator, tools=tools, max_agent_steps=200)
        agent.warm_up()
        result = agent.run(messages=[ChatMessage.from_user("Read the logs.")])
    assert result["last_message"].text == "It has 97 feet." and server.refused == []


@pytest.mark.filterwarnings("ignore:'CompactionHook' is an experimental component")
def test_compactor_in_the_hook_of_haystack_finishes_the_task() -> None:
    with Harbour() as server:
        assert with_compactor(server) == ANSWER
    assert server.refused == [] and server.overflowed == 0


def test_compactor_returns_a_smaller_valid_list_or_none_and_leaves_its_input() -> None:
    messages = [ChatMessage.from_user("Read the logs.")]
    for number in range(10):
        call = ToolCall("read_log", {"number": number}, f"c{number}")
        messages += [ChatMessage.from_assistant(tool_calls=[call]), ChatMessage.from_tool(read_log(number), call)]
    before, counter, compactor = list(messages), ApproximateTokenCounter(), HoldfastCompactor()
    smaller = compactor.compact(messages, 1_000, counter)
    assert smaller is not None and counter.count(smaller) < counter.count(messages)
    assert check(smaller, "haystack", ready=True) == []
    assert messages == before
    assert compactor.compact(messages[:1], 1_000, counter) is None
    assert HoldfastCompactor.from_dict(compactor.to_dict()).summarizer is None
