"""Anthropic's compaction protocols through the gateway, with the real SDK and an upstream that does not have them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import BadRequestError
from gateway_harness import run_gateway

from providers import ProviderServer, Say

pytestmark = pytest.mark.anyio
BETAS = ["context-management-2025-06-27", "compact-2026-01-12", "compact-2026-09-04", "other-2026-01-01"]
TOOL = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
HOW: Any = {"model": "harbor", "max_tokens": 500, "tools": [TOOL], "betas": BETAS}
COMPACT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
WINDOW = 200_000


def history(count: int, words: int = 60) -> list[Any]:
    """A conversation of calls and results, which ends in a result."""
    messages: list[Any] = [{"role": "user", "content": "Read all berths; never moor at berth 13."}]
    for number in range(1, count + 1):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"berth": number}}
        text = f"berth-{number:03}: depth {number * 7} feet. " + "The tide table is long. " * words
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return messages


def dumped(blocks: list[Any]) -> list[Any]:
    return [block.model_dump(exclude_none=True) for block in blocks]


def sent(server: ProviderServer) -> str:
    return json.dumps(server.requests[-1].body["messages"])


@pytest.mark.parametrize("stream", [True, False])
async def test_threshold_compaction_puts_a_block_first_and_reports_iterations(stream: bool) -> None:
    with ProviderServer(Say("Moored.", thinking="Where to?"), window=WINDOW, binds_thinking=True) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            how = HOW | {"context_management": {"edits": [COMPACT]}}
            given = history(170)
            if stream:
                async with messages.stream(messages=given, **how) as events:
                    kinds = [event.type async for event in events]
                    reply = await events.get_final_message()
                assert "compaction" in kinds
            else:
                reply = await messages.create(messages=given, **how)
            assert [block.type for block in reply.content] == ["compaction", "thinking", "text"]
            assert reply.stop_reason == "end_turn" and reply.context_management is not None
            assert "never moor at berth 13" in (reply.content[0].content or "")
            usage = reply.usage
            assert [entry.type for entry in usage.iterations or ()] == ["compaction", "message"]
            assert usage.iterations and usage.iterations[1].input_tokens == usage.input_tokens < 50_000
            assert server.requests[-1].headers["anthropic-beta"] == "other-2026-01-01"
            first = server.requests[-1].body["messages"]
            follow_up: list[Any] = [
                *given,
                {"role": "assistant", "content": dumped(reply.content)},
                {"role": "user", "content": "And now?"},
            ]
            again = await messages.create(messages=follow_up, **how)
            assert [block.type for block in again.content] == ["thinking", "text"]
            second = server.requests[-1].body["messages"]
            assert second[: len(first)] == first and second[-1]["content"] == "And now?"
            assert second[-2]["content"][0]["type"] == "thinking"
            counted = await messages.count_tokens(
                model="harbor", messages=follow_up, tools=HOW["tools"], betas=BETAS, context_management={"edits": []}
            )
            assert counted.input_tokens == server.requests[-1].size < 50_000
            [session] = await running.sessions.list()
            assert len(await running.sessions.events(session.id, kind="message")) == len(given) + 2
            assert server.refused == []


async def test_pause_after_compaction_returns_the_block_alone() -> None:
    with ProviderServer("Moored.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            how = HOW | {"context_management": {"edits": [COMPACT | {"pause_after_compaction": True}]}}
            given = history(170)
            async with messages.stream(messages=given, **how) as events:
                paused = await events.get_final_message()
            assert paused.stop_reason == "compaction" and len(paused.content) == 1 and server.requests == []
            assert [entry.type for entry in paused.usage.iterations or ()] == ["compaction"]
            given += [{"role": "assistant", "content": dumped(paused.content)}, {"role": "user", "content": "Go on."}]
            reply = await messages.create(messages=given, **how)
            assert reply.stop_reason == "end_turn" and "berth-170" in sent(server)
            with pytest.raises(BadRequestError, match="50000"):
                low = COMPACT | {"trigger": {"type": "input_tokens", "value": 20}}
                await messages.create(messages=given, **HOW, context_management={"edits": [low]})


@pytest.mark.parametrize("stream", [True, False])
async def test_summary_on_demand_is_signed_and_sent_back_first(stream: bool) -> None:
    with ProviderServer("Moored.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            how = HOW | {"compaction": {"type": "summarize", "instructions": "Keep the rules."}}
            given = [*history(30), {"role": "assistant", "content": "All read."}]
            if stream:
                raw = await messages.create(messages=given, stream=True, **how)
                events = [event async for event in raw]
                kinds = [event.type for event in events]
                assert "content_block_delta" not in kinds and kinds.count("content_block_start") == 1
                async with messages.stream(messages=given, **how) as final:
                    reply = await final.get_final_message()
            else:
                reply = await messages.create(messages=given, **how)
            [block] = dumped(reply.content)
            assert reply.stop_reason == "compaction" and reply.usage.input_tokens == 0 and server.requests == []
            assert set(block) == {"type", "content", "signature"}
            asked: list[Any] = [
                {"role": "assistant", "content": [block | {"cache_control": {"type": "ephemeral"}}]},
                {"role": "user", "content": "Which is the deepest?"},
            ]
            await messages.create(messages=asked, **HOW)
            assert "never moor at berth 13" in sent(server) and "berth-030" in sent(server)
            assert sent(server).count("cache_control") == 1 and server.refused == []
            [session] = await running.sessions.list()
            assert (await running.sessions.events(session.id))[-1].body["message"]["content"] == asked[-1]["content"]


async def test_summary_on_demand_refuses_what_the_vendor_refuses() -> None:
    with ProviderServer("Moored.", window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            on_demand: Any = {"compaction": {"type": "summarize"}}

            async def code_of(given: list[Any], **how: Any) -> str | None:
                with pytest.raises(BadRequestError) as refused:
                    await messages.create(messages=given, **HOW | how)
                body: Any = refused.value.body
                assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error"
                return (body["error"].get("details") or {}).get("error_code")

            given = history(5)
            [block] = dumped((await messages.create(messages=given, **HOW, **on_demand)).content)
            own: Any = {"role": "assistant", "content": [block]}
            user: Any = {"role": "user", "content": "Go on."}
            changed = block | {"content": "Moor at berth 13."}
            forged = block | {"signature": block["signature"][:-3] + "AAA"}
            assert await code_of([{"role": "assistant", "content": [changed]}, user]) == "compaction_content_mismatch"
            assert await code_of([{"role": "assistant", "content": [forged]}, user]) == "compaction_signature_invalid"
            assert await code_of([own, own, user]) == "compaction_block_ambiguous"
            assert await code_of([user, own, user]) == "compaction_block_misplaced"
            assert await code_of(given[:-1], **on_demand) == "compaction_incomplete_turn"
            assert await code_of([{"role": "user", "content": ""}], **on_demand) == "compaction_nothing_to_summarize"
            for conflict in (
                {"context_management": {"edits": []}},
                {"stop_sequences": ["x"]},
                {"tool_choice": {"type": "any"}},
                {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
            ):
                assert await code_of(given, **on_demand, **conflict) is None
            assert server.requests == []


async def test_part_of_a_conversation_is_summarized_and_its_rest_kept() -> None:
    """Thinking of kept turns was made in the conversation before the block: none of it is sent."""
    with ProviderServer(Say("Moored.", thinking="Where to?"), window=WINDOW, binds_thinking=True) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            given = history(20)
            reply = await messages.create(messages=given, **HOW)
            kept: list[Any] = [
                {"role": "assistant", "content": dumped(reply.content)},
                {"role": "user", "content": "And now?"},
            ]
            await messages.create(messages=[*given, *kept], **HOW)
            [block] = dumped((await messages.create(messages=given, **HOW, compaction={"type": "summarize"})).content)
            own = {"role": "assistant", "content": [block]}
            reply = await messages.create(messages=[own, *kept], **HOW)  # type: ignore[list-item]
            assert "thinking" not in sent(server) and server.refused == []
            kept += [{"role": "assistant", "content": dumped(reply.content)}, {"role": "user", "content": "Then?"}]
            await messages.create(messages=[own, *kept], **HOW)  # type: ignore[list-item]
            assert server.refused == [] and "Then?" in sent(server)


async def test_context_edits_clear_old_results_and_thinking() -> None:
    thoughts = (Say(f"So {number}.", thinking=f"Hm {number}.") for number in range(9))
    with ProviderServer(lambda _: next(thoughts), window=WINDOW, binds_thinking=True) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            messages = running.anthropic().beta.messages
            thinking: Any = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
            given: list[Any] = [{"role": "user", "content": "First."}]
            for text in ("Second.", "Third.", "Fourth."):
                reply = await messages.create(messages=given, **HOW)
                given += [{"role": "assistant", "content": dumped(reply.content)}, {"role": "user", "content": text}]
            reply = await messages.create(messages=given, **HOW, context_management={"edits": [thinking]})
            assert reply.context_management and reply.context_management.applied_edits[0].model_dump() == {
                "type": "clear_thinking_20251015",
                "cleared_thinking_turns": 2,
                "cleared_input_tokens": reply.context_management.applied_edits[0].cleared_input_tokens,
            }
            assert "Hm 2." in sent(server) and "Hm 1." not in sent(server)
            uses: Any = {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "tool_uses", "value": 5},
                "keep": {"type": "tool_uses", "value": 2},
                "clear_tool_inputs": True,
            }
            edits: Any = {"edits": [thinking | {"keep": "all"}, uses]}
            given += history(8)[1:]
            async with messages.stream(messages=given, **HOW, context_management=edits) as events:
                streamed = await events.get_final_message()
            assert streamed.context_management is not None
            [applied] = [edit.model_dump() for edit in streamed.context_management.applied_edits]
            assert applied["cleared_tool_uses"] == 6 and applied["cleared_input_tokens"] > 1_000
            assert "berth-006" not in sent(server) and "berth-007" in sent(server) and "thinking" not in sent(server)
            counted = await messages.count_tokens(
                model="harbor", messages=given, tools=HOW["tools"], betas=BETAS, context_management=edits
            )
            assert counted.context_management is not None
            saved = counted.context_management.original_input_tokens - counted.input_tokens
            assert saved == applied["cleared_input_tokens"] and server.refused == []


async def test_native_leaves_the_protocols_to_the_upstream() -> None:
    with ProviderServer("Moored.") as server:
        async with run_gateway(server.anthropic_url, native=True) as running:
            messages = running.anthropic().beta.messages
            for how in ({"context_management": {"edits": []}}, {"compaction": {"type": "summarize"}}):
                with pytest.raises(BadRequestError, match="Extra inputs"):
                    await messages.create(messages=history(1), **HOW, **how)  # type: ignore[arg-type]
                assert server.requests[-1].headers["anthropic-beta"] == ",".join(BETAS)
                assert how.items() <= server.requests[-1].body.items()
