"""`decode_all(borrow=True)`: a borrowed payload decodes like a copied one, by the fast path for most messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast.errors import UnknownFormat
from holdfast.messages import FORMATS, Text, ToolCall, ToolResult, decode_all

RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
THEIRS = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}


class Dumped:
    """Fake SDK object inside a dict."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"name": "run", "arguments": "{}"}


def calls(*items: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(items), **more}


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_decode_all_borrow_equals_copy(format: str, data: st.DataObject) -> None:
    payloads = data.draw(histories.wire(format, broken=data.draw(st.booleans())))
    assert decode_all(payloads, format, borrow=True) == decode_all(payloads, format)


@pytest.mark.parametrize(
    ("payload", "parts"),
    [
        (RESULT, (ToolResult("c1", (Text("done"),)),)),
        (RESULT | {"content": "[tool error] no"}, (ToolResult("c1", (Text("no"),), True),)),
        (RESULT | {"content": ""}, (ToolResult("c1", ()),)),
        (RESULT | {"name": "run"}, (ToolResult("c1", (Text("done"),)),)),
        (calls(CALL), (ToolCall("c1", "run", "{}"),)),
        (calls(CALL, content="I look."), (Text("I look."), ToolCall("c1", "run", "{}"))),
        (calls(CALL, refusal="No."), (Text("No."), ToolCall("c1", "run", "{}"))),
        (calls(CALL | {"function": Dumped()}), (ToolCall("c1", "run", "{}"),)),
        (calls(), ()),
    ],
)
@pytest.mark.parametrize("borrow", [False, True])
def test_decode_all_payload_gives_its_parts(payload: dict[str, Any], parts: tuple[Any, ...], borrow: bool) -> None:
    (message,), name = decode_all([payload], borrow=borrow)
    assert (message.parts, name) == (parts, "openai-chat")


@pytest.mark.parametrize("borrow", [False, True])
def test_decode_all_call_without_id_gets_generated_id(borrow: bool) -> None:
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "run", "arguments": "{}"}}
    answer = {"role": "function", "name": "run", "content": "done"}
    messages, _ = decode_all([calls(CALL), RESULT, legacy, answer], borrow=borrow)
    assert [call.id for message in messages for call in message.calls] == ["c1", "nameless-2-0"]
    assert [result.call_id for message in messages for result in message.results] == ["c1", "nameless-2-0"]


@pytest.mark.parametrize(("payloads", "odd"), [([RESULT, RESULT, THEIRS], 2), ([THEIRS, RESULT, RESULT], 1)])
@pytest.mark.parametrize("borrow", [False, True])
def test_decode_all_mixed_formats_error_names_first_odd_message(payloads: list[Any], odd: int, borrow: bool) -> None:
    with pytest.raises(UnknownFormat, match=f"^Message {odd} looks like"):
        decode_all(payloads, borrow=borrow)
