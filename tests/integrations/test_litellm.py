"""The LiteLLM callback: streaming, blocking, sessions, recall, overflow; and what `trim_messages` does instead."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("litellm")

import litellm
from litellm.utils import trim_messages
from tests.integrations.agents.litellm import loop, request
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say
from tests.providers.faults import Status

from holdfast import SessionService, check, compact, open_store
from holdfast.integrations.litellm import HoldfastCallback, conversation_key


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> HoldfastCallback:
    made = HoldfastCallback(window=SMALL.window)
    monkeypatch.setattr(litellm, "callbacks", [made])
    return made


def test_blocking_completions_are_compacted_and_repeated_after_an_overflow() -> None:
    """LiteLLM runs no hook that may change the messages of `completion`."""
    with Harbour() as server:
        callback = HoldfastCallback(window=4 * SMALL.window)
        messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": SMALL.prompt}]
        while True:
            message = callback.completion(messages=messages, **request(server)).choices[0].message
            if not message.tool_calls:
                break
            messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            for call in message.tool_calls:
                result = read_log(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert message.content == ANSWER
    assert (server.overflowed, server.refused) == (1, [])
    assert check(messages, "openai-chat") == [] and len(messages) > SMALL.logs


def test_streamed_completion_is_repeated_after_an_overflow(callback: HoldfastCallback) -> None:
    async def run(server: Harbour) -> str:
        long = [{"role": "user", "content": SMALL.prompt}, {"role": "assistant", "content": "x" * 60_000}]
        messages = [*long, {"role": "user", "content": "Go on."}]
        stream = await litellm.acompletion(messages=messages, stream=True, **request(server))
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    callback.conversations.window = 100_000
    with Harbour() as server:
        assert asyncio.run(run(server)) == "I begin."
    assert server.overflowed == 1 and server.refused == []


def test_other_errors_and_other_calls_pass(callback: HoldfastCallback) -> None:
    async def run(server: Harbour) -> None:
        await litellm.acompletion(messages=[{"role": "user", "content": "ahoy"}], **request(server))

    with Harbour() as server, pytest.raises(litellm.exceptions.BadRequestError, match="no such tide"):
        server.script = Status(400, "There is no such tide.")
        asyncio.run(run(server))
    assert len(server.requests) == 1
    assert asyncio.run(callback.async_pre_call_deployment_hook({"input": "x"}, "aembedding")) is None


def test_each_conversation_has_a_key() -> None:
    first, second = ([{"role": "user", "content": text}] for text in ("one", "two"))
    assert conversation_key({"messages": first}) == conversation_key({"messages": [*first, *second]})
    assert conversation_key({"messages": first}) != conversation_key({"messages": second})
    assert conversation_key({"messages": first, "metadata": {"session_id": "a"}}) == "a"
    assert conversation_key({"messages": first, "litellm_session_id": "b", "metadata": {"session_id": "a"}}) == "b"


def test_router_and_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    callback = HoldfastCallback(window=SMALL.window, store=tmp_path / "agent.db")
    monkeypatch.setattr(litellm, "callbacks", [callback])
    with Harbour() as server:
        options = request(server)
        deployment = {"model_name": "harbour", "litellm_params": {k: v for k, v in options.items() if k != "tools"}}
        router = litellm.Router(model_list=[deployment])

        async def complete(**kwargs: Any) -> Any:
            return await router.acompletion(**kwargs | {"model": "harbour", "litellm_session_id": "thread-1"})

        assert asyncio.run(loop(server, complete=complete)) == ANSWER
    assert server.refused == [] and server.overflowed == 0

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            assert await sessions.round("thread-1") >= 2

    anyio.run(read)


def test_agent_recalls_what_was_archived(callback: HoldfastCallback) -> None:
    async def run(server: Harbour) -> str:
        options = request(server)
        options["tools"] = [*options["tools"], *callback.recall_tools]
        messages: list[Any] = [{"role": "user", "content": "Read the logs."}]
        for number in range(1, 100):
            message = (await litellm.acompletion(messages=messages, **options)).choices[0].message
            if not message.tool_calls:
                break
            messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            call = message.tool_calls[0]
            if call.function.name == "read_log":
                messages.append({"role": "tool", "tool_call_id": call.id, "content": read_log(number)})
            else:
                messages.append(await callback.answer(call, messages=messages))
        return str(message.content)

    with Harbour() as server:
        server.script = recalling
        assert asyncio.run(run(server)) == "It has 97 feet."


def recalling(request: Request) -> Any:
    """Reads until a compaction has happened, then looks up a berth whose log is no longer in the prompt."""
    messages = request.body["messages"]
    if str(messages[-1].get("content")).startswith("#"):
        return "It has 97 feet." if "berth 2 has 97 feet" in messages[-1]["content"] else "I cannot find it."
    if any("Compaction round" in str(message.get("content")) for message in messages):
        return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
    return Say("", calls=(Call("read_log", {"number": 1}),))


def test_trim_messages_leaves_results_without_calls_and_drops_the_task() -> None:
    messages: list[Any] = [{"role": "user", "content": SMALL.prompt}]
    for number in range(20):
        function = {"name": "read_log", "arguments": json.dumps({"number": number})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": read_log(number)})
    theirs = trim_messages(messages, "gpt-4o", max_tokens=4_000)
    assert not any("seal word" in str(message.get("content")) for message in theirs)
    assert {problem.rule for problem in check(theirs, "openai-chat")} & {"orphan-result"}
    ours = compact(messages, budget=4_000).messages
    assert any("seal word" in str(message.get("content")) for message in ours) and check(ours, "openai-chat") == []
