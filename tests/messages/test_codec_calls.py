"""Tool calls and their outputs: arguments as text and as objects, and items with special fields."""

from __future__ import annotations

from typing import Any

import pytest
from codec_facts import bare, read
from codec_kinds import ASK, RESPONSES, item

from holdfast.messages import Media, Message, Text, ToolCall, ToolResult, encode_all
from holdfast.messages.parts import RAW_ARGUMENTS

RAW = RAW_ARGUMENTS


@pytest.mark.parametrize(
    ("arguments", "as_object", "as_json", "written"),
    [
        ({"a": 1}, {"a": 1}, '{"a":1}', '{"a":1}'),
        ('{"a":  1}', {"a": 1}, '{"a":1}', '{"a":  1}'),
        ("", {}, "", ""),
        ({}, {}, "{}", "{}"),
        ("ls -l", {RAW: "ls -l"}, "ls -l", "ls -l"),
        ({RAW: "ls -l"}, {RAW: "ls -l"}, "ls -l", "ls -l"),
        ({RAW: 1}, {RAW: 1}, f'{{"{RAW}":1}}', f'{{"{RAW}":1}}'),
        ("[1, 2]", {RAW: "[1, 2]"}, "[1,2]", "[1, 2]"),
        ('{"a": ', {RAW: '{"a": '}, '{"a": ', '{"a": '),
        ('{"é": "日"}', {"é": "日"}, '{"é":"日"}', '{"é": "日"}'),
        ({"a": "\ud83d"}, {"a": "\ud83d"}, '{"a":"\ud83d"}', '{"a":"\ud83d"}'),
        ('{"a": "\ud83d"}', {"a": "\ud83d"}, '{"a":"\ud83d"}', '{"a": "\ud83d"}'),
        (r'{"a": "\ud83d"}', {"a": "\ud83d"}, '{"a":"\ud83d"}', r'{"a": "\ud83d"}'),
        (r"\ud83d {", {RAW: r"\ud83d {"}, r"\ud83d {", r"\ud83d {"),
    ],
    ids=[
        "object", "text", "nothing", "empty-object", "no-json", "no-json-as-object", "not-ours", "list", "cut-off",
        "unicode", "surrogate", "surrogate-text", "surrogate-escaped", "surrogate-no-json",
    ],
)  # fmt: skip
def test_tool_call_arguments_as_dict_json_and_text(
    arguments: Any, as_object: dict[str, Any], as_json: str, written: str
) -> None:
    call = ToolCall("c1", "run", arguments)
    assert call.arguments_dict == as_object
    assert call.arguments_json == as_json
    assert call.arguments_text == written


def test_custom_tool_call_input_is_kept_verbatim() -> None:
    """Text that looks like JSON is passed to the tool unchanged, including blanks."""
    items = RESPONSES["custom"]
    assert items[1]["input"] == '{"x":  1}'
    assert encode_all(bare(read(items, "openai-responses")), "openai-responses")[1]["input"] == '{"x":  1}'


def result_of(kind: str) -> ToolResult:
    return read(RESPONSES[kind], "openai-responses")[-1].results[0]


def test_shell_output_is_text_and_exit_code_is_error() -> None:
    assert result_of("shell") == ToolResult("c1", (Text("a.py"),), True, None, "shell_call")


def test_apply_patch_output_failed_is_error() -> None:
    assert result_of("apply-patch") == ToolResult("c1", (Text("no such file"),), True, None, "apply_patch_call")


def test_computer_call_output_is_image() -> None:
    assert result_of("computer").content == (Media("image", "image/png", "iVBORw0KGgo="),)


def test_local_shell_output_uses_call_id_as_id() -> None:
    assert result_of("local-shell") == ToolResult("c1", (Text("a.py"),), False, None, "local_shell_call")


def test_server_side_call_needs_no_result() -> None:
    for kind in ("tool-search-by-api", "program", "web-search", "mcp"):
        messages = read(RESPONSES[kind], "openai-responses")
        assert not any(message.calls or message.results for message in messages), kind


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("function", item("function_call_output", call_id="c1", output="[tool error] stopped")),
        ("custom", item("custom_tool_call_output", call_id="c1", output="[tool error] stopped")),
        ("local-shell", item("local_shell_call_output", id="c1", output="[tool error] stopped")),
        (
            "shell",
            item(
                "shell_call_output",
                call_id="c1",
                output=[{"stdout": "stopped", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
            ),
        ),
        ("apply-patch", item("apply_patch_call_output", call_id="c1", status="failed", output="stopped")),
        ("tool-search", item("tool_search_output", call_id="c1", execution="client", tools=[])),
    ],
)
def test_interrupted_call_gets_output_of_its_kind(kind: str, output: dict[str, Any]) -> None:
    messages = read(RESPONSES[kind][:2], "openai-responses")
    call = messages[1].calls[0]
    stopped = Message("tool", (ToolResult(call.id, (Text("stopped"),), True, call.name, call.kind),))
    assert encode_all([*messages, stopped], "openai-responses")[-1] == output


def test_interrupted_computer_call_gets_blank_screenshot() -> None:
    call = ToolCall("c1", "computer", {"action": {"type": "screenshot"}}, "computer_call")
    stopped = ToolResult("c1", (Text("stopped"),), True, "computer", "computer_call")
    out = encode_all([Message("assistant", (call,)), Message("tool", (stopped,))], "openai-responses")
    assert out[1]["output"]["image_url"].startswith("data:image/png;base64,")


def test_reasoning_item_is_encoded_with_all_verifiable_fields() -> None:
    thought = item("reasoning", id="rs_1", summary=[item("summary_text", text="hm")], encrypted_content="gAAAA")
    messages = read([ASK, thought], "openai-responses")
    assert encode_all(bare(messages), "openai-responses")[1] == thought
