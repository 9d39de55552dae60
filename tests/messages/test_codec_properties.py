"""Properties of every codec on random histories, valid and broken."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from codec_facts import Wire, all_parts, bare, facts, moved, read
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.messages import (
    FORMATS,
    Opaque,
    ToolResult,
    ai_sdk,
    anthropic,
    decode_all,
    encode_all,
    gemini,
    openai_chat,
    openai_responses,
    repair_messages,
    rules_for,
)
from judge import judge

OPAQUE = {module.name: module.OPAQUE for module in (openai_chat, openai_responses, anthropic, gemini, ai_sdk)}
each_format = pytest.mark.parametrize("format", FORMATS)
some = settings(max_examples=100)
Data = st.DataObject


def draw(data: Data, format: str) -> Wire:
    broken = data.draw(st.booleans(), label="broken")
    payloads: Wire = data.draw(histories.wire(format, broken=broken))
    return payloads


def containers(value: Any) -> set[int]:
    """Returns the identity of every dict and list inside."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(containers, value))
    return set()


@each_format
@given(data=st.data())
@some
def test_codec_unchanged_history_round_trips_exactly(format: str, data: Data) -> None:
    """Only listed kinds are opaque."""
    payloads = draw(data, format)
    before = copy.deepcopy(payloads)
    messages, _ = decode_all(payloads, format)
    out = encode_all(messages, format)
    assert out == before
    assert [list(payload) for payload in out] == [list(payload) for payload in before]
    assert payloads == before
    assert not containers(out) & containers(payloads)
    assert not containers(out) & containers([message.raw for message in messages])
    assert {part.kind for part in opaque_parts(messages)} <= OPAQUE[format]


@each_format
@given(data=st.data())
@some
def test_codec_history_rendered_from_parts_has_same_content(format: str, data: Data) -> None:
    payloads = draw(data, format)
    messages = read(payloads, format)
    rendered = encode_all(bare(messages), format)
    again = read(rendered, format)
    assert all_parts(again) == all_parts(messages)
    assert facts(again) == facts(messages)
    if not judge(payloads, format):
        assert judge(rendered, format) == []


@pytest.mark.sampled
@each_format
@pytest.mark.parametrize("other", FORMATS)
@given(data=st.data())
@settings(max_examples=25)
def test_codec_round_trip_through_another_format_loses_nothing(format: str, other: str, data: Data) -> None:
    messages = read(draw(data, format), format)
    there = moved(bare(messages), other)
    back = moved(bare(there), format)
    assert facts(there) == facts(messages)
    assert facts(back) == facts(messages)


@pytest.mark.sampled
@each_format
@pytest.mark.parametrize("other", FORMATS)
@given(data=st.data())
@settings(max_examples=25)
def test_codec_converted_history_is_valid_in_both_formats(format: str, other: str, data: Data) -> None:
    messages = read(data.draw(histories.wire(format)), format)
    if len(messages) == 1 and openai_responses.name in (format, other):
        return  # an encrypted summary has no content for other providers
    arrived = repair_messages(moved(messages, other), rules_for(other))
    assert judge(encode_all(arrived, other), other) == []
    returned = repair_messages(moved(bare(arrived), format), rules_for(format))
    assert judge(encode_all(returned, format), format) == []


def opaque_parts(messages: list[Any]) -> list[Opaque]:
    inside = [part for message in messages for part in message.parts]
    inside += [part for result in inside if isinstance(result, ToolResult) for part in result.content]
    return [part for part in inside if isinstance(part, Opaque)]
