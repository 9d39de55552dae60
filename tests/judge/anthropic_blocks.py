"""Validates one content block of the Messages API."""

import re
from collections.abc import Iterator
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_EITHER = {"text", "container_upload", "compaction"}
_KINDS = {
    "user": _EITHER | {"image", "document", "search_result", "tool_result"},
    "assistant": _EITHER
    | {
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_listing",
        "fallback",
    },
    "system": {"text", "tool_addition", "tool_removal"},
}
_IN_RESULT = {"text", "image", "document", "search_result", "tool_reference", "browser_state"}
_SOURCES = {"image": {"base64", "url", "file"}, "document": {"base64", "url", "file", "text", "content"}}
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def block_complaints(block: object, role: str, where: str) -> Iterator[str]:
    """Judge one block of a message of `role`."""
    if not isinstance(block, dict):
        yield f"{where}: Input should be a valid dictionary or object to extract fields from"
        return
    kind = block.get("type")
    if not isinstance(kind, str):
        yield f"{where}.type: Field required"
    elif kind in _KINDS[role] or (role == "assistant" and kind.endswith("_tool_result")):
        yield from _fields(block, kind, where)
    elif home := [name for name, kinds in _KINDS.items() if kind in kinds]:
        yield f"{where}: `{kind}` blocks can only be in `{home[0]}` messages"
    else:
        known = ", ".join(f"'{name}'" for name in sorted(_KINDS[role]))
        yield f"{where}: Input tag '{kind}' does not match any of the expected tags: {known}"


def _fields(block: dict[str, Any], kind: str, where: str) -> Iterator[str]:
    if kind == "text":
        yield from _text(block, where)
    elif kind == "thinking":
        yield from _strings(block, where, kind, {"thinking": 0, "signature": 1})
    elif kind == "redacted_thinking":
        yield from _strings(block, where, kind, {"data": 1})
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield from _use(block, kind, where)
    elif kind == "tool_result":
        yield from _result(block, where)
    elif kind in _SOURCES:
        yield from _source(block, kind, where)
    elif kind == "compaction" and block.get("content") == "":
        yield f"{where}.compaction.content: String should have at least 1 character"


def _text(block: dict[str, Any], where: str) -> Iterator[str]:
    text = block.get("text")
    if not isinstance(text, str):
        yield f"{where}.text.text: Input should be a valid string"
    elif not text:
        yield f"messages: text content blocks must be non-empty ({where})"
    elif not text.strip():
        yield f"messages: text content blocks must contain non-whitespace text ({where})"


def _strings(block: dict[str, Any], where: str, kind: str, least: dict[str, int]) -> Iterator[str]:
    for key, length in least.items():
        value = block.get(key)
        if value is None:
            yield f"{where}.{kind}.{key}: Field required"
        elif not isinstance(value, str):
            yield f"{where}.{kind}.{key}: Input should be a valid string"
        elif len(value) < length:
            yield f"{where}: Invalid `{key}` in `{kind}` block"


def _use(block: dict[str, Any], kind: str, where: str) -> Iterator[str]:
    name = block.get("id")
    if not isinstance(name, str):
        yield f"{where}.{kind}.id: Field required"
    elif not _ID.fullmatch(name):
        yield f"{where}.{kind}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    yield from _strings(block, where, kind, {"name": 1})
    if len(str(block.get("name", ""))) > 200:
        yield f"{where}.{kind}.name: String should have at most 200 characters"
    if not isinstance(block.get("input"), dict):
        yield f"{where}.{kind}.input: Input should be a valid dictionary"


def _result(block: dict[str, Any], where: str) -> Iterator[str]:
    """An empty result is legal; whether an empty text inside one is, reports differ, so it passes."""
    if not isinstance(block.get("tool_use_id"), str):
        yield f"{where}.tool_result.tool_use_id: Field required"
    content = block.get("content")
    if block.get("is_error") and not content:
        yield f"{where}.tool_result: content cannot be empty if `is_error` is true"
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield f"{where}.tool_result.content: Input should be a valid string or list"
        return
    for j, part in enumerate(content):
        inside = f"{where}.tool_result.content.{j}"
        kind = str(part.get("type")) if isinstance(part, dict) else ""
        if kind not in _IN_RESULT:
            yield f"{inside}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield f"{inside}.text.text: Input should be a valid string"
        elif kind in _SOURCES:
            yield from _source(part, kind, inside)
        if block.get("is_error") and kind != "text":
            yield f"{where}.tool_result: all content must be type `text` if `is_error` is true"


def _source(block: dict[str, Any], kind: str, where: str) -> Iterator[str]:
    source = block.get("source")
    if not isinstance(source, dict):
        yield f"{where}.{kind}.source: Field required"
        return
    form = str(source.get("type"))
    if form not in _SOURCES[kind]:
        known = ", ".join(f"'{name}'" for name in sorted(_SOURCES[kind]))
        yield f"{where}.{kind}.source: Input tag '{form}' does not match any of the expected tags: {known}"
    elif form == "base64" and kind == "image" and source.get("media_type") not in _PICTURES:
        yield f"{where}.{kind}.source.base64.media_type: Input should be one of {', '.join(_PICTURES)}"
    elif form == "base64" and not source.get("data"):
        yield f"{where}.{kind}.source.base64.data: Field required"
    elif form == "url" and not source.get("url"):
        yield f"{where}.{kind}.source.url.url: Field required"
