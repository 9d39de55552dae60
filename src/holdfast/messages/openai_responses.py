"""OpenAI Responses items: one item is one message here, so that each goes back out as it came."""

from __future__ import annotations

from typing import Any

from .openai_chat import audio_format
from .parts import CallOf, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import as_dict, as_list, data_url, drop_none, fitting_id, flag_error, read_data_url, read_error, string
from .standins import stand_in, text_block
from .tool_items import call_id_of, output_kind, read_call, read_output, write_call, write_output

name = "openai-responses"

ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
OPAQUE = frozenset(
    (
        "additional_tools",
        "code_interpreter_call",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
        "file_search_call",
        "image_generation_call",
        "item_reference",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    )
)
"""Items that are kept and never interpreted: what the API ran itself is whole without an answer of ours."""
_USER_SIDE = frozenset(("mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update"))
_TEXTS = frozenset(("input_text", "output_text", "text", "reasoning_text", "summary_text"))


def decode(raw: Json) -> Message:
    kind = raw.get("type") or ("message" if "role" in raw else "item_reference")
    if kind == "message":
        return Message(ROLES[raw["role"]], tuple(_content(raw.get("content"))), name, raw)
    if kind == "reasoning":
        return Message("assistant", (_reasoning(raw),), name, raw)
    if is_answerable(kind, raw):
        if kind.endswith("_output"):
            return Message("tool", (_result(kind, raw),), name, raw)
        return Message("assistant", (read_call(kind, raw),), name, raw)
    role: Role = "user" if kind in _USER_SIDE else "assistant"
    return Message(role, (Opaque(kind, raw, name),), name, raw)


def is_answerable(kind: str, raw: Json) -> bool:
    """Is this one half of a pair, a call for us or its output? What the API runs has no id for us."""
    if kind in ("program", "program_output") or not call_id_of(kind, raw):
        return False
    return kind.endswith(("_call", "_output"))


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(part) for part in as_list(content)]


def _part(part: Any) -> Part:
    kind = part.get("type")
    if kind in _TEXTS:
        return Text(string(part.get("text")))
    match kind:
        case "refusal":
            return Text(string(part.get("refusal")))
        case "input_image":
            mime, data = read_data_url(url := string(part.get("image_url")))
            return Media("image", mime, data, None if data else url or None, part.get("file_id"))
        case "input_file":
            given = part.get("file_data")
            mime, data = read_data_url(string(given))
            where = part.get("file_url"), part.get("file_id"), part.get("filename")
            return Media("file", mime, data or given, *where)
        case "input_audio":
            audio = as_dict(part.get("input_audio"))
            return Media("audio", f"audio/{audio.get('format', 'wav')}", string(audio.get("data")))
        case other:
            return Opaque(string(other) or "part", part, name)


def _reasoning(raw: Json) -> Reasoning:
    said = [string(part.get("text")) for part in as_list(raw.get("summary")) or as_list(raw.get("content"))]
    return Reasoning("\n".join(said), None, raw.get("encrypted_content"), raw.get("id"), name)


def _result(kind: str, raw: Json) -> ToolResult:
    if kind in ("function_call_output", "custom_tool_call_output"):
        content = [part for part in _content(raw.get("output")) if isinstance(part, Text | Media | Opaque)]
        parts, failed = tuple(content), False
    else:
        parts, failed = read_output(kind, raw)
    marked, parts = read_error(parts)
    return ToolResult(call_id_of(kind, raw), parts, failed or marked, None, output_kind(kind))


def legal_id(call_id: str) -> str:
    return fitting_id(call_id, 64)


def encode(message: Message, call_of: CallOf) -> list[Json]:
    """Render a message that has no payload of this format: an item for each call, result and thought."""
    items: list[Json] = []
    spoken: list[Json] = []
    role = "user" if message.role == "tool" else message.role

    def flush() -> None:
        if spoken:
            items.append({"role": role, "content": _flat(spoken)})
            spoken.clear()

    for part in message.parts:
        if (item := _item(part, call_of)) is not None:
            flush()
            items.append(item)
        elif (shown := _render(part, message.role)) is not None:
            spoken.append(shown)
    flush()
    return items or ([] if message.parts else [{"role": role, "content": ""}])


def _flat(shown: list[Json]) -> str | list[Json]:
    """A plain string where one says the same."""
    return (len(shown) == 1 and shown[0].get("text")) or shown[:]


def _item(part: Part, call_of: CallOf) -> Json | None:
    match part:
        case ToolCall():
            return write_call(part)
        case ToolResult():
            parts = part.content if part.kind == "apply_patch_call" else flag_error(part)
            shown = [rendered for item in parts if (rendered := _render(item, "tool")) is not None]
            return write_output(part, call_of(part.call_id), _flat(shown) or "")
        case Reasoning(origin="openai-responses"):
            return _encode_reasoning(part)
        case Opaque(origin="openai-responses") if part.kind in OPAQUE:
            return part.data
    return None


def _render(part: Part, role: Role) -> Json | None:
    """A part of a message's or an output's content; the model's own is text alone."""
    kind = "output_text" if role == "assistant" else "input_text"
    if isinstance(part, Text):
        return text_block(kind, part.text)
    if isinstance(part, Opaque) and part.origin == name:
        return part.data
    if isinstance(part, Media) and role != "assistant" and (shown := _render_media(part)) is not None:
        return shown
    return text_block(kind, said) if (said := stand_in(part)) else None


def _render_media(media: Media) -> Json | None:
    match media.kind:
        case "image" if media.data or media.url or media.file_id:
            url = media.url or data_url(media, "image/png")
            return drop_none({"type": "input_image", "image_url": url, "file_id": media.file_id})
        case "audio" if media.data:
            audio = {"data": media.data, "format": audio_format(media.mime)}
            return {"type": "input_audio", "input_audio": audio}
        case "file" if media.data or media.url or media.file_id:
            data = media.data if media.mime is None else data_url(media, media.mime)
            where = {"file_data": data, "file_url": media.url, "file_id": media.file_id, "filename": media.name}
            return drop_none({"type": "input_file", **where})
    return None


def _encode_reasoning(part: Reasoning) -> Json:
    summary = [text_block("summary_text", part.text)] if part.text else []
    own = {"type": "reasoning", "id": part.id, "summary": summary, "encrypted_content": part.encrypted}
    return drop_none(own)
