"""Tool definitions in each wire format, and the request fields that hold them, the system prompt and the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .codec import format_name
from .parts import Json
from .payload import copy_json

_GEMINI_SCHEMA_KEYS = frozenset(
    (
        "anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength",
        "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern",
        "properties", "required", "title", "type",
    )
)  # fmt: skip
"""Keys that Gemini's `parameters` accepts; any other schema goes into `parametersJsonSchema`."""


class Tool(msgspec.Struct, frozen=True):
    """A tool definition, independent of the provider."""

    name: str
    description: str
    parameters: Json
    """A JSON schema of an object."""


def encode_tools(format: str, tools: Sequence[Tool]) -> list[Json]:
    """Returns the `tools` of a request in this format; the caller may change the result."""
    name = format_name(format)
    if name == "gemini":
        return [{"functionDeclarations": [_gemini(tool) for tool in tools]}] if tools else []
    return [_ENCODERS[name](tool) for tool in tools]


def _chat(tool: Tool) -> Json:
    body = {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}
    return {"type": "function", "function": body}


def _responses(tool: Tool) -> Json:
    body = {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}
    return {"type": "function", **body, "strict": False}


def _anthropic(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": copy_json(tool.parameters)}


def _gemini(tool: Tool) -> Json:
    field = "parameters" if _is_gemini_schema(tool.parameters) else "parametersJsonSchema"
    return {"name": tool.name, "description": tool.description, field: copy_json(tool.parameters)}


def _is_gemini_schema(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _GEMINI_SCHEMA_KEYS or isinstance(schema.get("type"), list):
        return False
    inside = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    return all(map(_is_gemini_schema, [*inside, schema["items"]] if "items" in schema else inside))


def _ai_sdk(tool: Tool) -> Json:
    body = {"name": tool.name, "description": tool.description, "inputSchema": copy_json(tool.parameters)}
    return {"type": "function", **body}


_ENCODERS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "ai-sdk": _ai_sdk}


def request_fields(messages: Sequence[Json], format: str, system: Any = None, tools: Any = None) -> Json:
    """Returns keyword arguments for the SDK's call, with the system prompt where this format takes it."""
    name, given = format_name(format), {} if tools is None else {"tools": tools}
    if name in ("anthropic", "ai-sdk"):
        return {"messages": list(messages), **({} if system is None else {"system": system}), **given}
    if name == "openai-responses":
        prompt = {} if system is None else {"instructions": _prompt_text(system)}
        return {"input": list(messages), **prompt, **given}
    if name == "gemini":
        config = given if system is None else {"system_instruction": system, **given}
        return {"contents": list(messages), **({"config": config} if config else {})}
    leading = [] if system is None else [{"role": "system", "content": system}]
    return {"messages": [*leading, *messages], **given}


def _prompt_text(system: Any) -> str:
    """Returns the text of a system prompt that is given as blocks."""
    if isinstance(system, str):
        return system
    if isinstance(system, Mapping):
        inner = next((system[key] for key in ("text", "content", "parts") if key in system), "")
        return _prompt_text(inner)
    return "\n".join(map(_prompt_text, system))
