"""Signed reasoning and the prompt cache over several compactions: nothing invalid, and no needless change, is sent."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from functools import partial
from itertools import count, pairwise
from typing import Any

import msgspec
import pytest
from gateway_harness import FORMATS, ClientConversation, run_gateway

from holdfast import SlidingWindow
from holdfast.triggers import always
from providers import Answer, Call, ProviderServer, Request, Say

pytestmark = pytest.mark.anyio
WINDOW = 6_000
STEPS = 14
FIELDS = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}


def thinking_task(request: Request) -> Answer:
    """Thinks before each call; the number of the newest result is the number of the step."""
    found = [int(word[:3]) for word in json.dumps(request.body).split("berth-")[1:] if word[:3].isdigit()]
    step = max(found, default=0) + 1
    if step > STEPS:
        return Say("All berths are read.", thinking="That was the last one.")
    return Say(
        f"Reading berth {step}.",
        thinking=f"Berth {step} comes after {step - 1}.",
        calls=(Call("read_file", {"path": f"berths/{step}.txt"}),),
    )


def result(number: int) -> str:
    return f"berth-{number:03} is free.\n" + f"The depth at berth {number} is {number * 7} feet. " * 60


def message_list(request: Request) -> bytes:
    fields = msgspec.json.decode(request.raw, type=dict[str, msgspec.Raw])
    return bytes(fields[FIELDS[request.protocol]])


@pytest.mark.parametrize("format", FORMATS)
async def test_reasoning_stays_valid_and_requests_extend_each_other(format: str) -> None:
    with ProviderServer(thinking_task, window=WINDOW, binds_thinking=True) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = ClientConversation(running.model(format, "gemini-3-harbor" if format == "gemini" else "harbor"))
            client.say("Read all berths in order, and keep the rule: never moor at berth 13.")
            for number in range(1, STEPS + 2):
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read."
            assert server.refused == [] and server.overflowed == 0
            [session] = await running.sessions.list()
            compactions = len(await running.sessions.events(session.id, kind="compaction"))
            lists = [message_list(request) for request in server.requests]
            breaks = sum(not later.startswith(earlier[:-1]) for earlier, later in pairwise(lists))
            assert compactions >= 2 and breaks <= compactions
            kept = {"anthropic": b'"thinking"', "openai-responses": b'"reasoning"', "gemini": b'"thoughtSignature"'}
            assert kept.get(format, b"") in lists[-1]


async def test_cache_marks_of_the_client_stay_on_its_newest_messages() -> None:
    """The client marks its system prompt and newest message with each request; both marks are forwarded."""
    mark = {"type": "ephemeral"}
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            create = running.anthropic().messages.create
            sent: list[Any] = []
            for number in range(1, STEPS + 1):
                sent.append({"role": "user", "content": [{"type": "text", "text": result(number)}]})
                newest = {"role": "user", "content": [sent[-1]["content"][0] | {"cache_control": mark}]}
                system: Any = [{"type": "text", "text": "You keep the harbour.", "cache_control": mark}]
                await create(model="harbor", max_tokens=100, system=system, messages=[*sent[:-1], newest])  # type: ignore[list-item]
                sent.append({"role": "assistant", "content": "Aye."})
                forwarded = server.requests[-1].body
                assert forwarded["system"][0]["cache_control"] == mark
                marked = [one for one in forwarded["messages"] if "cache_control" in json.dumps(one)]
                assert marked == forwarded["messages"][-1:] and marked[0]["content"][-1]["cache_control"] == mark
            [session] = await running.sessions.list()
            assert await running.sessions.events(session.id, kind="compaction") and server.refused == []
            unmarked = [json.dumps(one.body["messages"]).replace(', "cache_control": {"type": "ephemeral"}', "")
                        for one in server.requests]  # fmt: skip
            breaks = sum(not b.startswith(a[:-1]) for a, b in pairwise(unmarked))
            assert breaks <= len(await running.sessions.events(session.id, kind="compaction"))


async def test_h6_cache_marks_stay_with_thinking_over_ten_compactions() -> None:
    """The client marks a text of its newest reply, which thinks, and the result after it: both marks are forwarded."""
    mark = {"cache_control": {"type": "ephemeral"}}
    replies = (
        Say(f"Reading {number}.", thinking="Hm.", calls=(Call("read_file", {"path": f"{number}.txt"}),))
        for number in count()
    )
    with ProviderServer(lambda _: next(replies), window=WINDOW, binds_thinking=True) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            tools: Any = [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}]
            create = partial(running.anthropic().messages.create, model="harbor", max_tokens=100, tools=tools)
            sent: list[Any] = [{"role": "user", "content": "Read all berths in order."}]
            for number in range(8 * STEPS):
                reply = await create(messages=sent)
                forwarded = server.requests[-1].body["messages"]
                blocks = [block for one in forwarded[-2:] if number for block in one["content"]]
                assert [block["type"] for block in blocks if "cache_control" in block] == ["text", "tool_result"][
                    : 2 * number
                ]
                assert json.dumps(forwarded).count("cache_control") == len(sent[1:][-2:])
                thinking, text, call = (block.model_dump(exclude_none=True) for block in reply.content)
                answer = {"type": "tool_result", "tool_use_id": call["id"], "content": result(number)}
                for block in (block for message in sent[1:][-2:] for block in message["content"]):
                    block.pop("cache_control", None)
                sent.append({"role": "assistant", "content": [thinking, text | mark, call]})
                sent.append({"role": "user", "content": [answer | mark]})
            [session] = await running.sessions.list()
            assert len(await running.sessions.events(session.id, kind="compaction")) >= 10 and server.refused == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_thinking_made_before_a_compaction_in_the_background_is_dropped(restarts: bool) -> None:
    """The reply to the last request comes back after the compaction that ran meanwhile; later thinking is kept."""
    thoughts = (Say(f"Aye {number}.", thinking=f"Hm {number}.") for number in range(20))
    with ProviderServer(lambda _: next(thoughts), window=100_000, binds_thinking=True) as server:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(run_gateway(server.anthropic_url, window=100_000))
            client = ClientConversation(running.model("anthropic"))
            for number in range(8):
                client.say(result(number))
                await client.step()
            [session] = await running.sessions.list()
            await running.sessions.compact(session.id, always, SlidingWindow(6))
            if restarts:
                same = run_gateway(server.anthropic_url, window=100_000, sessions=running.sessions)
                client.model = (await stack.enter_async_context(same)).model("anthropic")
            for number in range(8, 11):
                client.say(result(number))
                await client.step()
            assert server.refused == []
            sent = json.dumps(server.requests[-1].body["messages"])
            assert "Hm 6." not in sent and "Hm 7." not in sent and "Hm 8." in sent and "Hm 9." in sent


async def test_thinking_made_after_the_compaction_is_kept_by_a_gateway_that_was_restarted() -> None:
    """It does not know the last request, but the log has a reply since the compaction: the newest came later, too."""
    thoughts = (Say(f"Aye {number}.", thinking=f"Hm {number}.") for number in range(20))
    with ProviderServer(lambda _: next(thoughts), window=100_000, binds_thinking=True) as server:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(run_gateway(server.anthropic_url, window=100_000))
            client = ClientConversation(running.model("anthropic"))
            for number in range(6):
                client.say(result(number))
                await client.step()
                if number == 3:
                    [session] = await running.sessions.list()
                    await running.sessions.compact(session.id, always, SlidingWindow(4))
            same = run_gateway(server.anthropic_url, window=100_000, sessions=running.sessions)
            client.model = (await stack.enter_async_context(same)).model("anthropic")
            client.say(result(6))
            await client.step()
            sent = json.dumps(server.requests[-1].body["messages"])
            assert server.refused == [] and "Hm 3." not in sent and "Hm 4." in sent and "Hm 5." in sent
