"""Validates `messages` of `POST /v1/chat/completions`."""

import re
from collections.abc import Iterator
from typing import Any

_PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": set(),
}
_PAYLOAD = {"text": str, "refusal": str, "image_url": dict, "input_audio": dict, "file": dict}
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 40


def complaints(messages: list[dict[str, Any]], *, pending_ok: bool = True) -> list[str]:
    """Judge the shape of every message, then the order of calls and answers."""
    if not messages:
        return [_empty("messages")]
    found = [text for i, message in enumerate(messages) for text in _message(message, f"messages[{i}]")]
    return found + list(_answers(messages, pending_ok))


def _empty(where: str) -> str:
    return f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."


def _typed(where: str, expected: str, value: object) -> str:
    return f"Invalid type for '{where}': expected {expected}, but got {type(value).__name__} instead."


def _message(message: object, where: str) -> Iterator[str]:
    if not isinstance(message, dict):
        yield _typed(where, "an object", message)
        return
    role = str(message.get("role"))
    if role not in _PARTS:
        known = ", ".join(f"'{name}'" for name in _PARTS)
        yield f"Invalid value: '{role}'. Supported values are: {known}. ({where}.role)"
        return
    yield from _content(message, role, where)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield f"Missing parameter 'tool_call_id': role 'tool' must have a 'tool_call_id'. ({where})"
    if role == "function" and not message.get("name"):
        yield f"Missing parameter 'name': role 'function' must have a 'name'. ({where})"
    calls = message.get("tool_calls")
    if calls is not None and role != "assistant":
        yield f"Unknown parameter: '{where}.tool_calls'. Only role 'assistant' may have tool calls."
    elif calls == []:
        yield _empty(f"{where}.tool_calls")
    elif isinstance(calls, list):
        for j, call in enumerate(calls):
            yield from _call(call, f"{where}.tool_calls[{j}]")
    elif calls is not None:
        yield _typed(f"{where}.tool_calls", "an array of objects", calls)


def _content(message: dict[str, Any], role: str, where: str) -> Iterator[str]:
    content = message.get("content")
    if content is None:
        instead = ("tool_calls", "function_call", "refusal", "audio")
        spoken = role == "assistant" and any(message.get(key) is not None for key in instead)
        if not spoken and role != "function":
            yield f"Invalid value for 'content': expected a string, got null. ({where}.content)"
    elif isinstance(content, list):
        if not content:
            yield _empty(f"{where}.content")
        for j, part in enumerate(content):
            yield from _part(part, role, f"{where}.content[{j}]")
    elif not isinstance(content, str):
        yield _typed(f"{where}.content", "one of a string or array of objects", content)


def _part(part: object, role: str, where: str) -> Iterator[str]:
    if not isinstance(part, dict):
        yield _typed(where, "an object", part)
        return
    kind = str(part.get("type"))
    if kind == "image_url" and role != "user":
        yield (
            f"Invalid '{where}'. Image URLs are only allowed for messages with role 'user', "
            f"but this message with role '{role}' contains an image URL."
        )
    elif kind not in _PARTS[role]:
        known = ", ".join(f"'{name}'" for name in sorted(_PARTS[role]))
        yield f"Invalid value: '{kind}'. Supported values are: {known}. ({where}.type)"
    elif not isinstance(part.get(kind), _PAYLOAD[kind]):
        yield f"Missing required parameter: '{where}.{kind}'."


def _call(call: object, where: str) -> Iterator[str]:
    if not isinstance(call, dict):
        yield _typed(where, "an object", call)
        return
    name = call.get("id")
    if not isinstance(name, str) or not name:
        yield f"Missing required parameter: '{where}.id'."
    elif len(name) > _LONGEST_ID:
        yield (
            f"Invalid '{where}.id': string too long. Expected a string with maximum length {_LONGEST_ID}, "
            f"but got a string with length {len(name)} instead."
        )
    kind = call.get("type")
    if kind not in ("function", "custom"):
        yield f"Invalid value: '{kind}'. Supported values are: 'function', 'custom'. ({where}.type)"
        return
    body, text = call.get(kind), "arguments" if kind == "function" else "input"
    if not isinstance(body, dict):
        yield f"Missing required parameter: '{where}.{kind}'."
        return
    if not _NAME.fullmatch(str(body.get("name", ""))):
        yield f"Invalid '{where}.{kind}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
    if not isinstance(body.get(text), str):
        yield _typed(f"{where}.{kind}.{text}", "a string", body.get(text))


def _answers(messages: list[dict[str, Any]], pending_ok: bool) -> Iterator[str]:
    """A turn of calls stays open until the first message that is not one of its answers."""
    calls: list[str] | None = None
    answered: dict[str, int] = {}
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        if message.get("role") == "tool":
            yield from _answer(str(message.get("tool_call_id")), i, calls, answered)
            continue
        yield from _unanswered(calls, answered, f"messages.[{i}].role")
        calls, answered = None, {}
        if message.get("role") == "assistant" and isinstance(message.get("tool_calls"), list):
            calls = [str(call.get("id")) for call in message["tool_calls"] if isinstance(call, dict)] or None
            for name in sorted({name for name in calls or () if (calls or []).count(name) > 1}):
                yield f"Invalid parameter: Duplicate value for 'id' of '{name}' in messages[{i}].tool_calls."
    if not pending_ok:
        yield from _unanswered(calls, answered, f"messages.[{len(messages) - 1}].role")


def _answer(name: str, i: int, calls: list[str] | None, answered: dict[str, int]) -> Iterator[str]:
    if calls is None:
        yield (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
            f"with 'tool_calls'. (messages.[{i}].role)"
        )
    elif name not in calls:
        yield (
            f"Invalid parameter: 'tool_call_id' of '{name}' not found in 'tool_calls' of previous message. "
            f"(messages.[{i}].tool_call_id)"
        )
    elif name in answered:
        yield (
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{name}', "
            f"in messages[{answered[name]}] and messages[{i}]. (messages.[{i}].tool_call_id)"
        )
    answered.setdefault(name, i)


def _unanswered(calls: list[str] | None, answered: dict[str, int], where: str) -> Iterator[str]:
    if missing := [name for name in calls or () if name not in answered]:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(missing)} ({where})"
        )
