"""Responses items for tool calls and their outputs: a handful of kinds, each with fields of its own."""

from __future__ import annotations

from typing import Any

from .parts import Json, Media, Opaque, Text, ToolCall, ToolResult
from .payload import ERROR_MARK, ResultParts, as_dict, as_list, read_data_url, string

_ITEMS = {"function": "function_call", "custom": "custom_tool_call"}
_KINDS = {item: kind for kind, item in _ITEMS.items()}
_OWN_FIELDS = frozenset(("type", "call_id", "id", "status"))
_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
"""A screenshot of nothing: what a computer call must be answered with when there is none."""


def call_id_of(kind: str, raw: Json) -> str:
    """The id that ties an output to its call; a local shell's output has the call's as its own."""
    return string(raw.get("call_id") or (raw.get("id") if kind == "local_shell_call_output" else None))


def read_call(kind: str, raw: Json) -> ToolCall:
    call_id = string(raw.get("call_id"))
    if kind == "function_call":
        return ToolCall(call_id, string(raw.get("name")), string(raw.get("arguments")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, string(raw.get("name")), string(raw.get("input")), "custom")
    rest = {key: value for key, value in raw.items() if key not in _OWN_FIELDS}
    return ToolCall(call_id, kind.removesuffix("_call"), rest, kind)


def write_call(call: ToolCall) -> Json:
    item = _ITEMS.get(call.kind, call.kind)
    own: Json = {"type": item, "call_id": call.id}
    if item == "custom_tool_call":
        return own | {"name": call.name, "input": call.written}
    if item.endswith("_call") and item != "function_call" and isinstance(call.arguments, dict):
        return own | call.arguments
    return own | {"type": "function_call", "name": call.name, "arguments": call.written}


def output_kind(item: str) -> str:
    """The kind of call that an output item answers."""
    call = "tool_search_call" if item == "tool_search_output" else item.removesuffix("_output")
    return _KINDS.get(call, call)


def read_output(kind: str, raw: Json) -> tuple[ResultParts, bool]:
    """The content of an output that is more than text and media, and whether it says that the call failed."""
    output = raw.get("output")
    if kind == "shell_call_output":
        chunks = [as_dict(chunk) for chunk in as_list(output)]
        said = "\n".join(string(chunk.get(way)) for chunk in chunks for way in ("stdout", "stderr") if chunk.get(way))
        ends = [as_dict(chunk.get("outcome")) for chunk in chunks]
        return _text(said), any(end.get("type") == "timeout" or end.get("exit_code") for end in ends)
    if kind == "apply_patch_call_output":
        return _text(string(output)), raw.get("status") == "failed"
    if kind == "computer_call_output":
        shot = as_dict(output)
        mime, data = read_data_url(url := string(shot.get("image_url")))
        return (Media("image", mime, data, None if data else url or None, shot.get("file_id")),), False
    if isinstance(output, str):
        return _text(output), False
    rest = {key: value for key, value in raw.items() if key not in _OWN_FIELDS}
    return (Opaque(kind, rest, "openai-responses"),), False


def _text(said: str) -> ResultParts:
    return (Text(said),) if said else ()


def write_output(result: ToolResult, call: ToolCall | None, output: Any) -> Json:
    """The output item for a result whose content, as a function's output, would be this."""
    kind = result.kind
    if kind == "function" and call is not None and call.kind != "local_shell_call":
        kind = call.kind
    item = "tool_search_output" if kind == "tool_search_call" else _ITEMS.get(kind, kind) + "_output"
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
    return {"image_url": _BLANK}
