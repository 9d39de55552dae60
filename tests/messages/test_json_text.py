"""JSON encoding of model output: lone surrogates, numbers too long for Python, and types decoded in threads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
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


FIRST_USE = """
import gc, importlib, sys
for line in sys.stdin.read().split():
    module, name = line.split(":")
    kind = getattr(importlib.import_module(module), name)
    if not any(type(each).__name__ == "StructInfo" for each in gc.get_referents(kind)):
        print(line)
"""
"""msgspec attaches what it prepared to the type."""


DECODERS = ("msgspec.convert", "msgspec.json.decode", "msgspec.msgpack.decode")


def decoded_types() -> set[str]:
    """Each of our types that our code decodes to, as `module:type`."""
    root = Path(holdfast.__file__).parent
    defined, decoded = {}, set()
    for path in root.rglob("*.py"):
        module = ".".join(("holdfast", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text()
        defined |= {name: f"{module}:{name}" for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)}
        for node in ast.walk(ast.parse(text)) if any(decoder in text for decoder in DECODERS) else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in DECODERS:
                kinds = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "type")]
                decoded.update(ast.unparse(kind) for kind in kinds)
    return {defined[name] for name in decoded if name in defined}


def test_types_are_prepared_for_decoding_when_they_are_imported() -> None:
    """Prepared at their first use in two threads at once, they ended the process with a segmentation fault."""
    types = decoded_types()
    assert "holdfast.context.checkpoint:Checkpoint" in types
    run = subprocess.run(
        [sys.executable, "-c", FIRST_USE], input="\n".join(sorted(types)), capture_output=True, text=True, check=True
    )
    assert run.stdout == ""
