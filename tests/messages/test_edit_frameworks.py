"""Edits of framework messages: of the dump only the edited part changes, and it still loads (H6)."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path as File
from typing import Any

import pytest
from codec_facts import read
from framework_dumps import CACHE, DUMPS, HIDDEN, Case, openai_call
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast.messages import (
    FORMATS,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    apply_edits,
    change,
    decode_all,
    decode_one,
    encode_all,
    rename_calls,
    without_generated_id,
)
from holdfast.messages.codec import codec_of
from holdfast.messages.frameworks import FRAMEWORKS, dump_objects, load_object
from holdfast.messages.patch import Path, value_at
from real_sessions import each_nth_session, history

INSTALLED = {name for name, framework in FRAMEWORKS.items() if find_spec(framework.package)}
each_framework = pytest.mark.parametrize("name", DUMPS)
each_dump = pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(name, case, id=f"{name}: {kind}") for name, cases in DUMPS.items() for kind, case in cases.items()],
)
SHORT = "short"


def message_of(name: str, dump: Json) -> Message:
    return decode_all([{name: copy.deepcopy(dump)}], name)[0][0]


def texts_of(part: Part) -> list[str]:
    return [one.text for one in ([part] if isinstance(part, Text) else part.content) if isinstance(one, Text)]  # type: ignore[union-attr,list-item]


def sent(message: Message, name: str) -> Json | None:
    """The dump of a message as it is sent; None for a hidden one."""
    payloads = encode_all([message], name)
    return payloads[0][name] if payloads else None


def edited(dump: Json, script: str) -> Json:
    """Returns the dump with `-path` dropped, `path=json` replaced, and the short text at each other path."""
    result: Json = copy.deepcopy(dump)
    steps = [(tuple(map(_key, step.lstrip("-").partition("=")[0].split("/"))), step) for step in script.split()]
    for path, step in (step for step in steps if step[1][0] != "-"):
        _, has_value, value = step.partition("=")
        value_at(result, path[:-1])[path[-1]] = json.loads(value) if has_value else SHORT
    for path, _ in sorted((step for step in steps if step[1][0] == "-"), reverse=True):
        del value_at(result, path[:-1])[path[-1]]
    return result


def _key(step: str) -> str | int:
    return int(step) if step.isdecimal() else step


def assert_changed(message: Message, changed: Message, name: str, script: str) -> None:
    """The payload is changed as the script says, byte for byte; it has the message's parts, and loads."""
    assert message.raw is not None
    dump = sent(changed, name)
    assert apply_edits(message, changed.edits) == changed
    if dump is None:
        assert script == HIDDEN and changed.parts == ()
        return
    assert json.dumps(dump) == json.dumps(edited(message.raw[name], script))
    assert parts_of({name: dump}) == plain_parts(changed)
    assert_loads(name, dump)


def parts_of(*payloads: Json) -> list[Part]:
    (name,) = payloads[0]
    return [part for message in decode_all(payloads, name)[0] for part in plain_parts(message)]


def plain_parts(message: Message) -> list[Part]:
    """The parts without generated ids."""
    return list(map(without_generated_id, message.parts))


def assert_loads(name: str, dump: Json) -> None:
    """The framework makes a message of the dump, with the same parts."""
    if name in INSTALLED:
        payloads, _ = dump_objects([load_object({name: dump})])
        assert parts_of(*payloads) == parts_of({name: dump})


@each_dump
def test_h6_every_part_has_its_place(name: str, case: Case) -> None:
    message = message_of(name, case.dump)
    places = list(codec_of(name).places({name: case.dump}))
    assert len(places) == len(message.parts) == len(case.texts) == len(case.drops)
    assert_loads(name, case.dump)


@each_dump
def test_h6_text_takes_the_place_of_the_parts_own_alone(name: str, case: Case) -> None:
    message = message_of(name, case.dump)
    for index, expected in enumerate(case.texts):
        part = message.parts[index]
        assert (expected is not None) == isinstance(part, Text | ToolResult)
        if expected is None:
            continue
        changed = change(message, {index: SHORT})
        assert texts_of(changed.parts[index]) == [SHORT]
        assert_changed(message, changed, name, expected)
        assert not [text for text in texts_of(part) if text in json.dumps(sent(changed, name))]


@each_dump
def test_h6_dropped_part_leaves_all_others_as_they_are(name: str, case: Case) -> None:
    message = message_of(name, case.dump)
    for index, expected in enumerate(case.drops):
        changed = change(message, {index: None})
        assert list(changed.parts) == [part for at, part in enumerate(message.parts) if at != index]
        assert_changed(message, changed, name, expected)


REASONING = "-reasoning_content -provider_data/signature -provider_data/content_blocks/0"
TOGETHER = [
    ("pydantic_ai", "prompts", {1: None, 2: None}, "-parts/1"),
    ("pydantic_ai", "prompts", {1: None, 3: None}, "-parts/1/content/0 -parts/2"),
    ("langchain", "reply of blocks", {0: None, 1: None, 2: None, 3: None}, HIDDEN),
    ("langchain", "reply of blocks", {2: None, 3: None}, "-content/2 -content/3 -tool_calls"),
    ("langchain", "reply of blocks", {0: None, 1: SHORT}, "-content/0 content/1/text"),
    ("agno", "reply of Claude", {0: None, 3: None}, f"{REASONING} -provider_data/content_blocks/3 -tool_calls"),
    ("agno", "reply of Claude", {2: SHORT, 3: None}, "content -provider_data/content_blocks -tool_calls"),
    ("ag2", "reply of texts", {0: None, 1: None}, "message/content=[]"),
    (
        "llama_index",
        "signed reply",
        {0: None, 1: None},
        "-blocks/0 -blocks/1 -additional_kwargs/thought_signatures/0 -additional_kwargs/thought_signatures/1",
    ),
]


@pytest.mark.parametrize(("name", "kind", "changes", "script"), TOGETHER)
def test_parts_changed_together_leave_nothing_empty(
    name: str, kind: str, changes: dict[int, str | None], script: str
) -> None:
    message = message_of(name, DUMPS[name][kind].dump)
    assert_changed(message, change(message, changes), name, script)


@each_dump
def test_parts_dropped_one_after_another_are_hidden_with_the_last(name: str, case: Case) -> None:
    message = message_of(name, case.dump)
    while len(message.parts) > 1:
        message = change(message, {0: None})
        dump = sent(message, name)
        assert dump is not None
        assert parts_of({name: dump}) == plain_parts(message)
        assert_loads(name, dump)
    assert sent(change(message, {0: None}), name) is None


@each_dump
def test_renamed_call_changes_its_id_alone(name: str, case: Case) -> None:
    message = message_of(name, case.dump)
    for index, part in enumerate(message.parts):
        known = part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else None
        if known is None or without_generated_id(part) != part:
            continue
        dump = sent(rename_calls(message, {index: "other"}), name)
        assert dump is not None
        before, after = dict(leaves(case.dump)), dict(leaves(dump))
        ids = [path for path, value in before.items() if after[path] != value]
        assert ids and list(before) == list(after)
        assert all((before[path], after[path]) == (known, "other") for path in ids)
        assert not [path for path, value in after.items() if value == known and not _ARGUMENTS & {*path}]
        assert parts_of({name: dump}) == plain_parts(rename_calls(message, {index: "other"}))
        assert_loads(name, dump)


_ARGUMENTS = {"args", "arguments", "input", "tool_kwargs"}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, item in items:
            yield from leaves(item, (*path, key))


# -- histories ---------------------------------------------------------------------------------------------------------


def dumps_of(messages: list[Message], name: str) -> list[Json]:
    """Encodes messages as those of a framework, reasoning and what providers repeat included."""
    own = [Message(message.role, tuple(_own(part, name) for part in message.parts)) for message in messages]
    return [{name: with_copies(payload[name], name)} for payload in encode_all(own, name)]


def _own(part: Part, name: str) -> Part:
    return Reasoning(part.text or "hm", origin=name) if isinstance(part, Reasoning) else part


def with_copies(dump: Json, name: str) -> Json:
    """Returns the dump of a reply with what the integrations of OpenAI and Anthropic repeat."""
    if name == "langchain" and (calls := dump.get("tool_calls")):
        blocks = [{"type": "tool_use", "id": made["id"], "name": made["name"], "input": {}} for made in calls]
        known = [{"type": "text", "text": dump["content"]}] if isinstance(dump["content"], str) else dump["content"]
        about = {"tool_calls": [openai_call(made["id"]) for made in calls]}
        return dump | {"content": [*known, *blocks], "additional_kwargs": about}
    if name == "llama_index" and dump["role"] == "assistant":
        ids = [block["tool_call_id"] for block in dump["blocks"] if block["block_type"] == "tool_call"]
        return dump | {"additional_kwargs": {"tool_calls": [openai_call(call_id) for call_id in ids]}}
    if name == "agno" and dump["role"] == "assistant":
        thoughts = [{"type": "thinking", "thinking": thought} for thought in [dump.get("reasoning_content")] if thought]
        content = dump.get("content") or []
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [{"type": "tool_use", "id": made["id"], "name": "look"} for made in dump.get("tool_calls", ())]
        return dump | {"provider_data": {"content_blocks": [*thoughts, *texts, *blocks]}}
    return dump


def with_noise(dump: Json, name: str, luck: random.Random) -> Json:
    """Returns the dump with unknown fields and cache marks where its codec reads it as before."""
    noisy: Json = copy.deepcopy(dump)
    for fields in [one for one in _objects(noisy) if luck.random() < 0.3]:
        key, value = luck.choice([("cache_control", CACHE), (f"x_{luck.randrange(9)}", luck.random()), ("x", None)])
        before = dict(fields)
        items = [*fields.items(), (key, value)]
        luck.shuffle(items)
        fields.clear()
        fields.update(items)
        if not _same_kinds(noisy, dump, name):
            fields.clear()
            fields.update(before)
    return noisy


def _objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def _same_kinds(noisy: Json, dump: Json, name: str) -> bool:
    try:
        read = decode_one({name: noisy}, name).parts
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return list(map(type, read)) == list(map(type, decode_one({name: dump}, name).parts))


def random_changes(message: Message, luck: random.Random) -> dict[int, str | None]:
    some = [index for index in range(len(message.parts)) if luck.random() < 0.4]
    has_text = [isinstance(part, Text | ToolResult) for part in message.parts]
    return {index: SHORT if has_text[index] and luck.random() < 0.6 else None for index in some}


def assert_edited(message: Message, changes: dict[int, str | None], name: str) -> None:
    """Edits lie in the places of what changes; the parts are those of the payload, however often it is edited."""
    changed = change(message, changes)
    assert apply_edits(message, changed.edits) == changed
    dump = sent(changed, name)
    if dump is None:
        assert changed.parts == ()
        return
    assert parts_of({name: dump}) == plain_parts(changed)
    places = list(codec_of(name).places(message.raw or {}))
    touched = [path for index in changes for path in places[index]]
    others = [path for index, paths in enumerate(places) if index not in changes for path in paths]
    for edit in changed.edits:
        inside = any(edit.path[: len(path)] == path for path in touched)
        emptied = [path for path in touched if path[: len(edit.path)] == edit.path]
        assert inside or (emptied and not [path for path in others if path[: len(edit.path)] == edit.path])
    step = message
    for index, text in sorted(changes.items(), reverse=True):
        step = change(step, {index: text})
    assert sent(step, name) == dump and step.parts == changed.parts


@each_framework
@given(data=st.data())
def test_h6_random_history_is_edited_in_the_places_of_its_parts(name: str, data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(FORMATS))
    luck = random.Random(data.draw(st.integers(0, 1 << 32)))
    payloads = data.draw(histories.wire(format, broken=data.draw(st.booleans())))
    assert_history(dumps_of(read(payloads, format), name), name, luck)


@pytest.mark.sampled(20)
@each_framework
@each_nth_session(20, 2)
def test_h6_real_session_is_edited_in_the_places_of_its_parts(path: File, name: str) -> None:
    assert_history(dumps_of(history(path)[:400], name), name, random.Random(path.name))


def assert_history(payloads: list[Json], name: str, luck: random.Random) -> None:
    """Untouched messages come back byte for byte, edited ones with every other field."""
    given = [{name: with_noise(payload[name], name, luck)} for payload in payloads]
    messages, _ = decode_all(copy.deepcopy(given), name)
    assert list(map(json.dumps, encode_all(messages, name))) == list(map(json.dumps, given))
    for message in messages:
        assert len(list(codec_of(name).places(message.raw or {}))) == len(message.parts)
        assert_edited(message, random_changes(message, luck), name)


@pytest.mark.parametrize("name", sorted(INSTALLED))
@each_nth_session(20, 2)
def test_edited_session_loads_as_objects_of_the_framework(path: File, name: str) -> None:
    luck = random.Random(path.name)
    for message in decode_all(dumps_of(history(path)[:400], name), name)[0]:
        dump = sent(change(message, random_changes(message, luck)), name)
        if dump is not None:
            assert_loads(name, dump)
