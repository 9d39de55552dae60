"""Validation of `tools` as the providers do it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.providers.protocol import Json, unknown

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_OPENAPI = (
    "anyOf default description enum example format items maxItems maxLength maxProperties maximum minItems minLength "
    "minProperties minimum nullable pattern properties required title type propertyOrdering"
)


def wrong_tools(tools: Any, protocol: str) -> Iterator[str]:
    """Yields errors of the tool definitions of a request."""
    if not isinstance(tools, list) or not tools:
        yield "Invalid 'tools': expected an array with at least one tool."
        return
    definitions: list[Json] = []
    for place, tool in enumerate(tools):
        where = f"tools.{place}"
        if not isinstance(tool, dict):
            yield f"{where}: expected an object."
        elif protocol == "gemini":
            yield from (f"Unknown name {key!r} at '{where}'" for key in unknown(tool, "functionDeclarations"))
            definitions += tool.get("functionDeclarations") or [{}]
        elif protocol == "openai-chat":
            yield from (f"Unknown parameter: '{where}.{key}'." for key in unknown(tool, "type function"))
            definitions.append(tool.get("function") if tool.get("type") == "function" else {})
        else:
            definitions.append(tool)
    for tool in definitions:
        yield from _definition(tool, protocol)
    names = [str(tool.get("name")) for tool in definitions]
    yield from (f"tools: Tool names must be unique: {name}" for name in names if names.count(name) > 1)


_KNOWN = {
    "openai-chat": ("name description parameters strict", "parameters"),
    "openai-responses": ("type name description parameters strict", "parameters"),
    "anthropic": ("type name description input_schema cache_control strict", "input_schema"),
    "gemini": ("name description parameters parametersJsonSchema parameters_json_schema", "parameters"),
}


def _definition(tool: Json, protocol: str) -> Iterator[str]:
    known, field = _KNOWN[protocol]
    where = f"tools.{tool.get('name')}"
    yield from (f"{where}.{key}: Extra inputs are not permitted" for key in unknown(tool, known))
    if not isinstance(tool.get("name"), str) or not _NAME.fullmatch(tool["name"]):
        yield f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    if not isinstance(tool.get("description"), str):
        yield f"{where}.description: Input should be a valid string"
    if protocol == "openai-responses" and (tool.get("type") != "function" or not isinstance(tool.get("strict"), bool)):
        yield f"Missing required parameter: '{where}.type' or '{where}.strict'."
    if other := [spelling for spelling in ("parametersJsonSchema", "parameters_json_schema") if spelling in tool]:
        field = other[0]
        if "parameters" in tool:
            yield f"{where}: only one of parameters and parametersJsonSchema can be set"
    schema = tool.get(field)
    if not isinstance(schema, dict) or str(schema.get("type")).lower() != "object":
        yield f"{where}.{field}: schema must be of type object"
    else:
        yield from _schema(schema, f"{where}.{field}", protocol == "gemini" and field == "parameters")


def _schema(schema: Any, where: str, openapi: bool) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where}: {schema!r} is not a schema"
        return
    if openapi:
        spelled = {re.sub(r"_(\w)", lambda found: found[1].upper(), key): None for key in schema}  # Google takes both
        yield from (f"Unknown name {key!r} at '{where}': Cannot find field." for key in unknown(spelled, _OPENAPI))
    kinds = schema.get("type", "object")
    for kind in kinds if isinstance(kinds, list) and not openapi else [kinds]:
        if str(kind).lower() not in _TYPES:
            yield f"{where}.type: {kind!r} is not valid under any of the given schemas"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not set(schema.get("required", ())) <= properties.keys():
        yield f"{where}.required: property is not defined"
        return
    for name, inside in [*properties.items(), *(("items", schema[key]) for key in ("items",) if key in schema)]:
        yield from _schema(inside, f"{where}.{name}", openapi)
