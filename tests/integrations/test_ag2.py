"""ag2 events in every form, the middleware and the strategy: restarts, recall, telemetry, replay invariants."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("ag2")

from ag2 import Agent, KnowledgeConfig, MemoryStream
from ag2.compact import CompactionSummary, CompactTrigger
from ag2.events import (
    BinaryInput,
    BinaryType,
    DataInput,
    FileIdInput,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolErrorEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
    UrlInput,
    Usage,
    UsageEvent,
)
from ag2.knowledge import MemoryKnowledgeStore
from tests.integrations.agents.ag2 import model_config
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, check, compact, open_store
from holdfast.errors import InvalidInput
from holdfast.integrations.ag2 import HoldfastCompact, HoldfastEventMiddleware
from holdfast.messages import Media, Text, ToolCall, decode_all, encode_all
from holdfast.messages import ToolResult as HoldfastResult
from holdfast.messages.frameworks import dump_objects, framework_codec, load_object, plain

pytest.importorskip("ag2.config.anthropic.config")
CALL = ToolCallEvent("look", id="c1", arguments='{"at": "tide"}')
EVENTS: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "text": (ModelRequest([TextInput("ahoy")]), "user", (Text("ahoy"),)),
    "texts and data": (ModelRequest([TextInput("a"), DataInput({"b": 1})]), "user", (Text("a"), Text('{"b":1}'))),
    "image": (
        ModelRequest([BinaryInput(b"\x89PNG", media_type="image/png", kind=BinaryType.IMAGE)]),
        "user",
        (Media("image", "image/png", "iVBORw=="),),
    ),
    "link": (
        ModelRequest([UrlInput("https://x.test/a.pdf", kind=BinaryType.DOCUMENT)]),
        "user",
        (Media("file", url="https://x.test/a.pdf"),),
    ),
    "file id": (ModelRequest([FileIdInput("f1", filename="a")]), "user", (Media("file", file_id="f1", name="a"),)),
    "reply": (ModelResponse(ModelMessage("so")), "assistant", (Text("so"),)),
    "call": (
        ModelResponse(ModelMessage("so"), tool_calls=ToolCallsEvent([CALL])),
        "assistant",
        (Text("so"), ToolCall("c1", "look", '{"at": "tide"}')),
    ),
    "results": (
        ToolResultsEvent(
            [
                ToolResultEvent(parent_id="c1", name="look", result=ToolResult("3 feet")),
                ToolErrorEvent(parent_id="c2", name="look", result=ToolResult("no tide"), error=Exception("no tide")),
            ]
        ),
        "tool",
        (
            HoldfastResult("c1", (Text("3 feet"),), False, "look"),
            HoldfastResult("c2", (Text("no tide"),), True, "look"),
        ),
    ),
    "summary": (CompactionSummary(summary="It was calm.", event_count=3), "user", (Text("It was calm."),)),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_event_is_decoded_and_comes_back_equal(kind: str) -> None:
    given, role, parts = EVENTS[kind]
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (role, parts, "ag2")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given
    assert payloads[0]["ag2"].items() >= plain(given.to_dict()).items()


def test_event_that_only_observers_need_is_an_error() -> None:
    for event in (UsageEvent(Usage(prompt_tokens=1)), CALL, ToolCallsEvent([CALL])):
        with pytest.raises(InvalidInput, match="is not a message of ag2"):
            compact([event], budget=1_000)


def test_usage_is_read_in_the_providers_own_form() -> None:
    usage = Usage(prompt_tokens=9.0, completion_tokens=1.0, cache_read_input_tokens=5.0)
    read = framework_codec("ag2").usage
    for provider, expected in (
        ("openai", {"prompt_tokens": 9, "completion_tokens": 1}),
        ("anthropic", {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 5}),
    ):
        payloads, _ = dump_objects([ModelResponse(usage=usage, provider=provider)])
        assert read(payloads[0]["ag2"]) == expected


def agent_on(server: Harbour, tools: Any = (read_log,), **options: Any) -> Agent:
    return Agent("clerk", SYSTEM, config=model_config(server), tools=tools, **options)


def test_stream_keeps_every_event_and_another_process_continues(tmp_path: Path) -> None:
    async def run(server: Harbour) -> str:
        stream = MemoryStream()
        for prompt in (SMALL.prompt, "What was the seal word?"):
            middleware = HoldfastEventMiddleware(
                window=SMALL.window, store=tmp_path / "agent.db"
            )  # as in another process
            reply = await agent_on(server, middleware=[middleware]).ask(prompt, stream=stream)
        assert len(list(await stream.history.get_events())) > 3 * SMALL.logs
        assert server.requests[-1].size < SMALL.window
        return str(await reply.content())

    with Harbour() as server:
        assert asyncio.run(run(server)) == ANSWER
    assert server.refused == [] and server.overflowed == 0

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            (record,) = await sessions.list()
            assert await sessions.verify(record.id) == [] and await sessions.round(record.id) >= 2

    anyio.run(read)


def test_strategy_shortens_the_history_between_turns_and_stores_what_it_drops() -> None:
    async def run(server: Harbour) -> None:
        store = MemoryKnowledgeStore()
        knowledge = KnowledgeConfig(
            store,
            expose_tool=False,
            write_event_log=False,
            compact=HoldfastCompact(3_000),
            compact_trigger=CompactTrigger(max_tokens=3_000),
        )
        agent = agent_on(server, knowledge=knowledge)
        reply = await agent.ask(SMALL.prompt)
        events = await reply.context.stream.history.get_events()
        messages = [event for event in events if not isinstance(event, UsageEvent)]
        assert len(messages) < 2 * SMALL.logs and check(messages, "ag2") == []
        assert any("seal word" in str(event.to_dict()) for event in messages)
        assert any("dropped" in str(path) for path in await store.list("/log/"))
        again = await reply.ask("What was the seal word?")
        assert await again.content() == ANSWER

    with Harbour() as server:
        server.window = None
        asyncio.run(run(server))
    assert server.refused == []


def test_strategy_leaves_a_history_that_fits() -> None:
    events = [ModelRequest([TextInput("ahoy")]), UsageEvent(Usage(prompt_tokens=1)), ModelResponse(ModelMessage("so"))]
    assert asyncio.run(HoldfastCompact(1_000).compact(events, None, None)) is events  # type: ignore[arg-type]


def test_agent_recalls_what_was_archived() -> None:
    def script(request: Request) -> Any:
        last = str(request.body["messages"][-1]["content"])
        if "tool_result" in last and "'#" in last and "berth 2 has 97 feet" in last:
            return "It has 97 feet."
        if any("Compaction round" in str(message["content"]) for message in request.body["messages"]):
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_log", {"number": next(numbers)}),))

    async def run(server: Harbour) -> str:
        middleware = HoldfastEventMiddleware(window=SMALL.window)
        agent = agent_on(server, [read_log, *middleware.recall_tools], middleware=[middleware])
        return str(await (await agent.ask("Read the logs.")).content())

    numbers = iter(range(1, 1_000))
    with Harbour() as server:
        server.script = script
        assert asyncio.run(run(server)) == "It has 97 feet."
    assert server.refused == []
