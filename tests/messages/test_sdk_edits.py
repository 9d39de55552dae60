"""Every part of every type of the installed SDKs, edited: nothing else in its message changes, nor its order (H11)."""

from __future__ import annotations

import json

import pytest
from sdk_cases import Case, each_of, forms
from sdk_changes import Change, changes, is_edit
from sdk_conversations import conversation
from sdk_types import Json, conforms_to_sdk

from holdfast.errors import InvalidInput
from holdfast.messages import (
    Message,
    Part,
    Text,
    ToolResult,
    change,
    decode_all,
    encode_all,
    without_generated_id,
)

each_case = each_of(forms())
SHORT = "[cleared]"


def sample_message(case: Case) -> tuple[Json, Message]:
    """The payload that has the sample, and its message."""
    given = conversation(case)
    messages, _ = decode_all(given.messages, case.format)
    return given.messages[given.sample.message], messages[given.sample.message]


def sent(message: Message, case: Case) -> tuple[Json, list[Part]]:
    """The payload of a message, and the parts that it has when it is read again."""
    (payload,) = encode_all([message], case.format)
    ((again,), _) = decode_all([payload], case.format)
    assert conforms_to_sdk(payload, case.format), payload
    return payload, [without_generated_id(part) for part in again.parts]


def parts_of(message: Message) -> list[Part]:
    return [without_generated_id(part) for part in message.parts]


@each_case
def test_sdk_type_with_another_text_changes_nothing_else(case: Case) -> None:
    before, message = sample_message(case)
    for index, part in enumerate(message.parts):
        if not isinstance(part, Text | ToolResult):
            with pytest.raises(InvalidInput, match="no text to replace"):
                change(message, {index: SHORT})
            continue
        edited = change(message, {index: SHORT})
        payload, again = sent(edited, case)
        found = list(changes(before, payload))
        assert again == parts_of(edited)
        if isinstance(part, Text):
            assert [(each.kind, each.before, each.after) for each in found] == [("text", part.text, SHORT)]
        else:
            assert_only_the_result(found, message, index, case)


def assert_only_the_result(found: list[Change], message: Message, index: int, case: Case) -> None:
    """A result says the text, and all else that it said is gone; what says whose result it is has not changed."""
    assert [str(each) for each in found if not is_edit(each)] == []
    within = (("content", "parts")[case.format == "gemini"], index)
    if case.format in ("anthropic", "gemini"):
        assert [str(each) for each in found if each.path[:2] != within] == []


@each_case
def test_sdk_type_without_a_part_changes_nothing_else(case: Case) -> None:
    before, message = sample_message(case)
    for index in range(len(message.parts)):
        edited = change(message, {index: None})
        if len(message.parts) == 1:
            assert encode_all([edited], case.format) == []
            continue
        payload, again = sent(edited, case)
        assert [each.kind for each in changes(before, payload)] == ["dropped"]
        assert again == parts_of(edited) == [part for place, part in enumerate(parts_of(message)) if place != index]


@each_case
def test_sdk_type_with_every_second_part_edited_keeps_the_others(case: Case) -> None:
    before, message = sample_message(case)
    places = range(len(message.parts))
    gone = dict.fromkeys(places[1::3])
    texts = {place: SHORT for place in places[::3] if isinstance(message.parts[place], Text | ToolResult)}
    at_once = change(message, gone | texts)
    after_each_other = change(change(message, texts), gone)
    payload, again = sent(at_once, case)
    assert json.dumps(payload) == json.dumps(sent(after_each_other, case)[0])
    assert [str(each) for each in changes(before, payload) if not is_edit(each)] == []
    assert again == parts_of(at_once)
