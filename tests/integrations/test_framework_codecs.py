"""Histories through the real classes of each framework: unchanged messages come back equal, and none loses content."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import check, compact, repair
from holdfast.messages import FORMATS, Message, decode_all, encode_all
from holdfast.messages.frameworks import FRAMEWORKS, dump_objects, load_object
from messages.codec_facts import Facts, all_parts, bare, facts, read
from real_sessions import each_nth_session, history

INSTALLED = [name for name, framework in FRAMEWORKS.items() if find_spec(framework.package)]
_PLACEHOLDER = re.compile(r"\[(?:image|audio|video|file)(?:: .*)?\]")
each_framework = pytest.mark.parametrize("name", INSTALLED)


def objects_of(messages: list[Message], name: str) -> list[object]:
    return [load_object(payload) for payload in encode_all(bare(messages), name)]


def plain(objects: Sequence[object]) -> list[object]:
    """Messages of the Agent Framework are equal only to themselves, so their fields are compared."""
    return [item.to_dict() if hasattr(item, "to_dict") else item for item in objects]


def content_of(messages: list[Message]) -> Facts:
    """Texts, calls and results; without the text that stands for media where a framework has no such media."""
    found = facts(messages)
    texts = [text for text in found.texts if not _PLACEHOLDER.fullmatch(text[1])]
    results = [(id, _PLACEHOLDER.sub("", text).strip(), failed) for id, text, failed in found.results]
    return found._replace(texts=texts, results=results)


@each_framework
@given(data=st.data())
def test_random_history_through_real_classes_has_same_content(name: str, data: st.DataObject) -> None:
    """`HYPOTHESIS_PROFILE=quick EXAMPLES=500` tries that many."""
    format = data.draw(st.sampled_from(FORMATS))
    payloads = data.draw(histories.wire(format, broken=data.draw(st.booleans())))
    messages = read(payloads, format)
    objects = objects_of(messages, name)
    again, detected = decode_all(copy.deepcopy(objects), name if not objects else None)
    assert detected == name
    assert content_of(again) == content_of(messages)
    assert plain([load_object(payload) for payload in encode_all(again, name)]) == plain(objects)
    assert all_parts(decode_all(objects_of(again, name), name)[0]) == all_parts(again)


@each_framework
@given(data=st.data())
@settings(max_examples=8)
def test_repaired_history_is_valid_and_a_valid_one_stays_equal(name: str, data: st.DataObject) -> None:
    messages = read(data.draw(histories.wire("openai-chat", broken=True)), "openai-chat")
    repaired = repair(objects_of(messages, name), name)
    assert check(repaired, name) == []
    assert plain(repair(repaired, name)) == plain(repaired)


@pytest.mark.sampled(10)
@each_framework
@each_nth_session(20, 1)
def test_real_session_through_real_classes_has_same_content(path: Path, name: str) -> None:
    messages = history(path)
    objects = objects_of(messages, name)
    payloads, originals = dump_objects(objects)
    again = decode_all(payloads, name)[0]
    assert content_of(again) == content_of(messages)
    assert originals is not None
    assert plain(originals.restore(encode_all(again, name))) == plain(objects)
    assert plain([load_object(payload) for payload in payloads]) == plain(objects)


@pytest.mark.sampled(8)
@each_framework
@each_nth_session(50, 3)
def test_compacted_session_is_valid_and_keeps_the_callers_objects(path: Path, name: str) -> None:
    objects = objects_of(history(path), name)
    result = compact(objects, budget=8_000)
    assert result.messages and check(result.messages, name) == []
    assert {type(item) for item in result.messages} <= {type(item) for item in objects}
    wide = compact(objects, budget=100_000_000)
    if check(objects, name) == []:
        assert plain(wide.messages) == plain(objects)
        assert {id(item) for item in wide.messages} <= {id(item) for item in objects}
