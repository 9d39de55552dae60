"""Pydantic AI messages in every form, and the capability: blocking runs, streams, output types, stores and recall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", minversion="2.66")

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import (
    BinaryImage,
    DocumentUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, check, compact, open_store
from holdfast.integrations.pydantic_ai import HoldfastCapability
from holdfast.messages import Media, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, load_object

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MESSAGES: dict[str, tuple[Any, list[tuple[str, tuple[Any, ...]]]]] = {
    "prompt": (ModelRequest([UserPromptPart("ahoy", timestamp=NOON)]), [("user", (Text("ahoy"),))]),
    "system and prompt": (
        ModelRequest([SystemPromptPart("be brief", timestamp=NOON), UserPromptPart("ahoy", timestamp=NOON)]),
        [("system", (Text("be brief"),)), ("user", (Text("ahoy"),))],
    ),
    "media": (
        ModelRequest(
            [UserPromptPart(["see", ImageUrl("https://x.test/a.png"), BinaryImage(b"abc", media_type="image/png")])]
        ),
        [
            (
                "user",
                (
                    Text("see"),
                    Media("image", "image/png", None, "https://x.test/a.png"),
                    Media("image", "image/png", "YWJj"),
                ),
            )
        ],
    ),
    "document": (
        ModelRequest([UserPromptPart([DocumentUrl("https://x.test/a.pdf")])]),
        [("user", (Media("file", "application/pdf", None, "https://x.test/a.pdf"),))],
    ),
    "calls": (
        ModelResponse(
            [
                ThinkingPart("hm", signature="s", provider_name="anthropic"),
                TextPart("so"),
                ToolCallPart("look", {"at": "tide"}, tool_call_id="c1"),
                ToolCallPart("look", '{"at": 2}', tool_call_id="c2"),
            ],
            timestamp=NOON,
        ),
        [
            (
                "assistant",
                (
                    Reasoning("hm", "s", origin="pydantic_ai"),
                    Text("so"),
                    ToolCall("c1", "look", {"at": "tide"}),
                    ToolCall("c2", "look", '{"at": 2}'),
                ),
            )
        ],
    ),
    "returns and a prompt": (
        ModelRequest(
            [
                ToolReturnPart("look", "3 feet", tool_call_id="c1"),
                ToolReturnPart("look", {"feet": 3}, tool_call_id="c2", outcome="retried"),
                UserPromptPart("go on"),
            ]
        ),
        [
            (
                "tool",
                (
                    ToolResult("c1", (Text("3 feet"),), False, "look"),
                    ToolResult("c2", (Text('{"feet":3}'),), True, "look"),
                    Text("go on"),
                ),
            )
        ],
    ),
    "return of nothing": (
        ModelRequest([ToolReturnPart("look", None, tool_call_id="c1")]),
        [("tool", (ToolResult("c1", (), False, "look"),))],
    ),
    "feedback": (
        ModelRequest([RetryFeedbackPart("no tide given", retry=RetryInfo(cause="validation_error"))]),
        [("user", (Text("no tide given"),))],
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, expected = MESSAGES[kind]
    messages, format = decode_all([given])
    assert [(message.role, message.parts) for message in messages] == expected
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(encode_all(messages, format)) == [given]
    restored = [load_object(payload) for payload in payloads]
    assert [part for message in restored for part in message.parts] == list(given.parts)


def test_native_tool_call_is_kept_in_place() -> None:
    native = NativeToolCallPart("web_search", {"q": "tide"}, tool_call_id="n1", provider_name="openai")
    given = ModelResponse([native, TextPart("Three feet.")])
    (message,), _ = decode_all([given])
    assert [type(part).__name__ for part in message.parts] == ["Opaque", "Text"]
    (payload,) = encode_all([message.with_parts(message.parts)], "pydantic_ai")
    assert load_object(payload).parts == given.parts


def test_system_prompt_survives_the_compaction_of_the_request_it_came_with() -> None:
    history: list[Any] = [ModelRequest([SystemPromptPart("be brief"), UserPromptPart("Read the logs.")])]
    for number in range(12):
        history += [
            ModelResponse([ToolCallPart("read_log", {"number": number}, tool_call_id=f"c{number}")]),
            ModelRequest([ToolReturnPart("read_log", read_log(number), tool_call_id=f"c{number}")]),
        ]
    history += [ModelResponse([TextPart("Read.")]), ModelRequest([UserPromptPart("And now?")])]
    result = compact(history, budget=2_000)
    assert result.messages[0].parts[0].content == "be brief"
    assert check(result.messages, "pydantic_ai") == []


# -- the capability ----------------------------------------------------------------------------------------------------

UNLIMITED = UsageLimits(request_limit=None)


@pytest.fixture
async def chat() -> AsyncIterator[Callable[[Harbour], OpenAIChatModel]]:
    clients: list[AsyncOpenAI] = []

    def model(server: Harbour) -> OpenAIChatModel:
        clients.append(AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0))
        return OpenAIChatModel("harbor-1", provider=OpenAIProvider(openai_client=clients[-1]))

    yield model
    for client in clients:
        await client.close()


@pytest.mark.anyio
async def test_streamed_run_finishes_and_its_history_is_whole(chat: Any) -> None:
    with Harbour() as server:
        agent = Agent(
            chat(server), instructions=SYSTEM, tools=[read_log], capabilities=[HoldfastCapability(window=SMALL.window)]
        )
        events = 0

        async def count(_ctx: Any, stream: Any) -> None:
            nonlocal events
            async for _ in stream:
                events += 1

        run = await agent.run(SMALL.prompt, usage_limits=UNLIMITED, event_stream_handler=count)
        assert run.output == ANSWER and events > SMALL.logs
        assert len(run.all_messages()) > 30
        assert SYSTEM in server.requests[-1].system
    assert server.refused == [] and server.overflowed == 0


@pytest.mark.anyio
async def test_second_run_continues_the_conversation_in_the_store(chat: Any, tmp_path: Path) -> None:
    history: list[Any] = []
    with Harbour() as server:
        for prompt in (SMALL.prompt, "Repeat your answer."):
            capability = HoldfastCapability(window=SMALL.window, store=tmp_path / "agent.db")
            agent = Agent(chat(server), instructions=SYSTEM, tools=[read_log], capabilities=[capability])
            run = await agent.run(prompt, message_history=history, usage_limits=UNLIMITED)
            history = run.all_messages()
            assert run.output == ANSWER
    async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
        (record,) = await sessions.list()
        assert record.id == history[-1].conversation_id
        assert await sessions.round(record.id) >= 2
    assert server.refused == []


@pytest.mark.anyio
async def test_agent_with_an_output_type_recalls_what_was_archived(chat: Any) -> None:
    class Depth(BaseModel):
        feet: int

    numbers = iter(range(1, 1_000))

    def read_next() -> str:
        """Reads the next log."""
        return read_log(next(numbers))

    def script(request: Request) -> Any:
        last = request.body["messages"][-1]
        if last["role"] == "tool" and "berth 2 has 97 feet" in last["content"] and last["content"].startswith("#"):
            return Say("", calls=(Call("final_result", {"feet": 97}),))
        wanted = "recall_search" if request.number > SMALL.logs else "read_next"
        return Say("", calls=(Call(wanted, {"query": "berth 2 has"} if wanted == "recall_search" else {}),))

    with Harbour() as server:
        server.script = script
        capability = HoldfastCapability(window=SMALL.window)
        agent = Agent(chat(server), output_type=Depth, tools=[read_next], capabilities=[capability])
        run = await agent.run("Read the logs.", usage_limits=UNLIMITED)
    assert run.output.feet == 97 and server.refused == []
