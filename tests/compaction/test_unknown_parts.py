"""Parts of a type that no codec knows are passed on as they came, counted, and named once in the remarks."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import compact
from holdfast.messages import FORMATS

LONG = "one more line of text. " * 400
WIRE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "openai-chat": (
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG},
        {"role": "user", "content": [{"type": "hologram", "body": LONG}, {"type": "text", "text": "and?"}]},
    ),
    "openai-responses": (
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG},
        {"type": "message", "role": "user", "content": [{"type": "hologram", "body": LONG}]},
    ),
    "anthropic": (
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG},
        {"role": "user", "content": [{"type": "hologram", "body": LONG}, {"type": "text", "text": "and?"}]},
    ),
    "gemini": (
        {"role": "user", "parts": [{"text": LONG}]},
        {"role": "model", "parts": [{"text": LONG}]},
        {"role": "user", "parts": [{"hologram": {"body": LONG}}, {"text": "and?"}]},
    ),
    "ai-sdk": (
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG},
        {"role": "user", "content": [{"type": "hologram", "body": LONG}, {"type": "text", "text": "and?"}]},
    ),
}
ONE = "1 part of unknown type `hologram` is passed on unchanged and counted by bytes"
TWO = "2 parts of unknown type `hologram` are passed on unchanged and counted by bytes"


@pytest.mark.parametrize("format", FORMATS)
def test_unknown_part_is_kept_counted_and_named_once(format: str) -> None:
    user, reply, strange = WIRE[format]
    messages = [user, reply] * 10 + [strange, reply, strange]
    result = compact(messages, budget=9_000, target=6_000, format=format, estimator="chars/4")
    assert result.messages[-1] == strange
    assert result.tokens_after > 2_000
    assert result.remarks.count(TWO) == 1


def test_each_unknown_type_is_named() -> None:
    user, reply, strange = WIRE["anthropic"]
    other = {"role": "user", "content": [{"type": "aroma", "body": "rose"}]}
    result = compact([user, reply] * 10 + [strange, reply, other], budget=9_000, target=6_000, format="anthropic")
    assert [remark for remark in result.remarks if "unknown" in remark] == [ONE.replace("hologram", "aroma"), ONE]


def test_unknown_part_of_a_result_is_named() -> None:
    user, reply, _ = WIRE["anthropic"]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]}
    inside = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "hologram", "body": LONG}]}
    messages = [user, reply] * 10 + [user, call, {"role": "user", "content": [inside]}]
    result = compact(messages, budget=12_000, target=8_000, estimator="chars/4")
    assert ONE in result.remarks
    assert result.tokens_after > 2_000


def test_part_that_a_codec_keeps_is_not_named() -> None:
    user, reply, _ = WIRE["anthropic"]
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    messages = [user, reply] * 10 + [user, {"role": "assistant", "content": [search, found]}]
    result = compact(messages, budget=9_000, target=6_000)
    assert result.outcome == "compacted" and result.remarks == ()


def test_nothing_is_named_where_nothing_is_compacted() -> None:
    _, _, strange = WIRE["anthropic"]
    assert compact([strange], budget=100_000, format="anthropic").remarks == ()
