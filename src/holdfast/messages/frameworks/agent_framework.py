"""Microsoft Agent Framework messages: `Message` with its `Content` items, in the form of their own `to_dict`.

Annotations of the framework's own compaction, properties that begin with an underscore, are not part of a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_list,
    as_text,
    drop_none,
    mime_of,
    placeholder_text,
    read_data_url,
    retext_content,
)
from . import FrameworkCodec

name = "agent_framework"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_FAILED = "FunctionInvocationError"
"""What the framework writes in place of an exception."""
OPAQUE = frozenset(
    (
        "code_interpreter_tool_call",
        "code_interpreter_tool_result",
        "computer_tool_call",
        "computer_tool_result",
        "error",
        "function_approval_request",
        "function_approval_response",
        "hosted_vector_store",
        "image_generation_tool_call",
        "image_generation_tool_result",
        "mcp_server_tool_call",
        "mcp_server_tool_result",
        "oauth_consent_request",
        "search_tool_call",
        "search_tool_result",
        "shell_command_output",
        "shell_tool_call",
        "shell_tool_result",
        "usage",
    )
)
"""Contents that are kept and never interpreted."""


def dump(item: Any) -> list[Json]:
    dumped: Json = item.to_dict()
    if "role" not in dumped:
        raise TypeError("it has no role")
    properties = dumped.get("additional_properties") or {}
    own = {key: value for key, value in properties.items() if not key.startswith("_")}
    return [dumped | {"additional_properties": own}]


def load(dumped: Json) -> Any:
    from agent_framework import Message as FrameworkMessage

    return FrameworkMessage.from_dict(dumped)


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    parts = [_part(content) for content in as_list(dumped.get("contents"))]
    role = _ROLES.get(dumped["role"], "user")
    return ("tool" if any(isinstance(part, ToolResult) for part in parts) else role), parts


def _part(content: Json) -> Part:
    match content["type"]:
        case "text":
            return Text(as_text(content.get("text")))
        case "function_call":
            arguments = content.get("arguments")
            written = arguments if isinstance(arguments, dict) else as_text(arguments)
            return ToolCall(as_text(content.get("call_id")), as_text(content.get("name")), written)
        case "function_result":
            return _result(content)
        case "text_reasoning":
            text = as_text(content.get("text"))
            return Reasoning(text, None, content.get("protected_data"), content.get("id"), name)
        case "data" | "uri" if content.get("uri"):
            return _media(content["uri"], content.get("media_type"))
        case "hosted_file":
            return Media("file", content.get("media_type"), None, None, content.get("file_id"))
        case other:
            return Opaque(other, content, name)


def _media(uri: str, mime: str | None) -> Media:
    top = (mime or "").partition("/")[0]
    kind: Literal["image", "audio", "video", "file"] = "file"
    if top in ("image", "audio", "video"):
        kind = top  # type: ignore[assignment]
    found, data = read_data_url(uri)
    return Media(kind, mime or found, data, None if data else uri)


def _result(content: Json) -> ToolResult:
    items = as_list(content.get("items"))
    if not items and content.get("result"):
        items = [{"type": "text", "text": as_text(content["result"])}]
    parts: ResultParts = tuple(part for item in items if isinstance(part := _part(item), Text | Media | Opaque))
    return ToolResult(as_text(content.get("call_id")), parts, bool(content.get("exception")))


def places(dumped: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies."""
    return [(("contents", index),) for index in range(len(as_list(dumped.get("contents"))))]


def retext(content: Json, text: str) -> Iterator[Edit]:
    """Yields edits of a text or a result, whose items have its text once more."""
    if content["type"] == "text":
        yield Replace(("text",), text)
        return
    yield Replace(("result",), text)
    if items := content.get("items"):
        yield from retext_content(items, text, ("items",), block={"type": "text"})


def encode(message: Message) -> Sequence[Json]:
    contents = [content for part in message.parts if (content := _render(part)) is not None]
    if not contents and message.parts:
        return []
    return [{"type": "message", "role": message.role, "contents": contents, "additional_properties": {}}]


def _render(part: Part) -> Json | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return _encode_result(part)
        case Reasoning(origin="agent_framework"):
            fields = {"text": part.text, "protected_data": part.encrypted, "id": part.id}
            return drop_none({"type": "text_reasoning", **fields})
        case Media(data=str()):
            mime = mime_of(part)
            return {"type": "data", "uri": f"data:{mime};base64,{part.data}", "media_type": mime}
        case Media(url=str()):
            return {"type": "uri", "uri": part.url, "media_type": mime_of(part)}
        case Media(file_id=str()):
            return {"type": "hosted_file", "file_id": part.file_id}
        case Opaque(origin="agent_framework"):
            return part.data
    return {"type": "text", "text": text} if (text := placeholder_text(part)) else None


def _encode_result(result: ToolResult) -> Json:
    items = [item for part in result.content if (item := _render(part)) is not None]
    own: Json = {"type": "function_result", "call_id": result.call_id, "result": result.text, "items": items}
    return own | ({"exception": _FAILED} if result.is_error else {})


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, opaque=OPAQUE)
