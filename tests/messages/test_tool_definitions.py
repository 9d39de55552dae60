"""Tools, told in every provider's own way."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import ToolParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from holdfast.errors import UnknownFormat
from holdfast.messages import FORMATS, Tool, tools_in

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
def test_definitions_are_what_each_sdk_takes(format: str, kind: Any) -> None:
    (told,) = tools_in(format, [tool(PLAIN)])
    TypeAdapter(kind).validate_python(told)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        (PLAIN, "parameters"),
        (STRICT, "parameters_json_schema"),
        (DEEP, "parameters_json_schema"),
        (EITHER, "parameters_json_schema"),
    ],
)
def test_gemini_gets_any_schema_in_the_field_that_takes_it(parameters: dict[str, Any], field: str) -> None:
    (told,) = tools_in("gemini", [tool(parameters), tool(PLAIN)])
    declared = gemini.Tool.model_validate(told).function_declarations or []
    assert len(declared) == 2 and getattr(declared[0], field)


@pytest.mark.parametrize("format", FORMATS)
def test_they_are_the_callers_to_change(format: str) -> None:
    given = tool(PLAIN)
    told = str(tools_in(format, [given]))
    schema = next(v for v in _dicts(tools_in(format, [given])) if "properties" in v)
    schema["properties"].clear()
    assert str(tools_in(format, [given])) == told
    assert tools_in(format, []) == []


def _dicts(value: Any) -> list[dict[str, Any]]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(found for item in inside for found in _dicts(item))]


def test_a_format_that_is_none() -> None:
    with pytest.raises(UnknownFormat):
        tools_in("xml", [])
