"""Tool definitions in every provider's format."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import ToolParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from holdfast.errors import UnknownFormat
from holdfast.messages import FORMATS, Tool, encode_tools

PLAIN = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["path"],
}
STRICT = PLAIN | {"additionalProperties": False, "$schema": "https://json-schema.org/draft/2020-12/schema"}
DEEP = {"type": "object", "properties": {"at": {"anyOf": [{"type": "string"}, {"const": 7}]}}}
EITHER = {"type": "object", "properties": {"at": {"type": ["string", "null"]}}}


def tool(parameters: dict[str, Any]) -> Tool:
    return Tool("read", "Reads.", parameters)


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("openai-chat", ChatCompletionFunctionToolParam),
        ("openai-responses", FunctionToolParam),
        ("anthropic", ToolParam),
    ],
)
def test_encode_tools_matches_sdk_types(format: str, kind: Any) -> None:
    (definition,) = encode_tools(format, [tool(PLAIN)])
    TypeAdapter(kind).validate_python(definition)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        (PLAIN, "parameters"),
        (STRICT, "parameters_json_schema"),
        (DEEP, "parameters_json_schema"),
        (EITHER, "parameters_json_schema"),
    ],
)
def test_encode_tools_gemini_schema_goes_into_accepting_field(parameters: dict[str, Any], field: str) -> None:
    (definition,) = encode_tools("gemini", [tool(parameters), tool(PLAIN)])
    declared = gemini.Tool.model_validate(definition).function_declarations or []
    assert len(declared) == 2 and getattr(declared[0], field)


@pytest.mark.parametrize("format", FORMATS)
def test_encode_tools_result_may_be_changed_by_caller(format: str) -> None:
    given = tool(PLAIN)
    definition = str(encode_tools(format, [given]))
    schema = next(v for v in _dicts(encode_tools(format, [given])) if "properties" in v)
    schema["properties"].clear()
    assert str(encode_tools(format, [given])) == definition
    assert encode_tools(format, []) == []


def _dicts(value: Any) -> list[dict[str, Any]]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(found for item in inside for found in _dicts(item))]


def test_encode_tools_unknown_format_is_rejected() -> None:
    with pytest.raises(UnknownFormat):
        encode_tools("xml", [])
