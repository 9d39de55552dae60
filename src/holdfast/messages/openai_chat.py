"""OpenAI Chat Completions messages, also used by many compatible servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .parts import FindCall, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .patch import Edit, Path, Replace
from .payload import (
    ERROR_MARK,
    ResultParts,
    as_dict,
    as_list,
    as_text,
    data_url,
    drop_none,
    make_legal_id,
    placeholder_text,
    read_data_url,
    read_error,
    result_texts,
    retext_content,
    text_block,
)

name = "openai-chat"
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
OPAQUE = frozenset(("audio",))
"""Fields that are kept and never interpreted: audio of the model, referred to by id."""
_EXTRA_FIELDS = frozenset(("reasoning_content", "reasoning", "refusal", "audio", "function_call"))
"""Fields of an assistant message with content other than text and calls."""
LEGACY = "function_call"
"""Kind of the deprecated function calls, which have no ids."""


def decode_simple(raw: Json, role: Any, content: Any) -> Message | None:
    """Fast path for a plain-text result, or calls with or without plain text: most of an agent's messages. Else None.

    No other format has these messages; they have ids and hold nothing to unpack.
    """
    if "type" in raw:
        return None
    if role == "tool":
        call_id = raw.get("tool_call_id")
        if type(content) is not str or type(call_id) is not str or not content or not call_id:
            return None
        if content.startswith(ERROR_MARK):
            return None
        return Message("tool", (ToolResult(call_id, (Text(content),)),), name, raw)
    if role != "assistant" or type(calls := raw.get("tool_calls")) is not list:
        return None
    if (content and type(content) is not str) or (
        not _EXTRA_FIELDS.isdisjoint(raw) and any(map(raw.get, _EXTRA_FIELDS))
    ):
        return None
    parts: list[Part] = [Text(content)] if content else []
    for call in calls:
        if type(call) is not dict or type(body := call.get("function")) is not dict:
            return None
        call_id, called, written = call.get("id"), body.get("name"), body.get("arguments")
        if type(call_id) is not str or type(called) is not str or type(written) is not str or not call_id:
            return None
        parts.append(ToolCall(call_id, called, written))
    return Message("assistant", tuple(parts), name, raw)


def decode(raw: Json) -> Message:
    return decode_simple(raw, raw.get("role"), raw.get("content")) or _decode(raw)


def _decode(raw: Json) -> Message:
    role = ROLES[raw["role"]]
    content = raw.get("content")
    if role == "tool":
        return Message("tool", (_result(raw, content),), name, raw)
    if role != "assistant":
        return Message(role, tuple(_content(content)), name, raw)
    parts: list[Part] = []
    if isinstance(thought := raw.get("reasoning_content") or raw.get("reasoning"), str) and thought:
        parts.append(Reasoning(thought, origin=name))
    if content:
        parts += _content(content)
    if refusal := raw.get("refusal"):
        parts.append(Text(as_text(refusal)))
    if (audio := raw.get("audio")) and isinstance(audio, dict):
        parts.append(Opaque("audio", audio, name))
    if calls := raw.get("tool_calls"):
        parts += [_call(call) for call in as_list(calls)]
    if (legacy := raw.get("function_call")) and isinstance(legacy, dict):
        parts.append(ToolCall("", as_text(legacy.get("name")), as_text(legacy.get("arguments")), LEGACY))
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
            return Text(as_text(part.get("text")))
        case "refusal":
            return Text(as_text(part.get("refusal")))
        case "image_url":
            image = part.get("image_url")
            url = as_text(image.get("url") if isinstance(image, dict) else image)
            mime, data = read_data_url(url)
            return Media("image", mime, data, None if data else url)
        case "input_audio":
            audio = as_dict(part.get("input_audio"))
            return Media("audio", f"audio/{audio.get('format', 'wav')}", as_text(audio.get("data")))
        case "file":
            file = as_dict(part.get("file"))
            given = file.get("file_data")
            mime, data = read_data_url(as_text(given))
            return Media("file", mime, data or given, None, file.get("file_id"), file.get("filename"))
        case other:
            return Opaque(as_text(other) or "part", part, name)


def _call(call: Json) -> ToolCall:
    call_id, body = call.get("id"), call.get("function")
    if type(call_id) is str and type(body) is dict and type(written := body.get("arguments")) is str:
        return ToolCall(call_id, as_text(body.get("name")), written)
    kind, field = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    body = as_dict(call.get(kind))
    return ToolCall(as_text(call_id), as_text(body.get("name")), as_text(body.get(field)), kind)


def _result(raw: Json, content: Any) -> ToolResult:
    if type(content) is str and not content.startswith(ERROR_MARK):
        parts: ResultParts = (Text(content),) if content else ()
        failed = False
    else:
        content_parts = [part for part in _content(content) if isinstance(part, Text | Media | Opaque)]
        failed, parts = read_error(tuple(content_parts))
    if raw["role"] == "function":
        return ToolResult("", parts, failed, as_text(raw.get("name")), LEGACY)
    return ToolResult(as_text(raw.get("tool_call_id")), parts, failed)


EMPTY: Json = {"content": None}
"""Fields that stay without their only part."""


def places(raw: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies, in the order of decoding; a result is the whole message."""
    role, content = ROLES[raw["role"]], raw.get("content")
    if role == "tool":
        yield ((),)
        return
    thought = raw.get("reasoning_content") or raw.get("reasoning")
    if role == "assistant" and thought and isinstance(thought, str):
        yield tuple((field,) for field in ("reasoning_content", "reasoning") if raw.get(field))
    if isinstance(content, str):
        yield from [(("content",),)] if content else []
    else:
        yield from ((("content", index),) for index in range(len(as_list(content))))
    if role != "assistant":
        return
    if raw.get("refusal"):
        yield (("refusal",),)
    if isinstance(raw.get("audio"), dict) and raw["audio"]:
        yield (("audio",),)
    yield from ((("tool_calls", index),) for index in range(len(as_list(raw.get("tool_calls")))))
    if isinstance(raw.get("function_call"), dict) and raw["function_call"]:
        yield (("function_call",),)


def retext(value: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result, whose mark of an error stays."""
    if isinstance(value, str):
        return [Replace((), text)]
    if "role" in value:
        return retext_content(value.get("content"), text, ("content",), marks=True)
    return [Replace(("refusal" if value.get("type") == "refusal" else "text",), text)]


def encode(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes a message that has no payload of this format."""
    if message.role == "tool" or message.results:
        return _encode_tool(message, call_of)
    shown = [rendered for part in message.parts if (rendered := _render(part, message.role)) is not None]
    if message.role == "assistant":
        return _encode_assistant(message, shown)
    if not shown and message.parts:
        return []
    return [{"role": message.role, "content": _flatten(shown)}]


def _encode_assistant(message: Message, shown: list[Json]) -> list[Json]:
    calls = message.calls
    more: Json = {}
    if thoughts := [p.text for p in message.parts if isinstance(p, Reasoning) and p.origin == name and p.text]:
        more["reasoning_content"] = "\n".join(thoughts)
    if audio := [p.data for p in message.parts if _is_audio(p)]:  # type: ignore[union-attr]
        more["audio"] = audio[0]
    if modern := [_encode_call(call) for call in calls if call.kind != LEGACY]:
        more["tool_calls"] = modern
    if legacy := [call for call in calls if call.kind == LEGACY]:
        more["function_call"] = {"name": legacy[0].name, "arguments": legacy[0].arguments_text}
    if message.parts and not shown and not more:
        return []
    content = None if not shown and (calls or audio) else _flatten(shown)
    return [{"role": "assistant", "content": content, **more}]


def _is_audio(part: Part) -> bool:
    return isinstance(part, Opaque) and part.origin == name and part.kind == "audio"


def _flatten(shown: Sequence[Json]) -> str | list[Json]:
    """Returns a plain string for one non-empty text; a list keeps several texts, or an empty one, separate."""
    if len(shown) == 1 and shown[0].get("type") == "text" and (text := shown[0]["text"]):
        return str(text)
    return list(shown) or ""


def _render(part: Part, role: Role) -> Json | None:
    """Encodes a part of the content; only user messages may hold media."""
    if isinstance(part, Text):
        return text_block("text", part.text)
    if isinstance(part, Opaque) and part.origin == name:
        return None if part.kind == "audio" else part.data
    if isinstance(part, Media) and role == "user" and (shown := _render_media(part)) is not None:
        return shown
    return text_block("text", text) if (text := placeholder_text(part)) else None


def _render_media(media: Media) -> Json | None:
    match media.kind:
        case "image":
            url = media.url or data_url(media, "image/png")
            return {"type": "image_url", "image_url": {"url": url}} if url else None
        case "audio" if media.data:
            audio = {"data": media.data, "format": audio_format(media.mime)}
            return {"type": "input_audio", "input_audio": audio}
        case "file" if media.data or media.file_id:
            data = media.data if media.mime is None else data_url(media, media.mime)
            return {
                "type": "file",
                "file": drop_none({"file_data": data, "file_id": media.file_id, "filename": media.name}),
            }
    return None


def audio_format(mime: str | None) -> str:
    """Returns OpenAI's name for an audio format."""
    kind = (mime or "audio/wav").partition("/")[2]
    return "mp3" if kind == "mpeg" else kind


def legal_id(call_id: str) -> str:
    return make_legal_id(call_id, 40)


def _encode_call(call: ToolCall) -> Json:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments_text}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}


def _encode_tool(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes results as text only; other parts follow as a user message."""
    out: list[Json] = []
    for result in message.results:
        texts = result_texts(result)
        if result.is_error:
            texts = [ERROR_MARK + "".join(texts[:1]), *texts[1:]]
        if result.kind == LEGACY:
            out.append({"role": "function", "name": result.name or "tool", "content": "\n".join(texts)})
        else:
            content = _flatten([text_block("text", text) for text in texts])
            out.append({"role": "tool", "tool_call_id": result.call_id, "content": content})
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return out + (encode(Message("user", rest), call_of) if rest else [])
