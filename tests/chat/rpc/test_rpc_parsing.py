"""Parsing of request lines: every line gets one response or one error, and the next one is read (P9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rpc_harness import rpc_client

from holdfast.chat.rpc.requests import (
    REQUESTS,
    BranchRequest,
    CompactRequest,
    InvalidRequest,
    PromptRequest,
    parse_request,
)
from holdfast.io.streams import MAX_LINE_BYTES

KINDS = [*REQUESTS, "promt", "", "response"]
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just([]) | st.just({})
FIELDS = ["id", "text", "at", "whole", "enabled", "session", "limit", "request", "permission", "instructions", "more"]
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4).flatmap(
    lambda fields: st.sampled_from(KINDS).map(lambda kind: {"type": kind, **fields})
)
LINES = st.one_of(
    st.binary(max_size=40).filter(lambda line: b"\n" not in line),
    st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3)).map(lambda value: json.dumps(value).encode()),
    OBJECTS.map(lambda request: json.dumps(request).encode()),
    OBJECTS.map(lambda request: json.dumps(request).encode()[:-3]),
)


@given(lines=st.lists(LINES, max_size=12))
def test_every_line_gets_exactly_one_answer(lines: list[bytes], tmp_path_factory: Any) -> None:
    """Random lines, valid requests among them; the last request is always answered."""
    folder = tmp_path_factory.getbasetemp()

    async def visit() -> None:
        async with rpc_client(folder, "fine", yes=True) as client:
            await client.send_lines(*lines)
            await client.send({"type": "abort", "id": "last"})
            assert (await client.wait_for_response("last"))["ok"]
        answers = [record for record in client.records if _answers(record)]
        assert len(answers) == len(lines) + 1

    anyio.run(visit)


def _answers(record: dict[str, Any]) -> bool:
    return record["type"] == "response" or (record["type"] == "error" and "id" in record)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "is not JSON"),
        (b"   ", "is not JSON"),
        (b"hello", "is not JSON"),
        (b'{"type": "prompt", "text": "hi"', "is not JSON"),
        (b'{"type": "get_state"} {"type": "get_state"}', "is not JSON"),
        (b'{"type": "prompt", "text": "\xff"}', "is not JSON"),
        (b'{"type": "prompt", "text": "\\ud800"}', "is not JSON"),
        (b"\x00", "is not JSON"),
        (b'{"x": ' + b"[" * 100_000, "nested too deeply"),
        (b"[" * 100_000, "got `array`"),
        (b"[]", "A request is an object"),
        (b'"prompt"', "A request is an object"),
        (b"null", "give it a type, one of prompt, "),
        (b"{}", "give it a type, one of prompt, "),
        (b'{"type": 7}', "give it a type"),
        (b'{"type": "promt"}', "did you mean 'prompt'?"),
        (b'{"type": "list_session"}', "did you mean 'list_sessions'?"),
        (b'{"type": "xyzzy"}', "use one of prompt, "),
        (b'{"type": "prompt"}', "missing required field `text`"),
        (b'{"type": "prompt", "text": 7}', "Expected `str`, got `int`"),
        (b'{"type": "prompt", "text": "hi", "model": "x"}', "unknown field `model`): its fields are text, id."),
        (b'{"type": "approve", "request": "x", "permission": "maybe"}', "'maybe'"),
        (b'{"type": "get_messages", "whole": "yes"}', "Expected `bool`"),
        (b'{"type": "get_state", "id": 1.5}', "Expected"),
        (b'{"type": "get_state", "id": ' + b"9" * 5_000 + b"}", "out of range"),
    ],
    ids=lambda value: value[:40].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_parse_request_invalid_line_explains_error(line: bytes, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_request(line)
    assert says in str(refused.value) and str(refused.value)[-1] in ".?"


@pytest.mark.parametrize("id", [None, 7, "seven", 2**70])
def test_parse_request_error_carries_request_id(id: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_request(json.dumps({"id": id, "type": "promt"}).encode())
    assert refused.value.id == id


def test_parse_request_valid_line_returns_request() -> None:
    assert parse_request(b'{"text": "hi", "type": "prompt", "id": 1}\r') == PromptRequest(id=1, text="hi")
    assert parse_request(b'{"type": "branch", "at": 3}') == BranchRequest(at=3)
    assert parse_request(b' {"type": "compact"} ') == CompactRequest()


@pytest.mark.anyio
async def test_oversized_line_is_one_error(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, "fine") as client:
        await client.send_lines(b"x" * (MAX_LINE_BYTES + 1), b'{"type": "get_state", "id": 1}')
        assert "more than 10,000,000 bytes" in (await client.wait_for_response(None))["error"]
        assert (await client.wait_for_response(1))["ok"]
