"""Tools as each wire format wants them told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .formats import format_name
from .parts import Json
from .payload import copy_json

_PLAIN = frozenset(
    (
        "anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength",
        "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern",
        "properties", "required", "title", "type",
    )
)  # fmt: skip
"""What Gemini's own schemas can say. All else has to go in a field that takes any JSON schema."""


class Tool(msgspec.Struct, frozen=True):
    """A tool as a model is told of it; each provider has its own way to write it down."""

    name: str
    about: str
    parameters: Json
    """A JSON schema of an object."""


def tools_in(format: str, tools: Sequence[Tool]) -> list[Json]:
    """What to put into the `tools` of a request in this format; yours to change."""
    name = format_name(format)
    if name == "gemini":
        return [{"functionDeclarations": [_gemini(tool) for tool in tools]}] if tools else []
    return [_DEFINED[name](tool) for tool in tools]


def _chat(tool: Tool) -> Json:
    body = {"name": tool.name, "description": tool.about, "parameters": copy_json(tool.parameters)}
    return {"type": "function", "function": body}


def _responses(tool: Tool) -> Json:
    body = {"name": tool.name, "description": tool.about, "parameters": copy_json(tool.parameters)}
    return {"type": "function", **body, "strict": False}


def _anthropic(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.about, "input_schema": copy_json(tool.parameters)}


def _gemini(tool: Tool) -> Json:
    field = "parameters" if _is_plain(tool.parameters) else "parametersJsonSchema"
    return {"name": tool.name, "description": tool.about, field: copy_json(tool.parameters)}


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _PLAIN or isinstance(schema.get("type"), list):
        return False
    inside = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    return all(map(_is_plain, [*inside, schema["items"]] if "items" in schema else inside))


_DEFINED = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic}
