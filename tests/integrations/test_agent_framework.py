"""Microsoft Agent Framework: messages, the middleware with sessions and streams, the strategy, and recall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, Content, Message
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say, StreamError

from holdfast import SessionService, check, open_store
from holdfast.integrations.agent_framework import HoldfastChatMiddleware, HoldfastStrategy
from holdfast.messages import Media, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, load_object

MESSAGES: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "text": (
        Message("user", ["ahoy"], author_name="Ann", message_id="m1", additional_properties={"berth": 2}),
        "user",
        (Text("ahoy"),),
    ),
    "calls": (
        Message(
            "assistant",
            [
                Content.from_text_reasoning(text="hm", protected_data="xyz", id="rs_1"),
                "so",
                Content.from_function_call(call_id="c1", name="look", arguments='{"at": 1}'),
                Content.from_function_call(call_id="c2", name="look", arguments={"at": 2}),
            ],
        ),
        "assistant",
        (
            Reasoning("hm", None, "xyz", "rs_1", "agent_framework"),
            Text("so"),
            ToolCall("c1", "look", '{"at": 1}'),
            ToolCall("c2", "look", {"at": 2}),
        ),
    ),
    "results": (
        Message(
            "tool",
            [
                Content.from_function_result(call_id="c1", result="3 feet"),
                Content.from_function_result(call_id="c2", result="no tide", exception="boom"),
            ],
        ),
        "tool",
        (ToolResult("c1", (Text("3 feet"),)), ToolResult("c2", (Text("no tide"),), True)),
    ),
    "media": (
        Message(
            "user",
            [
                Content.from_data(b"abc", media_type="image/png"),
                Content.from_uri("https://x.test/a.pdf", media_type="application/pdf"),
            ],
        ),
        "user",
        (Media("image", "image/png", "YWJj"), Media("file", "application/pdf", None, "https://x.test/a.pdf")),
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = MESSAGES[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "agent_framework")
    (payload,) = encode_all([message], format)
    assert load_object(payload).to_dict() == given.to_dict()
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given


@pytest.fixture
async def client() -> AsyncIterator[Callable[[Harbour], OpenAIChatCompletionClient]]:
    opened: list[AsyncOpenAI] = []

    def make(server: Harbour) -> OpenAIChatCompletionClient:
        opened.append(AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0))
        made = OpenAIChatCompletionClient(model="harbor-1", async_client=opened[-1])
        made.function_invocation_configuration["max_iterations"] = 1_000
        return made

    yield make
    for one in opened:
        await one.close()


@pytest.mark.anyio
async def test_session_of_the_agent_is_a_session_of_the_store(client: Any, tmp_path: Path) -> None:
    with Harbour() as server:
        middleware = HoldfastChatMiddleware(window=SMALL.window, store=tmp_path / "agent.db")
        agent = Agent(client=client(server), instructions=SYSTEM, tools=[read_log], middleware=[middleware])
        session = agent.create_session()
        for prompt in (SMALL.prompt, "Repeat your answer."):
            reply = await agent.run(prompt, session=session)
            assert reply.messages[-1].text == ANSWER
    assert server.refused == [] and server.overflowed == 0
    async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
        assert [record.id for record in await sessions.list()] == [session.session_id]
        assert await sessions.round(session.session_id) >= 2


@pytest.mark.anyio
async def test_streamed_run_finishes(client: Any) -> None:
    with Harbour() as server:
        middleware = HoldfastChatMiddleware(window=SMALL.window)
        agent = Agent(client=client(server), instructions=SYSTEM, tools=[read_log], middleware=[middleware])
        shown = ""
        async for update in agent.run(SMALL.prompt, stream=True):
            shown += update.text
    assert ANSWER in shown and server.refused == [] and server.overflowed == 0


@pytest.mark.anyio
async def test_overflow_in_a_stream_is_compacted_and_asked_again_once(client: Any) -> None:
    with Harbour() as server:
        middleware = HoldfastChatMiddleware(window=4 * SMALL.window)
        agent = Agent(client=client(server), instructions=SYSTEM, tools=[read_log], middleware=[middleware])
        stream = agent.run(SMALL.prompt, stream=True)
        shown = [update.text async for update in stream]
        reply = await stream.get_final_response()
        assert "".join(shown).endswith(ANSWER) and reply.messages[-1].text == ANSWER
        assert reply.usage_details and reply.usage_details["input_token_count"]
        assert server.overflowed == 1 and server.refused == []
    with Harbour(window=20) as server:  # nothing fits
        agent = Agent(client=client(server), tools=[read_log], middleware=[HoldfastChatMiddleware(window=SMALL.window)])
        with pytest.raises(ChatClientException):
            _ = [update async for update in agent.run(SMALL.prompt, stream=True)]
        assert server.overflowed <= 2


@pytest.mark.anyio
async def test_failure_in_the_middle_of_a_stream_is_not_asked_again(client: Any) -> None:
    """What was shown would be shown twice."""
    with Harbour() as server:
        server.script = lambda request: StreamError(400, "The prompt is too long.", "context_length_exceeded", after=3)
        agent = Agent(client=client(server), middleware=[HoldfastChatMiddleware(window=SMALL.window)])
        with pytest.raises(ChatClientException):
            _ = [update async for update in agent.run(SMALL.prompt, stream=True)]
        assert len(server.requests) == 1


@pytest.mark.anyio
async def test_strategy_in_the_place_of_the_frameworks_own_finishes(client: Any) -> None:
    with Harbour() as server:
        strategy = HoldfastStrategy(SMALL.window)
        agent = Agent(client=client(server), instructions=SYSTEM, tools=[read_log], compaction_strategy=strategy)
        reply = await agent.run(SMALL.prompt)
    assert reply.messages[-1].text == ANSWER and server.refused == [] and server.overflowed == 0


@pytest.mark.anyio
async def test_strategy_leaves_a_short_list_and_compacts_a_long_one() -> None:
    messages = [Message("user", ["Read the logs."])]
    for number in range(10):
        call = Content.from_function_call(call_id=f"c{number}", name="read_log", arguments={"number": number})
        result = Content.from_function_result(call_id=f"c{number}", result=read_log(number))
        messages += [Message("assistant", [call]), Message("tool", [result])]
    before = list(messages)
    assert await HoldfastStrategy(100_000)(messages) is False and messages == before
    assert await HoldfastStrategy(4_000)(messages) is True
    assert check(messages, "agent_framework", ready=True) == []


@pytest.mark.anyio
async def test_agent_recalls_what_was_archived(client: Any) -> None:
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
        middleware = HoldfastChatMiddleware(window=SMALL.window)
        tools = [read_next, *middleware.recall_tools()]
        agent = Agent(client=client(server), tools=tools, middleware=[middleware])
        reply = await agent.run("Read the logs.")
    assert reply.messages[-1].text == "It has 97 feet." and server.refused == []
