"""OpenAI Responses items: one item is one message here, so that each goes back out as it came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import as_list, data_url, drop_none, flag_error, read_error, string

name = "openai-responses"
system_field = "instructions"

ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
OPAQUE_ITEMS = frozenset(
    (
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "item_reference",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "compaction_trigger",
    )
)
"""Item types without a paired output: they are kept, never interpreted."""
_USER_SIDE = frozenset(("mcp_approval_response", "compaction_trigger"))
_OWN_CALL_FIELDS = frozenset(("type", "call_id", "id", "status"))


def decode(raw: Json) -> Message:
    kind = raw.get("type") or "message"
    if kind == "message":
        return Message(ROLES[raw["role"]], tuple(_content(raw.get("content"))), name, raw)
    if kind == "reasoning":
        return Message("assistant", (_reasoning(raw),), name, raw)
    if kind.endswith("_output") and "call_id" in raw:
        return Message("tool", (_result(kind, raw),), name, raw)
    if kind.endswith("_call") and "call_id" in raw:
        return Message("assistant", (_call(kind, raw),), name, raw)
    role: Role = "user" if kind in _USER_SIDE else "assistant"
    return Message(role, (Opaque(kind, raw, name),), name, raw)


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(part) for part in as_list(content)]


def _part(part: Any) -> Part:
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "reasoning_text" | "summary_text":
            return Text(string(part.get("text")))
        case "refusal":
            return Text(string(part.get("refusal")))
        case "input_image":
            mime, data = data_url(string(part.get("image_url")))
            return Media("image", mime, data, None if data else part.get("image_url"), part.get("file_id"))
        case "input_file":
            mime, data = data_url(string(part.get("file_data")))
            return Media(
                "file",
                mime,
                data or part.get("file_data"),
                part.get("file_url"),
                part.get("file_id"),
                part.get("filename"),
            )
        case "input_audio":
            audio = part.get("input_audio") or {}
            return Media("audio", f"audio/{audio.get('format', 'wav')}", string(audio.get("data")))
        case other:
            return Opaque(string(other) or "part", part, name)


def _reasoning(raw: Json) -> Reasoning:
    said = [string(part.get("text")) for part in as_list(raw.get("summary")) or as_list(raw.get("content"))]
    return Reasoning("\n".join(said), None, raw.get("encrypted_content"), raw.get("id"), name)


def _call(kind: str, raw: Json) -> ToolCall:
    call_id = string(raw.get("call_id"))
    if kind == "function_call":
        return ToolCall(call_id, string(raw.get("name")), string(raw.get("arguments")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, string(raw.get("name")), string(raw.get("input")), "custom")
    rest = {key: value for key, value in raw.items() if key not in _OWN_CALL_FIELDS}
    return ToolCall(call_id, kind.removesuffix("_call"), rest, kind)


def _result(kind: str, raw: Json) -> ToolResult:
    plain = kind in ("function_call_output", "custom_tool_call_output")
    output = raw.get("output")
    if plain or isinstance(output, str):
        parts = tuple(part for part in _content(output) if isinstance(part, Text | Media | Opaque))
    else:
        parts = (Opaque(kind, {k: v for k, v in raw.items() if k not in _OWN_CALL_FIELDS}, name),)
    failed, parts = read_error(parts)
    call_kind = {"function_call_output": "function", "custom_tool_call_output": "custom"}.get(kind)
    return ToolResult(string(raw.get("call_id")), parts, failed, None, call_kind or kind.removesuffix("_output"))


def encode(messages: Sequence[Message]) -> list[Json]:
    """Render messages that have no payload of this format of their own."""
    return [item for message in messages for item in _encode(message)]


def _encode(message: Message) -> list[Json]:
    items: list[Json] = []
    spoken: list[Json] = []

    def flush() -> None:
        if spoken:
            only_text = len(spoken) == 1 and spoken[0].get("text")
            items.append({"role": message.role, "content": only_text or spoken[:]})
            spoken.clear()

    for part in message.parts:
        match part:
            case ToolCall():
                flush()
                items.append(_encode_call(part))
            case ToolResult():
                flush()
                items.append(_encode_result(part))
            case Reasoning():
                flush()
                if part.origin == name and part.id:
                    items.append(_encode_reasoning(part))
            case Opaque(origin="openai-responses") if part.data.get("type") in OPAQUE_ITEMS:
                flush()
                items.append(part.data)
            case _:
                if (shown := _render(part, message.role)) is not None:
                    spoken.append(shown)
    flush()
    if not items and not message.parts:
        items.append({"role": message.role, "content": ""})
    return [item | {"role": "user"} if item.get("role") == "tool" else item for item in items]


def _render(part: Part, role: str) -> Json | None:
    match part:
        case Text():
            return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
        case Media(kind="image"):
            url = part.url or (f"data:{part.mime or 'image/png'};base64,{part.data}" if part.data else None)
            return drop_none({"type": "input_image", "image_url": url, "file_id": part.file_id})
        case Media(kind="audio", data=str()):
            audio = {"data": part.data, "format": (part.mime or "audio/wav").partition("/")[2]}
            return {"type": "input_audio", "input_audio": audio}
        case Media():
            data = f"data:{part.mime or 'application/octet-stream'};base64,{part.data}" if part.data else None
            where = {"file_data": data, "file_url": part.url, "file_id": part.file_id, "filename": part.name}
            return drop_none({"type": "input_file", **where})
        case Opaque(origin="openai-responses"):
            return part.data
        case _:
            return None


def _encode_call(call: ToolCall) -> Json:
    if call.kind == "custom":
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.json}
    if call.kind.endswith("_call") and isinstance(call.arguments, dict) and call.kind != "function_call":
        return {"type": call.kind, "call_id": call.id, **call.arguments}
    arguments = call.arguments if isinstance(call.arguments, str) else call.json
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _encode_result(result: ToolResult) -> Json:
    kind = {"function": "function_call", "custom": "custom_tool_call"}.get(result.kind, result.kind) + "_output"
    parts = flag_error(result)
    if len(parts) == 1 and isinstance(whole := parts[0], Opaque) and whole.origin == name and whole.kind == kind:
        return {"type": kind, "call_id": result.call_id, **whole.data}
    shown = [rendered for part in parts if (rendered := _render(part, "tool")) is not None]
    only_text = len(shown) == 1 and shown[0].get("text")
    return {"type": kind, "call_id": result.call_id, "output": only_text or shown or ""}


def _encode_reasoning(part: Reasoning) -> Json:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    item: Json = {"type": "reasoning", "id": part.id, "summary": summary}
    return item if part.encrypted is None else item | {"encrypted_content": part.encrypted}
