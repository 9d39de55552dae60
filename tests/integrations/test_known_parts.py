"""Every kind of part that a framework defines is read, or known as one that is kept; any other is not known."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from holdfast.messages import Message, Opaque, decode_all, is_known
from holdfast.messages.frameworks import FRAMEWORKS
from holdfast.tokens import CharsPerPiece

LONG = "one more line of text. " * 100


def unknown(messages: list[Message]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    parts += [item for message in messages for result in message.results for item in result.content]
    return [part.kind for part in parts if isinstance(part, Opaque) and not is_known(part)]


def assert_read_or_known(name: str, dumps: list[Any]) -> None:
    assert unknown(decode_all([{name: dump} for dump in dumps], name)[0]) == []


def test_agent_framework_contents_are_read_or_known() -> None:
    types = pytest.importorskip("agent_framework._types")
    contents = [{"type": kind} for kind in get_args(types.ContentType) if kind not in ("data", "uri")]
    assert len(contents) > 20
    assert_read_or_known("agent_framework", [{"role": "user", "contents": contents}])


def test_pydantic_ai_parts_are_read_or_known() -> None:
    messages = pytest.importorskip("pydantic_ai.messages")
    fields: dict[str, Any] = {"content": "x", "tool_name": "read", "tool_call_id": "c1", "args": {}}
    for side, union in (("request", messages.ModelRequestPart), ("response", messages.ModelResponsePart)):
        classes = [get_args(kind)[0] for kind in get_args(get_args(union)[0])]
        kinds = sorted({str(kind.part_kind) for kind in classes})
        assert len(kinds) > 5
        assert_read_or_known(
            "pydantic_ai", [{"kind": side, "parts": [{"part_kind": kind, **fields} for kind in kinds]}]
        )


def test_langchain_blocks_are_read_or_known() -> None:
    content = pytest.importorskip("langchain_core.messages.content")
    blocks = [{"type": kind, "text": "x"} for kind in sorted(content.KNOWN_BLOCK_TYPES)]
    assert len(blocks) > 10
    assert_read_or_known("langchain", [{"type": "human", "content": blocks}])


def test_blocks_of_a_provider_are_known_in_a_framework() -> None:
    block = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    assert_read_or_known("langchain", [{"type": "ai", "content": [block]}])


STRANGE: dict[str, Any] = {
    "langchain": {"type": "human", "content": [{"type": "hologram", "body": LONG}]},
    "pydantic_ai": {"kind": "response", "parts": [{"part_kind": "hologram", "body": LONG}]},
    "haystack": {"role": "user", "content": [{"hologram": {"body": LONG}}]},
    "agent_framework": {"role": "user", "contents": [{"type": "hologram", "body": LONG}]},
    "llama_index": {"role": "user", "blocks": [{"block_type": "hologram", "body": LONG}]},
    "ag2": {"__event__": "ag2.events.hologram", "body": LONG},
    "agno": {"role": "user", "content": [{"type": "hologram", "body": LONG}]},
    "strands": {"role": "user", "content": [{"hologram": {"body": LONG}}]},
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_part_of_an_unknown_kind_is_counted_and_named(name: str) -> None:
    decoded, _ = decode_all([{name: STRANGE[name]}], name)
    assert unknown(decoded) == ["hologram"]
    assert CharsPerPiece().measure(decoded[0]) > len(LONG) / 4
