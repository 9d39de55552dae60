"""Character rules with exact numbers (L1, G1, W2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, assistant, user
from holdfast.tokens import CharsPerConversation, CharsPerMessage, CharsPerPiece, Estimator

L1, G1, W2 = CharsPerPiece(), CharsPerMessage(), CharsPerConversation()


def tool(*content: Any, **more: Any) -> Message:
    return Message("tool", (ToolResult("c1", content, **more),))


def call(name: str, arguments: Any) -> Message:
    return Message("assistant", (ToolCall("c1", name, arguments),))


PICTURE = Media("image", "image/png", "A" * 4_000)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 2),
        (Message("user", ()), 2),
        (user("a"), 3),
        (user("abcd"), 3),
        (user("abcde"), 4),
        (user("日本語の"), 3),
        (user("日本語のテ"), 4),
        (user("👩‍👩‍👧‍👦"), 4),
        (user("e\u0301e\u0301"), 3),
        (user("\ud83d"), 3),
        (Message("system", (Text("abcd"),)), 3),
        (Message("user", (Text("a"), Text("b"), Text(""))), 4),
        (Message("user", (PICTURE,)), 2),
        (Message("user", (Text("a"), PICTURE)), 3),
        (Message("assistant", (Reasoning("hmm, let me think"),)), 2),
        (Message("assistant", (Opaque("web_search_call", {"query": "x" * 40}, "openai-responses"),)), 2 + 13),
        (call("read", {"a": 1}), 2 + 1 + 2),
        (call("read", '{"a":   1}'), 2 + 1 + 2),
        (call("read", {}), 2 + 1 + 1),
        (call("", {}), 2 + 0 + 1),
        (call("read_file", {"path": "日本"}), 2 + 3 + 4),
        (call("run", "not json"), 2 + 1 + 2),
        (tool(Text("ab")), 2 + 1),
        (tool(Text("abc")), 2 + 1),
        (tool(), 2),
        (tool(Text("")), 2),
        (tool(Text('say "hi"\n')), 2 + 3),
        (tool(Text("日本")), 2 + 1),
        (tool(Text("a"), Text("b")), 2 + 3),
        (tool(Text("ab"), is_error=True), 2 + 1),
        (Message("tool", (ToolResult("c1", (Text("ab"),)), ToolResult("c2", (Text("ab"),)))), 2 + 1 + 1),
    ],
)
def test_l1_chars_per_piece_rounds_up_each_piece_and_adds_two_per_role(message: Message, tokens: int) -> None:
    """ceil(code points / 4) per piece: text, a call's name and compact JSON, a result's text.

    A result of several parts is their JSON. Media and reasoning are free; a part that is kept as it came counts the
    bytes of its JSON.
    """
    assert L1.tokens(L1.measure(message)) == tokens


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 4),
        (user("abc"), 4),
        (user("abcd"), 5),
        (user("abcdefg"), 5),
        (user("日本語の"), 5),
        (Message("user", (Text("ab"), Text("cd"))), 5),
        (call("read", {"a": 1}), 6),
        (tool(Text("abcd")), 5),
        (Message("user", (PICTURE,)), 4),
    ],
)
def test_g1_chars_per_message_rounds_down_and_adds_four(message: Message, tokens: int) -> None:
    assert G1.tokens(G1.measure(message)) == tokens


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [([], 0), ([""], 0), (["a"], 1), (["abc"], 1), (["abcd"], 2), (["a", "b", "c"], 1), (["a", "b", "cd"], 2)],
    ids=str,
)
def test_w2_chars_per_conversation_rounds_once(texts: list[str], tokens: int) -> None:
    assert W2.tokens(sum(W2.measure(user(text)) for text in texts)) == tokens


@pytest.mark.parametrize(("text", "l1", "g1", "w2"), [("", 0, 0, 0), ("abcde", 2, 1, 5), ("日本語", 1, 0, 3)])
def test_measure_text_adds_no_role(text: str, l1: int, g1: int, w2: int) -> None:
    """For the system prompt and tools, which are not messages."""
    assert (L1.measure_text(text), G1.measure_text(text), W2.measure_text(text)) == (l1, g1, w2)


parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text()),
    st.builds(ToolCall, st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=2)),
    st.builds(ToolResult, st.text(), st.lists(st.builds(Text, st.text()), max_size=2).map(tuple)),
)


@given(st.lists(parts, max_size=4), st.lists(parts, max_size=4))
def test_estimator_units_add_up(first: list[Part], second: list[Part]) -> None:
    """A running sum is enough for a long session (L13)."""
    one, two = Message("user", tuple(first)), Message("assistant", tuple(second))
    both = Message("user", (*first, *second))
    assert W2.measure(one) + W2.measure(two) == W2.measure(both)
    assert L1.measure(one) + L1.measure(two) == L1.measure(both) + 2


@given(st.text())
def test_estimator_plain_text_fast_path_equals_general_path(text: str) -> None:
    """Every rule has a fast path for a single text."""
    for rule, cost in ((L1, L1.measure_text(text)), (G1, len(text) // 4), (W2, len(text))):
        more = Message("assistant", (Text(text), PICTURE))
        assert rule.measure(assistant(text)) == rule.measure(more)
        assert rule.measure_text(text) == cost


values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)
written = [
    st.text(),
    st.dictionaries(st.text(), values).map(json.dumps),
    st.dictionaries(st.text(), values).map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    st.sampled_from(
        ['{"a": 1, "a": 22}', r'{"a": "\ud83d"}', '{"a": "\ud83d"}', '{"a": 1.50e2}', r'{"a": "\u0061\/"}']
    ),
]


@given(st.one_of(written))
def test_l1_chars_per_piece_measures_arguments_as_compact_json(text: str) -> None:
    """The length is usually computed without building the string."""
    wanted = ToolCall("c1", "read", text).arguments_json
    assert L1.measure(call("read", text)) == 2 + 1 + L1.measure_text(wanted)


def test_character_rules_are_estimators() -> None:
    for rule in (L1, G1, W2):
        assert isinstance(rule, Estimator)
