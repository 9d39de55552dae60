"""Parts that are kept as they came: each estimator counts them, what is encrypted as text and media as media."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.messages import FORMATS, Message, Opaque, ToolResult, decode_all, to_json
from holdfast.tokens import CharsPerConversation, CharsPerMessage, CharsPerPiece, Estimator, Tokenizer, estimator_for

RULES: list[Estimator] = [CharsPerPiece(), CharsPerMessage(), CharsPerConversation(), Tokenizer()]
RULES.append(estimator_for(lambda text: len(text) // 4))
BLOB = "QUJD" * 10_000
WORDS = "one more line of text. " * 1_000
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def size(rule: Estimator, message: Message) -> int:
    return rule.tokens(rule.measure(message))


def assistant(kind: str, data: dict[str, Any], origin: str = "anthropic") -> Message:
    return Message("assistant", (Opaque(kind, {"type": kind, **data}, origin),))


UNKNOWN: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "user", "content": [{"type": "hologram", "body": WORDS}]},
    "openai-responses": {"type": "hologram", "body": WORDS},
    "anthropic": {"role": "user", "content": [{"type": "hologram", "body": WORDS}]},
    "gemini": {"role": "user", "parts": [{"hologram": {"body": WORDS}}]},
    "ai-sdk": {"role": "user", "content": [{"type": "hologram", "body": WORDS}]},
}


@each_rule
@pytest.mark.parametrize("format", FORMATS)
def test_part_of_an_unknown_type_counts_by_its_bytes(rule: Estimator, format: str) -> None:
    (message,), _ = decode_all([UNKNOWN[format]], format)
    text = Message("user", ())
    assert 0.5 < (size(rule, message) - size(rule, text)) / (len(WORDS) / 4) < 1.4


@each_rule
def test_bytes_of_an_unknown_type_count_where_they_are_no_text(rule: Estimator) -> None:
    """It may be an image, or not: nobody knows, so it is no less than its bytes."""
    assert size(rule, assistant("hologram", {"data": BLOB})) >= len(BLOB) // 4


def test_character_rules_count_bytes_of_any_script() -> None:
    message = assistant("hologram", {"body": "日本語" * 100})
    json = to_json(message.parts[0].data).encode()  # type: ignore[union-attr]
    assert CharsPerPiece().measure(message) == 2 - (-len(json) // 4)


@each_rule
@pytest.mark.parametrize(
    ("kind", "data", "origin"),
    [
        (
            "web_search_tool_result",
            {"content": [{"type": "web_search_result", "encrypted_content": BLOB}]},
            "anthropic",
        ),
        ("compaction", {"encrypted_content": BLOB}, "openai-responses"),
        ("hologram", {"encrypted_content": BLOB}, "openai-responses"),
    ],
)
def test_encrypted_text_counts_as_the_text_in_it(rule: Estimator, kind: str, data: dict[str, Any], origin: str) -> None:
    """Not as its base64, of which a tokenizer makes three to four times as many tokens."""
    assert 0.95 < size(rule, assistant(kind, data, origin)) / (len(BLOB) * 3 / 4 / 4) < 1.4


@pytest.mark.parametrize(
    ("kind", "data", "origin"),
    [
        ("image_generation_call", {"id": "ig_1", "result": BLOB}, "openai-responses"),
        ("image_generation_call", {"id": "ig_1", "result": f"data:image/png;base64,{BLOB}"}, "openai-responses"),
        (
            "mcp_tool_result",
            {"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BLOB}}]},
            "anthropic",
        ),
    ],
)
def test_media_in_a_known_part_count_as_media(kind: str, data: dict[str, Any], origin: str) -> None:
    message = assistant(kind, data, origin)
    assert size(CharsPerPiece(), message) < 100
    assert 1_200 < size(Tokenizer(), message) < 1_300
    result = Message("tool", (ToolResult("c1", message.parts),))  # type: ignore[arg-type]
    assert size(CharsPerPiece(), result) < 100
    assert 1_200 < size(Tokenizer(), result) < 1_300


@each_rule
def test_text_in_a_known_part_counts_as_text(rule: Estimator) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": WORDS}
    assert size(rule, assistant("document", {"source": source})) > len(WORDS) / 8


@each_rule
def test_signature_of_a_part_counts_nothing(rule: Estimator) -> None:
    plain = {"content": "So far.", "tools": [{"x": 1}]}
    signed = {"content": "So far.", "signature": BLOB, "tools": [{"x": 1, "thoughtSignature": BLOB}]}
    assert size(rule, assistant("compaction", signed)) == size(rule, assistant("compaction", plain))
