"""Dicts of Bedrock's Converse API, which are the messages of Strands: decoded, detected, compacted and repaired.

They need no package.
"""

from __future__ import annotations

import copy
from typing import Any

import anyio
import pytest

from holdfast import Keeper, check, compact, repair
from holdfast.errors import UnknownFormat
from holdfast.messages import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, decode_all, encode_all
from holdfast.messages.frameworks import dump_objects, framework_codec, load_object

PNG = b"\x89PNG\r\n\x1a\n"
IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
CALL = {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "tide"}}}
CACHE = {"cachePoint": {"type": "default"}}
CITED = {"citationsContent": {"citations": [{"title": "Log"}], "content": [{"text": "97 "}, {"text": "feet"}]}}


def result(*content: Any, status: str = "success") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": "c1", "status": status, "content": list(content)}}


BLOCKS: dict[str, tuple[str, dict[str, Any], str, Part]] = {
    "text": ("user", {"text": "ahoy"}, "user", Text("ahoy")),
    "guarded text": ("user", {"guardContent": {"text": {"text": "ahoy"}}}, "user", Text("ahoy")),
    "cited text": ("assistant", CITED, "assistant", Text("97 feet")),
    "call": ("assistant", CALL, "assistant", ToolCall("c1", "look", {"at": "tide"})),
    "result": ("user", result({"text": "3 feet"}), "tool", ToolResult("c1", (Text("3 feet"),))),
    "data": ("user", result({"json": {"feet": 3}}), "tool", ToolResult("c1", (Text('{"feet":3}'),))),
    "failed": ("user", result({"text": "no"}, status="error"), "tool", ToolResult("c1", (Text("no"),), True)),
    "picture of a tool": (
        "user",
        result(IMAGE),
        "tool",
        ToolResult("c1", (Media("image", "image/png", "iVBORw0KGgo="),)),
    ),
    "thinking": (
        "assistant",
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        "assistant",
        Reasoning("hm", "s", origin="strands"),
    ),
    "redacted thinking": (
        "assistant",
        {"reasoningContent": {"redactedContent": b"xyz"}},
        "assistant",
        Reasoning("", None, "eHl6", origin="strands"),
    ),
    "image": ("user", IMAGE, "user", Media("image", "image/png", "iVBORw0KGgo=")),
    "document": (
        "user",
        {"document": {"format": "pdf", "name": "log", "source": {"location": {"type": "s3", "uri": "s3://b/log"}}}},
        "user",
        Media("file", "application/pdf", None, "s3://b/log", None, "log"),
    ),
    "cache point": ("user", CACHE, "user", Opaque("cachePoint", CACHE, "strands")),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_block_is_decoded_and_the_message_comes_back_equal(kind: str) -> None:
    role, block, neutral, part = BLOCKS[kind]
    given = {"role": role, "content": [block], "tracking_id": "m1", "metadata": {"custom": {"berth": 2}}}
    (message,), format = decode_all([given])
    assert (message.role, message.parts, format) == (neutral, (part,), "strands")
    (payload,) = encode_all([message], format)
    assert load_object(payload) == given
    payloads, originals = dump_objects([given])
    assert originals is not None and originals.restore(payloads)[0] is given


def test_formats_without_media_or_signatures_get_what_they_can_show() -> None:
    given = [{"role": "user", "content": [{"text": "See."}, IMAGE]}, {"role": "assistant", "content": [{"text": "I"}]}]
    chat = encode_all(decode_all(given)[0], "anthropic")
    assert chat[0]["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    back = encode_all(decode_all(chat, "anthropic")[0], "strands")
    assert [load_object(payload) for payload in back] == given


def test_parallel_results_of_another_format_become_one_message() -> None:
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call | {"id": "a"}, call | {"id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ]
    messages = [load_object(payload) for payload in encode_all(decode_all(chat)[0], "strands")]
    assert [len(message["content"]) for message in messages] == [1, 2, 2]
    assert check(messages, "strands") == []


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": [{"type": "text", "text": "ahoy"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3 feet"}]},
        {"role": "user", "parts": [{"text": "ahoy"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "3 feet"},
        {"type": "function_call_output", "call_id": "c1", "output": "3 feet"},
    ],
)
def test_detection_tells_them_from_the_other_formats(other: dict[str, Any]) -> None:
    assert decode_all([other])[1] != "strands"
    with pytest.raises(UnknownFormat, match="one format at a time"):
        decode_all([{"role": "user", "content": [{"text": "ahoy"}]}, other])


def test_plain_and_empty_messages_fit_between_them() -> None:
    given = [{"role": "user", "content": "ahoy"}, {"role": "assistant", "content": []}]
    assert decode_all(given)[1] == "common"
    messages, format = decode_all([*given, {"role": "user", "content": [{"text": "ahoy"}]}])
    assert format == "strands" and [message.role for message in messages] == ["user", "assistant", "user"]


def history(steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": "Read all logs, seal word ORLOP."}]}]
    for step in range(steps):
        use = {"toolUseId": f"c{step}", "name": "read_log", "input": {"number": step}}
        text = {"text": f"Log {step}: " + "calm sea, no ships. " * 60}
        messages.append({"role": "assistant", "content": [{"toolUse": use}]})
        messages.append({"role": "user", "content": [{"toolResult": {"toolUseId": f"c{step}", "content": [text]}}]})
    return messages


def test_compact_check_and_repair_accept_and_return_them() -> None:
    given = history(40)
    before = copy.deepcopy(given)
    result = compact(given, budget=4_000)
    assert result.outcome == "compacted" and result.format == "strands" and given == before
    assert check(result.messages, "strands") == [] and "ORLOP" in str(result.messages)
    assert result.messages[-1]["content"][0]["toolResult"]["toolUseId"] == "c39"
    assert repair(given, "strands") == given
    torn = [given[0], given[2], *given[1:2]]
    assert check(torn, "strands") and check(repair(torn, "strands"), "strands") == []
    blank = [{"role": "user", "content": [{"text": " "}, {"text": "ahoy"}]}]
    assert repair(blank, "strands") == [{"role": "user", "content": [{"text": "ahoy"}]}]


def test_keeper_follows_them_as_the_list_grows() -> None:
    async def run() -> None:
        keeper, rounds = Keeper(window=4_000), 0
        for steps in range(1, 41):
            context = await keeper.prepare_step(history(steps))
            assert context.format == "strands" and check(context.messages, "strands") == []
            rounds = max(rounds, await keeper.sessions.round(keeper.session_id))
        assert rounds >= 2 and "Log 39: calm sea" in str(context.messages)

    anyio.run(run)


def test_usage_counts_the_cache_once() -> None:
    read = framework_codec("strands").usage
    reported = {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10, "cacheReadInputTokens": 5}
    assert read({"metadata": {"usage": reported}}) == {"input": 9, "output": 1}
    apart = read({"metadata": {"usage": reported | {"totalTokens": 15}}})
    assert apart == {"input": 9, "output": 1, "cache_read": 5, "cache_write": 0}
    assert read({"role": "assistant", "content": []}) is None
