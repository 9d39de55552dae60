"""Recall inside the gateway: the model may look up archived messages, and the client never sees that it did."""

from __future__ import annotations

import msgspec

from ..messages import Json, Message, Text, ToolCall, ToolResult, decode_all, encode_all, encode_tools, to_json
from ..recall import Recall
from ..recall.tools import RECALL_TOOLS, RESTORE_TOOL, TOOL_NAMES, run_recall_tool
from ..sessions import SessionService
from .protocols import RequestBody, WireProtocol
from .replies import read_event

MAX_LOOKUPS = 5
"""Replies with lookups in a row; then the request is sent without the tools."""
_MAX_ANSWER_TOKENS = 4_000
_CALL_AGAIN = "Not run, because it was called together with a lookup: call it again."
_OFFERED = tuple(tool for tool in RECALL_TOOLS if tool.name != RESTORE_TOOL)


def offer_recall(body: RequestBody) -> RequestBody | None:
    """Returns a request that offers the recall tools as well; None if the client has tools of these names."""
    own = body.value("tools") or []
    if not isinstance(own, list) or any(name in to_json(own) for name in TOOL_NAMES):
        return None
    tools = msgspec.Raw(msgspec.json.encode([*own, *encode_tools(body.protocol.format, _OFFERED)]))
    return body.with_fields({"tools": tools})


async def answer_lookups(
    sessions: SessionService, session_id: str, body: RequestBody, content_type: str, content: bytes
) -> RequestBody | None:
    """Returns the request that continues a reply with lookups; None if the reply has none and is the client's."""
    format = body.protocol.format
    reply = read_reply(body.protocol, content_type, content)
    decoded = decode_all(reply, format)[0] if reply else []
    calls = [call for message in decoded for call in message.calls]
    if not any(call.name in TOOL_NAMES for call in calls):
        return None
    results = tuple([await _answer(sessions, session_id, call) for call in calls])
    more = encode_all([*decoded, Message("tool", results)], format)
    before = msgspec.json.decode(body.messages)
    return body.with_fields({body.protocol.messages: msgspec.Raw(msgspec.json.encode([*before, *more]))})


async def _answer(sessions: SessionService, session_id: str, call: ToolCall) -> ToolResult:
    if call.name not in TOOL_NAMES:
        return ToolResult(call.id, (Text(_CALL_AGAIN),), True, call.name)
    recall = Recall(sessions, session_id, can_restore=False)
    answer = await run_recall_tool(recall, call.name, call.arguments, _MAX_ANSWER_TOKENS)
    return ToolResult(call.id, (Text(answer.text),), answer.is_error, call.name)


# -- replies ---------------------------------------------------------------------------------------------------------


def read_reply(protocol: WireProtocol, content_type: str, content: bytes) -> list[Json]:
    """Returns the messages of a whole reply in its wire format, streamed or not; empty if it cannot be read."""
    try:
        if "text/event-stream" in content_type:
            lines = (
                line for line in content.splitlines() if line.startswith(b"data:") and line[5:].strip() != b"[DONE]"
            )
            events = list(map(read_event, lines))
        else:
            events = [msgspec.json.decode(content)]
    except msgspec.DecodeError:
        return []
    if None in events:
        return []
    match protocol.format:
        case "openai-chat":
            return _chat_reply(events)
        case "openai-responses":
            outputs = (event.get("response", event).get("output") for event in reversed(events))
            return next((list(output) for output in outputs if output), [])
        case "anthropic":
            return _anthropic_reply(events)
    parts = [part for event in events for part in _first(event, "candidates").get("content", {}).get("parts", [])]
    return [{"role": "model", "parts": parts}] if parts else []


def _first(event: Json, field: str) -> Json:
    items = event.get(field) or [{}]
    return items[0] if isinstance(items[0], dict) else {}


def _chat_reply(events: list[Json]) -> list[Json]:
    message: Json = {"role": "assistant"}
    calls: dict[int, Json] = {}
    for event in events:
        choice = _first(event, "choices")
        delta = choice.get("delta") or choice.get("message") or {}
        for key, value in delta.items():
            if key == "tool_calls":
                for at, call in enumerate(value or []):
                    _merge_call(calls.setdefault(call.get("index", at), {"type": "function", "function": {}}), call)
            elif isinstance(value, str) and key != "role":
                message[key] = message.get(key, "") + value
    if calls:
        message = {"content": None} | message | {"tool_calls": [calls[at] for at in sorted(calls)]}
    return [message] if len(message) > 1 else []


def _merge_call(call: Json, delta: Json) -> None:
    function, more = call["function"], delta.get("function") or {}
    call["id"] = delta.get("id") or call.get("id", "")
    function["name"] = more.get("name") or function.get("name", "")
    function["arguments"] = function.get("arguments", "") + (more.get("arguments") or "")


_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _anthropic_reply(events: list[Json]) -> list[Json]:
    if events and "content" in events[0]:
        return [{"role": "assistant", "content": events[0]["content"]}]
    blocks: dict[int, Json] = {}
    inputs: dict[int, str] = {}
    for event in events:
        at, delta = event.get("index", 0), event.get("delta") or {}
        if event.get("type") == "content_block_start":
            blocks[at] = dict(event["content_block"])
        elif field := _DELTA_FIELDS.get(delta.get("type", "")):
            blocks[at][field] = blocks[at].get(field, "") + delta[field]
        elif delta.get("type") == "input_json_delta":
            inputs[at] = inputs.get(at, "") + delta["partial_json"]
    for at, text in inputs.items():
        blocks[at]["input"] = msgspec.json.decode(text or "{}")
    return [{"role": "assistant", "content": [blocks[at] for at in sorted(blocks)]}] if blocks else []
