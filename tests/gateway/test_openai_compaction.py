"""OpenAI's compaction protocol through the gateway, with the real SDK and an upstream that does not have it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_harness import run_gateway
from openai import BadRequestError

from holdfast import MemoryStore, SessionService
from providers import ProviderServer, Request, Say

pytestmark = pytest.mark.anyio
WINDOW = 40_000
KEYS = {"first-owner-key-0123456789": "first", "second-owner-key-0123456789": "second"}


def history(count: int, words: int = 60) -> list[Any]:
    """A conversation of calls and results, which ends in a result."""
    items: list[Any] = [{"role": "user", "content": "Read all berths; never moor at berth 13."}]
    for number in range(1, count + 1):
        call = {"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": "{}"}
        output = f"berth-{number:03}: depth {number * 7} feet. " + "The tide table is long. " * words
        items += [call, {"type": "function_call_output", "call_id": f"call_{number}", "output": output}]
    return items


def dumped(items: list[Any]) -> list[Any]:
    return [item.model_dump(exclude_none=True, warnings=False) for item in items]


def sent(server: ProviderServer) -> str:
    return json.dumps(server.requests[-1].body["input"])


async def test_compact_endpoint_returns_an_item_that_continues_the_session() -> None:
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = running.openai()
            given = history(40)
            await client.responses.create(model="harbor", input=given)
            compacted = await client.responses.compact(model="harbor", input=given, instructions="Be brief.")
            assert compacted.object == "response.compaction" and len(server.requests) == 1
            user, item = compacted.output
            assert user.type == "message" and item.type == "compaction"
            assert "berth-001" not in item.encrypted_content and item.id.startswith("cmp_")
            follow_up = [*dumped(compacted.output), {"role": "user", "content": "Which depth has berth 40?"}]
            reply = await client.responses.with_raw_response.create(model="harbor", input=follow_up)
            assert reply.headers["x-holdfast-outcome"] == "compacted" and reply.parse().output_text == "Aye."
            assert "berth-040" in sent(server) and "never moor at berth 13" in sent(server)
            assert len(sent(server)) < len(json.dumps(given)) * 0.6 and "holdfast1." not in sent(server)
            [session] = await running.sessions.list()
            assert session.id == reply.headers["x-holdfast-session"]
            await client.responses.create(
                model="harbor",
                input=[*follow_up, {"role": "assistant", "content": "Aye."}, {"role": "user", "content": "Thanks."}],
            )
            events = await running.sessions.events(session.id, kind="message")
            assert [event.body["message"].get("content") for event in events[-3:]] == [
                "Which depth has berth 40?",
                "Aye.",
                "Thanks.",
            ]
            assert len(await running.sessions.list()) == 1 and server.refused == []


async def test_trigger_answers_with_the_item_alone_streamed_and_whole() -> None:
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = running.openai()
            asked: list[Any] = [*history(40), {"type": "compaction_trigger"}]
            stream = await client.responses.create(model="harbor", input=asked, stream=True)
            events = [event async for event in stream]
            assert [event.type for event in events] == [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.output_item.done",
                "response.completed",
            ]
            assert [event.sequence_number for event in events] == list(range(5))
            [item] = events[-1].response.output
            whole = await client.responses.create(model="harbor", input=asked)
            assert [one.type for one in whole.output] == ["compaction"] and whole.status == "completed"
            assert server.requests == []
            retained: list[Any] = [
                {"type": "message", "role": "developer", "content": "New permissions."},
                {"type": "message", "role": "user", "content": "The folder is now /quay."},
                history(0)[0] | {"content": [{"type": "input_text", "text": history(0)[0]["content"]}]},
                {"type": "compaction", "encrypted_content": item.encrypted_content},
            ]
            await client.responses.create(model="harbor", input=retained)
            assert "New permissions." in sent(server) and "/quay" in sent(server)
            assert sent(server).count("Read all berths; never moor at berth 13.") == 1
            with pytest.raises(BadRequestError, match="final input item"):
                await client.responses.create(model="harbor", input=[asked[-1], *asked[:-1]])


@pytest.mark.parametrize("stream", [True, False])
async def test_threshold_puts_the_item_before_the_output(stream: bool) -> None:
    with ProviderServer(Say("Moored.", thinking="Where?"), window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = running.openai()
            how: Any = {
                "model": "harbor",
                "context_management": [{"type": "compaction", "compact_threshold": 8_000}],
                "include": ["reasoning.encrypted_content"],
                "store": False,
            }
            short = await client.responses.create(input=history(2), **how)
            assert [item.type for item in short.output] == ["reasoning", "message"]
            given = history(60)
            if stream:
                events = [event async for event in await client.responses.create(input=given, stream=True, **how)]
                reply = events[-1].response
                assert [event.sequence_number for event in events[2:4]] == [0, 1]
                added = [event.output_index for event in events if event.type == "response.output_item.added"]
                assert added == [0, 1, 2]
            else:
                reply = await client.responses.create(input=given, **how)
            assert [item.type for item in reply.output] == ["compaction", "reasoning", "message"]
            assert reply.output_text == "Moored."
            first = server.requests[-1].body["input"]
            await client.responses.create(
                input=[*given, *dumped(reply.output), {"role": "user", "content": "And now?"}], **how
            )
            second = server.requests[-1].body["input"]
            assert second[: len(first)] == first and second[-1]["content"] == "And now?"
            assert server.refused == [] and len(await running.sessions.list()) == 1


async def test_items_are_valid_at_other_replicas_and_only_for_their_owner() -> None:
    """Another replica without the session expands the item; another owner's item and a damaged one are refused."""
    options: Any = {"window": WINDOW, "keys": KEYS, "item_keys": ("k" * 40,)}
    first, second = KEYS
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, **options, upstream_key="sk-harbor") as running:
            compacted = await running.openai(first).responses.compact(model="harbor", input=history(40))
        options |= {"item_keys": ("new" * 20, "k" * 40), "upstream_key": "sk-harbor"}
        async with run_gateway(server.anthropic_url, sessions=SessionService(MemoryStore()), **options) as running:
            follow_up: list[Any] = [*dumped(compacted.output), {"role": "user", "content": "Berth 40?"}]
            await running.openai(first).responses.create(model="harbor", input=follow_up)
            assert "berth-040" in sent(server)
            await running.openai(first).responses.create(
                model="harbor", input=[*follow_up, {"role": "assistant", "content": "Aye."}, follow_up[-1]]
            )
            assert len(await running.sessions.list()) == 1
            with pytest.raises(BadRequestError) as refused:
                await running.openai(second).responses.create(model="harbor", input=follow_up)
            assert refused.value.code == "invalid_encrypted_content"
            item = follow_up[-2]
            for text in (item["encrypted_content"][:-4] + "AAAA", "holdfast1.", "holdfast1.é"):
                with pytest.raises(BadRequestError) as refused:
                    damaged: list[Any] = [*follow_up[:-2], item | {"encrypted_content": text}, follow_up[-1]]
                    await running.openai(first).responses.create(model="harbor", input=damaged)
                assert refused.value.code == "invalid_encrypted_content"
        assert len(server.requests) == 2


async def test_foreign_items_and_native_requests_pass_untouched() -> None:
    """A foreign item reaches the upstream; with `native` all of the protocol does."""
    with ProviderServer("Aye.") as server:
        foreign: list[Any] = [*history(1), {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAforeign"}]
        async with run_gateway(server.anthropic_url) as running:
            await running.openai().responses.create(model="harbor", input=[*foreign, history(0)[0]])
            assert server.requests[-1].body["input"][-2]["encrypted_content"] == "gAAAAforeign"
        seen: list[Request] = server.requests
        async with run_gateway(server.anthropic_url, native=True) as running:
            how: Any = {"context_management": [{"type": "compaction", "compact_threshold": 1_000}]}
            with pytest.raises(BadRequestError, match="context_management"):
                await running.openai().responses.create(model="harbor", input=history(1), **how)
            with pytest.raises(Exception, match="Unknown request URL"):
                await running.openai().responses.compact(model="harbor", input=history(1))
            trigger: list[Any] = [*history(1), {"type": "compaction_trigger"}]
            await running.openai().responses.create(model="harbor", input=trigger)
            assert seen[-1].body["input"][-1] == {"type": "compaction_trigger"}


async def test_client_that_goes_back_to_its_item_continues_from_there() -> None:
    """The edited message is in a fork, whose context begins with the compacted messages, not with all of them."""
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = running.openai()
            compacted = dumped((await client.responses.compact(model="harbor", input=history(40))).output)
            for text in ("Which is the deepest?", "Which is the shallowest?", "Which is the shallowest?"):
                await client.responses.create(model="harbor", input=[*compacted, {"role": "user", "content": text}])
            deepest, shallowest, again = (request.body["input"] for request in server.requests)
            assert deepest[:-1] == shallowest[:-1] and shallowest == again
            assert "deepest" not in json.dumps(shallowest) and len(await running.sessions.list()) == 2


async def test_protocol_works_without_the_store_and_says_so() -> None:
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            await running.sessions.close()
            raw = running.openai().responses.with_raw_response
            reply = await raw.compact(model="harbor", input=history(40))
            assert reply.headers["x-holdfast-outcome"] == "failed"
            follow_up: list[Any] = [*dumped(reply.parse().output), {"role": "user", "content": "Berth 40?"}]
            answer = await raw.create(model="harbor", input=follow_up)
            assert answer.headers["x-holdfast-outcome"] == "failed" and answer.parse().output_text == "Aye."
            assert "berth-040" in sent(server) and "holdfast1." not in sent(server)
            odd: Any = {"context_management": "odd", "input": follow_up}
            with pytest.raises(BadRequestError, match="context_management"):
                await running.openai().responses.create(model="harbor", **odd)
