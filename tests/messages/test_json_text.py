"""JSON encoding of model output: lone surrogates, and numbers too long for Python."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import decode_one, encode_all, to_json
from holdfast.tokens import Tokenizer

HUGE = 10**5_000
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.booleans().map(lambda below: -HUGE if below else HUGE)
    | st.text(st.characters())
)
VALUES = st.recursive(LEAVES, lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside), max_leaves=8)


@pytest.mark.parametrize("number", [0, -1, 2**64, 10**600, 10**4_200], ids=int.bit_length)
def test_to_json_number_within_limit_stays_number(number: int) -> None:
    assert to_json({"n": number}) == f'{{"n":{number}}}'


@pytest.mark.parametrize("number", [HUGE, -HUGE], ids=["above", "below"])
def test_to_json_longer_number_becomes_hex_text(number: int) -> None:
    for value in ({"n": [number]}, {"n": [number], "half": "\ud800"}):
        assert int(json.loads(to_json(value))["n"][0], 16) == number


@given(VALUES)
def test_to_json_any_model_output_is_encoded(value: Any) -> None:
    json.loads(to_json(value))


def test_tool_call_with_long_number_is_counted_and_converted() -> None:
    used = {"type": "tool_use", "id": "c1", "name": "factor", "input": {"n": HUGE}}
    call = {"role": "assistant", "content": [used]}
    message = decode_one(call, "anthropic")
    assert Tokenizer().measure(message) > 1_000
    assert encode_all([message], "anthropic") == [call]
    [converted] = encode_all([message], "openai-chat")
    assert json.loads(converted["tool_calls"][0]["function"]["arguments"]) == {"n": hex(HUGE)}
