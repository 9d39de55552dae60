"""Plain message files of any provider are read unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transcripts.conftest import Read, Write

from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.transcripts import read_transcript

HELLO = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "hi", "id": "m1"}


def test_plain_list(read: Read) -> None:
    transcript = read([HELLO, ANSWER], name="messages.json")
    assert transcript.kind == "messages"
    assert transcript.format is None
    assert transcript.messages == [HELLO, ANSWER]
    assert [entry.id for entry in transcript.entries] == [None, "m1"]
    assert transcript.warnings == ()


def test_plain_one_message_a_line(read: Read) -> None:
    assert read(HELLO, ANSWER).messages == [HELLO, ANSWER]
    assert read(HELLO).messages == [HELLO]


@pytest.mark.parametrize(
    ("body", "system"),
    [
        pytest.param({"messages": [HELLO], "system": [{"type": "text", "text": "s"}]}, [{"type": "text", "text": "s"}]),
        pytest.param({"input": [HELLO], "instructions": "s"}, "s"),
        pytest.param({"contents": [HELLO], "systemInstruction": {"parts": []}}, {"parts": []}),
        pytest.param({"contents": [HELLO], "system_instruction": "s"}, "s"),
        pytest.param({"input": "hello"}, None),
    ],
)
def test_plain_request_body(read: Read, body: dict[str, Any], system: Any) -> None:
    transcript = read({**body, "tools": [{"name": "t"}], "model": "m"}, name="request.json")
    assert transcript.messages == [HELLO]
    assert transcript.system == system
    assert (transcript.tools, transcript.model) == ([{"name": "t"}], "m")


def test_plain_responses_items_and_gemini_contents(read: Read) -> None:
    items = [{"type": "function_call", "call_id": "c"}, {"type": "reasoning", "summary": []}]
    assert read(items).messages == items
    contents = [{"parts": [{"text": "hello"}]}]
    assert read({"contents": contents}).messages == contents


def test_plain_invalid_message_is_refused(write: Write) -> None:
    with pytest.raises(UnknownFormat, match=r"Message 2 of .*session\.jsonl has neither a role"):
        read_transcript(write([HELLO, {"text": "hi"}]))
    with pytest.raises(InvalidInput, match=r"Message 2 of .*session\.jsonl is not a JSON object"):
        read_transcript(write({"messages": [HELLO, "hi"]}))
