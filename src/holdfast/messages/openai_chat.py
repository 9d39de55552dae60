"""OpenAI Chat Completions messages, and the many servers that speak them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import as_list, data_url, drop_none, flag_error, read_error, string

name = "openai-chat"
system_field = None

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def decode(raw: Json) -> Message:
    role = ROLES[raw["role"]]
    content = raw.get("content")
    if role == "tool":
        return Message("tool", (_result(raw, content),), name, raw)
    parts: list[Part] = []
    for key in ("reasoning_content", "reasoning"):
        if isinstance(thought := raw.get(key), str) and thought:
            parts.append(Reasoning(thought, origin=name))
            break
    parts += _content(content)
    if isinstance(refusal := raw.get("refusal"), str) and refusal:
        parts.append(Text(refusal))
    if isinstance(audio := raw.get("audio"), dict):
        parts.append(Opaque("audio", audio, name))
    parts += [_call(call) for call in as_list(raw.get("tool_calls"))]
    if isinstance(legacy := raw.get("function_call"), dict):
        parts.append(ToolCall("", string(legacy.get("name")), string(legacy.get("arguments")), "function_call"))
    return Message(role, tuple(parts), name, raw)


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(part) for part in as_list(content)]


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Text(part)
    match part.get("type"):
        case "text":
            return Text(string(part.get("text")))
        case "refusal":
            return Text(string(part.get("refusal")))
        case "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else image
            mime, data = data_url(string(url))
            return Media("image", mime, data, None if data else string(url))
        case "input_audio":
            audio = part.get("input_audio") or {}
            return Media("audio", f"audio/{audio.get('format', 'wav')}", string(audio.get("data")))
        case "file":
            file = part.get("file") or {}
            mime, data = data_url(string(file.get("file_data")))
            return Media("file", mime, data or file.get("file_data"), None, file.get("file_id"), file.get("filename"))
        case other:
            return Opaque(string(other) or "part", part, name)


def _call(call: Json) -> ToolCall:
    if call.get("type") == "custom":
        custom = call.get("custom") or {}
        return ToolCall(string(call.get("id")), string(custom.get("name")), string(custom.get("input")), "custom")
    function = call.get("function") or {}
    arguments = function.get("arguments")
    return ToolCall(
        string(call.get("id")),
        string(function.get("name")),
        arguments if isinstance(arguments, dict) else string(arguments),
    )


def _result(raw: Json, content: Any) -> ToolResult:
    parts = tuple(part for part in _content(content) if isinstance(part, Text | Media | Opaque))
    failed, parts = read_error(parts)
    legacy = raw.get("role") == "function"
    call_id = "" if legacy else string(raw.get("tool_call_id"))
    return ToolResult(call_id, parts, failed, raw.get("name"), "function_call" if legacy else "function")


def encode(messages: Sequence[Message]) -> list[Json]:
    """Render messages that have no payload of this format of their own."""
    return [payload for message in messages for payload in _encode(message)]


def _encode(message: Message) -> list[Json]:
    if message.role == "tool" or message.results:
        return _encode_tool(message)
    texts = [part for part in message.parts if isinstance(part, Text)]
    if message.role == "system":
        return [{"role": "system", "content": _flat(texts)}]
    if message.role == "user":
        shown = [rendered for part in message.parts if (rendered := _render(part)) is not None]
        if not shown and message.parts:
            return []
        only_text = len(shown) == 1 and shown[0]["type"] == "text" and shown[0]["text"]
        return [{"role": "user", "content": only_text or shown or ""}]
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    thoughts = [p.text for p in message.parts if isinstance(p, Reasoning) and p.origin == name and p.text]
    audio = [p.data for p in message.parts if isinstance(p, Opaque) and p.origin == name and p.kind == "audio"]
    if not texts and not calls and not audio and message.parts:
        return []
    payload: Json = {"role": "assistant", "content": _flat(texts) if texts or not (calls or audio) else None}
    if thoughts:
        payload["reasoning_content"] = "\n".join(thoughts)
    if audio:
        payload["audio"] = audio[0]
    legacy = [call for call in calls if call.kind == "function_call"]
    modern = [_encode_call(call) for call in calls if call.kind != "function_call"]
    if modern:
        payload["tool_calls"] = modern
    if legacy:
        payload["function_call"] = {"name": legacy[0].name, "arguments": legacy[0].json}
    return [payload]


def _flat(texts: Sequence[Text]) -> str | list[Json]:
    """A plain string where one says the same; a list keeps several texts, or an empty one, apart."""
    if not texts or (len(texts) == 1 and texts[0].text):
        return texts[0].text if texts else ""
    return [{"type": "text", "text": part.text} for part in texts]


def _render(part: Part) -> Json | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Media(kind="image"):
            url = part.url or (f"data:{part.mime or 'image/png'};base64,{part.data}" if part.data else None)
            return {"type": "image_url", "image_url": {"url": url}} if url else None
        case Media(kind="audio", data=str()):
            return {
                "type": "input_audio",
                "input_audio": {"data": part.data, "format": _extension(part.mime)},
            }
        case Media():
            data = f"data:{part.mime or 'application/octet-stream'};base64,{part.data}" if part.data else None
            file = drop_none({"file_data": data, "file_id": part.file_id, "filename": part.name})
            return {"type": "file", "file": file} if file else None
        case Opaque(origin="openai-chat"):
            return part.data if part.kind != "audio" else None
        case _:
            return None


def _extension(mime: str | None) -> str:
    return (mime or "audio/wav").partition("/")[2]


def _encode_call(call: ToolCall) -> Json:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.json}}
    arguments = call.arguments if isinstance(call.arguments, str) else call.json
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _encode_tool(message: Message) -> list[Json]:
    out: list[Json] = []
    for result in message.results:
        texts = [part for part in flag_error(result) if isinstance(part, Text)]
        content = _flat(texts)
        if result.kind == "function_call":
            out.append({"role": "function", "name": result.name or "tool", "content": content})
        else:
            out.append({"role": "tool", "tool_call_id": result.call_id, "content": content})
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return out + (_encode(Message("user", rest)) if rest else [])
