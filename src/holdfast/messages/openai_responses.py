"""OpenAI Responses items: each item is one message, so that it is sent back unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from .openai_chat import audio_format
from .parts import End, FindCall, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .patch import Drop, Edit, Path, Replace
from .payload import (
    ERROR_MARK,
    INTERRUPTED_TEXT,
    ResultParts,
    as_dict,
    as_list,
    as_text,
    data_url,
    drop_none,
    make_legal_id,
    mark_error,
    placeholder_text,
    read_data_url,
    read_error,
    retext_content,
    text_block,
)

_ITEMS = {"function": "function_call", "custom": "custom_tool_call"}
_KINDS = {item: kind for kind, item in _ITEMS.items()}
_ENVELOPE_FIELDS = frozenset(("type", "call_id", "id", "status"))
_BLANK_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
"""Blank screenshot, for a computer call's output without an image."""


def call_id_of(kind: str, raw: Json) -> str:
    """Returns the call id of a call or output; a local shell's output has it as its own id."""
    return as_text(raw.get("call_id") or (raw.get("id") if kind == "local_shell_call_output" else None))


def read_call(kind: str, raw: Json) -> ToolCall:
    call_id = as_text(raw.get("call_id"))
    if kind == "function_call":
        return ToolCall(call_id, as_text(raw.get("name")), as_text(raw.get("arguments")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, as_text(raw.get("name")), as_text(raw.get("input")), "custom")
    rest = {key: value for key, value in raw.items() if key not in _ENVELOPE_FIELDS}
    return ToolCall(call_id, kind.removesuffix("_call"), rest, kind)


def write_call(call: ToolCall) -> Json:
    item = _ITEMS.get(call.kind, call.kind)
    own: Json = {"type": item, "call_id": call.id}
    if item == "custom_tool_call":
        return own | {"name": call.name, "input": call.arguments_text}
    if item.endswith("_call") and item != "function_call" and isinstance(call.arguments, dict):
        return own | call.arguments
    return own | {"type": "function_call", "name": call.name, "arguments": call.arguments_text}


def output_kind(item: str) -> str:
    """Returns the kind of call that an output item answers."""
    call = "tool_search_call" if item == "tool_search_output" else item.removesuffix("_output")
    return _KINDS.get(call, call)


def read_output(kind: str, raw: Json) -> tuple[ResultParts, bool]:
    """Decodes a structured output; returns its content and whether the call failed."""
    output = raw.get("output")
    if kind == "shell_call_output":
        chunks = [as_dict(chunk) for chunk in as_list(output)]
        output_text = "\n".join(
            as_text(chunk.get(stream)) for chunk in chunks for stream in ("stdout", "stderr") if chunk.get(stream)
        )
        ends = [as_dict(chunk.get("outcome")) for chunk in chunks]
        return _text(output_text), any(end.get("type") == "timeout" or end.get("exit_code") for end in ends)
    if kind == "apply_patch_call_output":
        return _text(as_text(output)), raw.get("status") == "failed"
    if kind == "computer_call_output":
        shot = as_dict(output)
        mime, data = read_data_url(url := as_text(shot.get("image_url")))
        return (Media("image", mime, data, None if data else url or None, shot.get("file_id")),), False
    if isinstance(output, str):
        return _text(output), False
    rest = {key: value for key, value in raw.items() if key not in _ENVELOPE_FIELDS}
    return (Opaque(kind, rest, "openai-responses"),), False


def _text(text: str) -> ResultParts:
    return (Text(text),) if text else ()


def write_output(result: ToolResult, call: ToolCall | None, output: Any) -> Json:
    """Encodes a result as an output item; `output` is its content as a function output."""
    kind = result.kind
    if kind == "function" and call is not None and call.kind != "local_shell_call":
        kind = call.kind
    kind = _ITEMS.get(kind, kind if kind.endswith("_call") else "function_call")
    item = "tool_search_output" if kind == "tool_search_call" else kind + "_output"
    own: Json = {"type": item, "call_id": result.call_id}
    whole = result.content[0] if len(result.content) == 1 else None
    if isinstance(whole, Opaque) and whole.kind == item:
        return own | whole.data
    match item:
        case "local_shell_call_output":
            return {"type": item, "id": own["call_id"], "output": ERROR_MARK * result.is_error + result.text}
        case "shell_call_output":
            end = {"type": "exit", "exit_code": int(result.is_error)}
            return own | {"output": [{"stdout": result.text, "stderr": "", "outcome": end}]}
        case "apply_patch_call_output":
            return own | {"status": "failed" if result.is_error else "completed", "output": result.text}
        case "computer_call_output":
            return own | {"output": {"type": "computer_screenshot"} | _screenshot(whole)}
        case "tool_search_output":
            return own | {"execution": "client", "tools": []}
    return own | {"output": output}


def _screenshot(part: object) -> Json:
    if isinstance(part, Media) and part.file_id:
        return {"file_id": part.file_id}
    if isinstance(part, Media) and (url := part.url or (part.data and f"data:{part.mime};base64,{part.data}")):
        return {"image_url": url}
    return {"image_url": _BLANK_IMAGE}


name = "openai-responses"
ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
OPAQUE = frozenset(
    (
        "additional_tools",
        "agent_message",
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
"""Items that are kept and never interpreted: tools run by the API need no result."""
_USER_SIDE = frozenset(("mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update"))
_TEXTS = frozenset(("input_text", "output_text", "text", "reasoning_text", "summary_text"))


REFERENCE_ITEM = "item_reference"
PROGRAM, APPROVAL, SEARCH, REFERENCE = "program", "approval request", "tool search", "reference"
"""Kinds of edges: programs and the calls they make, approvals, searches run by the API, and stored items."""
_WITHOUT_ENDS = ("message", "reasoning", "function_call", "function_call_output")
"""Most items: they have none unless they name a caller."""
_MESSAGE_ID, _REASONING_ID = "msg_", "rs_"
_CALL_IDS = ("fc_", "ctc_", "cu_", "lsh_", "sh_", "apc_")
"""How the ids of stored messages, of reasoning, and of calls that need an output begin."""


def ends(raw: Json) -> Sequence[End]:
    """Returns the ends of edges in an item, other than a call and its output."""
    kind = raw.get("type") or ("message" if "role" in raw else REFERENCE_ITEM)
    if kind in _WITHOUT_ENDS and "caller" not in raw:
        return ()
    own = raw.get("call_id") or raw.get("id")
    found: list[End] = []
    if isinstance(key := as_dict(raw.get("caller")).get("caller_id"), str):
        found.append(End(0, PROGRAM, key, "joins", f"{kind} {own!r}"))
    match kind:
        case "program" | "program_output" if isinstance(own, str):
            role: Literal["opens", "closes"] = "opens" if kind == "program" else "closes"
            found.append(End(0, PROGRAM, own, role, f"{kind} {own!r}"))
        case "mcp_approval_request" if isinstance(key := raw.get("id"), str):
            found.append(End(0, APPROVAL, key, "opens", f"{kind} {key!r}"))
        case "mcp_approval_response" if isinstance(key := raw.get("approval_request_id"), str):
            found.append(End(0, APPROVAL, key, "closes", kind))
        case "mcp_call" if isinstance(key := raw.get("approval_request_id"), str):
            found.append(End(0, APPROVAL, key, "joins", f"{kind} {raw.get('id')!r}"))
        case "tool_search_call" | "tool_search_output" if not raw.get("call_id"):
            found.append(End(0, SEARCH, "", "opens" if kind == "tool_search_call" else "closes", kind))
        case "item_reference" if isinstance(key := raw.get("id"), str) and not key.startswith(_MESSAGE_ID):
            found.append(End(0, REFERENCE, key, "leads", f"{kind} {key!r}"))
    return found


def may_have_output(reference: End) -> bool:
    """Whether this reference may stand for an item with an output."""
    return not reference.key.startswith(_REASONING_ID)


def needs_output(reference: End) -> bool:
    """Whether this reference certainly stands for a call that needs an output."""
    return reference.key.startswith(_CALL_IDS)


def closing(raw: Json, end: End) -> Json | None:
    """Returns the output of a program that never finished; anything else may stay open."""
    if end.kind != PROGRAM:
        return None
    own = {"id": make_legal_id(f"po_{end.key}", 64), "call_id": end.key}
    return {"type": "program_output", **own, "result": INTERRUPTED_TEXT, "status": "incomplete"}


def decode(raw: Json) -> Message:
    kind = raw.get("type") or ("message" if "role" in raw else REFERENCE_ITEM)
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
    """Whether this item is a client-side call or its output; calls run by the API have no call id."""
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
        return Text(as_text(part.get("text")))
    match kind:
        case "refusal":
            return Text(as_text(part.get("refusal")))
        case "input_image":
            mime, data = read_data_url(url := as_text(part.get("image_url")))
            return Media("image", mime, data, None if data else url or None, part.get("file_id"))
        case "input_file":
            given = part.get("file_data")
            mime, data = read_data_url(as_text(given))
            where = part.get("file_url"), part.get("file_id"), part.get("filename")
            return Media("file", mime, data or given, *where)
        case "input_audio":
            audio = as_dict(part.get("input_audio"))
            return Media("audio", f"audio/{audio.get('format', 'wav')}", as_text(audio.get("data")))
        case other:
            return Opaque(as_text(other) or "part", part, name)


def _reasoning(raw: Json) -> Reasoning:
    texts = [as_text(part.get("text")) for part in as_list(raw.get("summary")) or as_list(raw.get("content"))]
    return Reasoning("\n".join(texts), None, raw.get("encrypted_content"), raw.get("id"), name)


def _result(kind: str, raw: Json) -> ToolResult:
    if kind in ("function_call_output", "custom_tool_call_output"):
        content = [part for part in _content(raw.get("output")) if isinstance(part, Text | Media | Opaque)]
        parts, failed = tuple(content), False
    else:
        parts, failed = read_output(kind, raw)
    marked, parts = read_error(parts)
    return ToolResult(call_id_of(kind, raw), parts, failed or marked, None, output_kind(kind))


def places(raw: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies: a block of a message's content; any other item is one part."""
    content = raw.get("content")
    if raw.get("type", "message") != "message" or "role" not in raw:
        return [((),)]
    if isinstance(content, str):
        return [(("content",),)] if content else []
    return [(("content", index),) for index in range(len(as_list(content)))]


def retext(value: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or of an output item, whose mark of an error stays."""
    if isinstance(value, str):
        return [Replace((), text)]
    kind, output = value.get("type"), value.get("output")
    if kind == "shell_call_output":
        return [
            Replace(("output",), [as_dict(chunk) | {"stdout": text, "stderr": ""} for chunk in as_list(output)[:1]])
        ]
    if kind == "computer_call_output":
        return [Replace(("output", "image_url"), _BLANK_IMAGE), Drop(("output", "file_id"))]
    if kind == "tool_search_output":
        return [Replace(("tools",), [])]
    if as_text(kind).endswith("_output"):
        return retext_content(output, text, ("output",), marks=kind != "apply_patch_call_output")
    return [Replace(("refusal" if kind == "refusal" else "text",), text)]


def legal_id(call_id: str) -> str:
    return make_legal_id(call_id, 64)


def encode(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes a message that has no payload of this format: one item per call, result and reasoning."""
    items: list[Json] = []
    content: list[Json] = []
    role = "user" if message.role == "tool" else message.role

    def flush() -> None:
        if content:
            items.append({"role": role, "content": _flatten(content)})
            content.clear()

    for part in message.parts:
        if (item := _item(part, call_of)) is not None:
            flush()
            items.append(item)
        elif (shown := _render(part, message.role)) is not None:
            content.append(shown)
    flush()
    return items or ([] if message.parts else [{"role": role, "content": ""}])


def _flatten(shown: list[Json]) -> str | list[Json]:
    """Returns a plain string for one text."""
    return (len(shown) == 1 and shown[0].get("text")) or shown[:]


def _item(part: Part, call_of: FindCall) -> Json | None:
    match part:
        case ToolCall():
            return write_call(part)
        case ToolResult():
            parts = part.content if part.kind == "apply_patch_call" else mark_error(part)
            shown = [rendered for item in parts if (rendered := _render(item, "tool")) is not None]
            return write_output(part, call_of(part.call_id), _flatten(shown) or "")
        case Reasoning(origin="openai-responses"):
            return _encode_reasoning(part)
        case Opaque(origin="openai-responses") if part.kind in OPAQUE:
            return part.data
    return None


def _render(part: Part, role: Role) -> Json | None:
    """Encodes a part of a message or an output; assistant messages hold text only."""
    kind = "output_text" if role == "assistant" else "input_text"
    if isinstance(part, Text):
        return text_block(kind, part.text)
    if isinstance(part, Opaque) and part.origin == name:
        return part.data
    if isinstance(part, Media) and role != "assistant" and (shown := _render_media(part)) is not None:
        return shown
    return text_block(kind, text) if (text := placeholder_text(part)) else None


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
