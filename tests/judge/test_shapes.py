"""Values of the wrong shape are rejected with a path, and never raise."""

from typing import Any

import pytest

from judge import judge

USER: Any = {"role": "user", "content": "hi"}
HI: Any = {"role": "user", "parts": [{"text": "hi"}]}


def anthropic(block: Any, role: str = "user") -> list[Any]:
    return [USER, {"role": role, "content": [block]}]


def result(**fields: Any) -> list[Any]:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    block = {"type": "tool_result", "tool_use_id": "a", **fields}
    return [*anthropic(use, "assistant"), {"role": "user", "content": [block]}]


def chat_call(call: Any) -> list[Any]:
    return [USER, {"role": "assistant", "tool_calls": [call]}]


CASES: list[tuple[str, str, list[Any]]] = [
    ("openai-chat", "Invalid type for 'messages[0]'", ["hi"]),
    ("openai-chat", "'messages[0].content': expected one of", [{"role": "user", "content": 1}]),
    ("openai-chat", "'messages[0].content[0]': expected an object", [{"role": "user", "content": ["hi"]}]),
    ("openai-chat", "must have a 'name'", [{"role": "function", "content": "x"}]),
    ("openai-chat", "expected an array of objects", [{"role": "assistant", "content": "", "tool_calls": {}}]),
    ("openai-chat", "'messages[1].tool_calls[0]': expected an object", chat_call("f")),
    ("openai-chat", "'messages[1].tool_calls[0].custom'", chat_call({"id": "a", "type": "custom"})),
    ("openai-responses", "Invalid type for 'input[1]'", [USER, None]),
    (
        "openai-responses",
        "'input[0].content[0].text'",
        [{"role": "user", "content": [{"type": "input_text"}]}],
    ),
    ("openai-responses", "'input[0].name'", [{"type": "function_call", "call_id": "a", "arguments": ""}]),
    ("anthropic", "messages.0: Input should be a valid dictionary", ["hi"]),
    ("anthropic", "content.0: Input should be a valid dictionary", anthropic("hi")),
    ("anthropic", "content.0.type: Field required", anthropic({"text": "hi"})),
    ("anthropic", "text.text: Input should be a valid string", anthropic({"type": "text", "text": None})),
    ("anthropic", "thinking.signature: Input", anthropic({"type": "thinking", "signature": 1}, "assistant")),
    ("anthropic", "tool_use.id: Field required", anthropic({"type": "tool_use", "name": "f"}, "assistant")),
    ("anthropic", "at most 200", anthropic({"type": "tool_use", "id": "a", "name": "f" * 201}, "assistant")),
    ("anthropic", "tool_use_id: Field required", result(tool_use_id=None)),
    ("anthropic", "tool_result.content: Input should be", result(content={"a": 1})),
    ("anthropic", "Input tag 'tool_use'", result(content=[{"type": "tool_use"}])),
    ("anthropic", "content.0.text.text", result(content=[{"type": "text"}])),
    ("anthropic", "image.source: Field required", anthropic({"type": "image"})),
    ("anthropic", "url.url", anthropic({"type": "image", "source": {"type": "url"}})),
    ("anthropic", "base64.data", anthropic({"type": "document", "source": {"type": "base64"}})),
    ("gemini", "Invalid value at 'contents[1]'", [HI, "hi"]),
    ("gemini", "contents[0].parts[0].text", [{"role": "user", "parts": [{"text": 1}]}]),
    ("gemini", "have the role user", [HI, {"role": "model", "parts": [{"functionResponse": {"name": "f"}}]}]),
    ("gemini", "must not be empty", [HI, {"role": "model", "parts": 1}]),
]


@pytest.mark.parametrize(
    ("profile", "error", "messages"), [pytest.param(*case, id=f"{case[0]}: {case[1]}") for case in CASES]
)
def test_judge_wrong_shape_is_rejected(profile: str, error: str, messages: list[Any]) -> None:
    found = judge(messages, profile, extras_ok=False, pending_ok=False, need_thought_signature=True)
    assert [text for text in found if error in text]


def test_judge_unknown_fields_inside_blocks_are_found() -> None:
    messages = result(content=[{"type": "text", "text": "x", "note": 1}], extra=2)
    assert judge(messages, "anthropic", extras_ok=False) == [
        "messages.2.content.0.tool_result.extra: Extra inputs are not permitted",
        "messages.2.content.0.tool_result.content.0.text.note: Extra inputs are not permitted",
    ]


def test_judge_system_message_may_hold_only_output_settings() -> None:
    assert judge([USER, {"role": "system", "output_config": {"effort": "low"}}], "anthropic") == []
