"""Format detection, by fields that only one format has, with a helpful error where it is ambiguous."""

from __future__ import annotations

from typing import Any

import pytest
from codec_facts import Wire
from codec_kinds import ASK, CHAT, RESPONSES
from codec_kinds_ai_sdk import AI_SDK
from codec_kinds_blocks import ANTHROPIC, GEMINI, GO
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.messages import COMMON, FORMATS, Message, Text, decode_all, detect_format, encode_all, format_name

KINDS = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": GEMINI}
KINDS["ai-sdk"] = AI_SDK
PLAIN = {
    "openai-chat": {"text", "system", "name", "empty-string", "empty-text-part", "several-texts", "unknown-fields"},
    "openai-responses": {"text", "developer"},
    "anthropic": {"text", "text-cached", "several-texts", "empty-list", "unknown-fields"},
    "gemini": set[str](),
    "ai-sdk": {"text", "system", "text-options", "several-texts", "empty-text-part", "unknown-fields"},
}
EITHER_OPENAI = {"audio": "openai-chat", "refusal-part": "openai-chat"}
"""OpenAI's two formats write these alike."""
CASES = [
    pytest.param(payloads, COMMON if kind in PLAIN[format] else format, id=f"{format}-{kind}")
    for format, kinds in KINDS.items()
    for kind, payloads in kinds.items()
    if EITHER_OPENAI.get(kind) != format and (format, kind) != ("anthropic", "system-between")
]


@pytest.mark.parametrize(("payloads", "expected"), CASES)
def test_detect_format_of_each_message_kind(payloads: Wire, expected: str) -> None:
    assert detect_format(payloads) == expected
    assert decode_all(payloads)[1] == expected


def decisive(payload: dict[str, Any], format: str) -> bool:
    """Whether this payload alone determines its format."""
    kinds = {part["type"] for part in payload["content"]} if isinstance(payload.get("content"), list) else set()
    match format:
        case "openai-chat":
            return payload["role"] == "tool" or "tool_calls" in payload or bool(kinds - {"text"})
        case "openai-responses":
            return "type" in payload
        case "anthropic" | "ai-sdk":
            return bool(kinds - {"text"})
    return True


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data(), broken=st.booleans())
@settings(max_examples=60)
def test_detect_format_of_random_history(format: str, data: Any, broken: bool) -> None:
    payloads: Wire = data.draw(histories.wire(format, broken=broken))
    found = decode_all(payloads)[1]
    assert found == format if any(decisive(payload, format) for payload in payloads) else found in (COMMON, format)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text()), max_size=5))
@settings(max_examples=60)
def test_detect_format_plain_text_is_common(texts: list[tuple[str, str]]) -> None:
    payloads = [{"role": role, "content": text} for role, text in texts]
    messages, format = decode_all(payloads)
    assert format == detect_format(payloads) == COMMON
    assert encode_all(messages, COMMON) == payloads
    assert encode_all(messages, "openai-responses") == payloads
    assert encode_all(messages, "anthropic") == payloads


def test_developer_message_becomes_system_in_formats_without_that_role() -> None:
    messages, _ = decode_all([{"role": "developer", "content": "be brief"}])
    assert encode_all(messages, "openai-responses") == [{"role": "developer", "content": "be brief"}]
    assert encode_all(messages, "anthropic") == [{"role": "system", "content": "be brief"}]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, "Message 1 is in no known format (keys: none)"),
        ({"role": "robot", "content": "hi"}, "Message 1 has the role 'robot': use one of system, developer, user"),
        ({"role": ["user"], "content": "hi"}, "Message 1 has the role ['user']: use one of"),
        ({"role": "user"}, "keys: role"),
        ({"role": "user", "content": 7}, "Message 1 has the number 7 as its content: use a text, or a list of parts"),
        ({"role": "user", "content": [7]}, "no known format"),
        ({"role": "user", "content": [{"type": "input_text"}, {"type": "tool_use"}]}, "no known format"),
        ({"role": "robot", "parts": []}, "no known format"),
        ({"type": "banana"}, "keys: type"),
        ({"text": "hi"}, "pass format="),
        (GO, "Message 1 looks like gemini, but others like ai-sdk or anthropic or openai-chat or openai-responses"),
    ],
)
def test_detect_format_invalid_payload_is_rejected_with_help(payload: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        decode_all([ASK, payload])
    assert expected in str(caught.value)
    assert str(caught.value).endswith(".")


def test_decode_all_two_formats_is_rejected() -> None:
    with pytest.raises(
        UnknownFormat, match=r"Message 3 looks like anthropic, but others like openai-chat: pass messages of one"
    ):
        decode_all([*CHAT["call"], ANTHROPIC["thinking"][1]])


def test_decode_all_neutral_messages_keep_their_format() -> None:
    chat, claude = decode_all(CHAT["call"])[0], decode_all(ANTHROPIC["thinking"])[0]
    assert decode_all(chat) == (chat, "openai-chat")
    assert decode_all([Message("user", (Text("hi"),)), claude[1]])[1] == "anthropic"
    assert decode_all([*chat, ASK])[1] == "openai-chat"
    with pytest.raises(UnknownFormat, match="looks like anthropic, but others like openai-chat"):
        decode_all([*chat, ANTHROPIC["thinking"][1]])
    with pytest.raises(UnknownFormat, match=r"Message 4 is in format anthropic"):
        decode_all([*chat, *claude])
    assert decode_all([*chat, *claude], "anthropic")[1] == "anthropic"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi", "not str"),
        (b"hi", "not bytes"),
        (ASK, "not dict"),
        (7, "not int"),
        ([7], "Message 0 is a int"),
        ([ASK, None], "Message 1 is a NoneType"),
        ([["user", "hi"]], "Message 0 is a list"),
    ],
    ids=repr,
)
def test_decode_all_not_a_list_is_rejected(given: Any, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        decode_all(given)


def test_decode_all_invalid_payload_is_named_in_error() -> None:
    with pytest.raises(InvalidInput, match=r"Message 1 is not a valid anthropic message \(unknown role 'tool'\)"):
        decode_all([ASK, CHAT["call"][2]], "anthropic")
    with pytest.raises(InvalidInput, match="have `content`, but Gemini messages have `parts`"):
        decode_all([ASK], "gemini")


@pytest.mark.parametrize(
    ("given", "name"),
    [("openai", "openai-chat"), ("chat", "openai-chat"), ("responses", "openai-responses"), ("claude", "anthropic")],
)
def test_format_name_accepts_aliases(given: str, name: str) -> None:
    assert format_name(given) == name
    assert format_name(name) == name


def test_format_name_unknown_error_lists_known_formats() -> None:
    with pytest.raises(UnknownFormat, match="use one of openai-chat, openai-responses, anthropic, gemini, ai-sdk"):
        decode_all([ASK], "smoke-signals")
