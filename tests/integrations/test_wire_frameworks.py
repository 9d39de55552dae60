"""Histories through the classes of frameworks whose messages are those of a provider: nothing is lost either way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.agents import is_installed

import histories
from holdfast import check, compact, repair
from holdfast.messages import Json, Message, decode_all, encode_all
from messages.codec_facts import all_parts, bare, facts, read
from real_sessions import each_nth_session, history


class WireFramework(NamedTuple):
    """A framework, the format of its messages, and the way of payloads through its own classes."""

    package: str
    format: str
    objects: Callable[[list[Json]], Sequence[Any]]
    """Returns the framework's messages, as it hands them to the integration."""
    load: Callable[[Json], Any] | None = None
    """Returns the framework's message of a payload, where the framework does not take payloads."""


def _agents_items(payloads: list[Json]) -> Sequence[Any]:
    from agents.items import ItemHelpers

    return ItemHelpers.input_to_new_input_list(payloads)  # type: ignore[arg-type]


def _litellm_messages(payloads: list[Json]) -> Sequence[Any]:
    """Replies are objects of LiteLLM, everything else dicts of the caller."""
    import litellm

    return [litellm.Message(**one) if _is_reply(one) else one for one in payloads]


def _is_reply(payload: Json) -> bool:
    return payload.get("role") == "assistant" and not isinstance(payload.get("content"), list)


def _adk_contents(payloads: list[Json]) -> Sequence[Any]:
    """Contents as ADK stores them: in an event, as JSON."""
    from google.adk.events.event import Event
    from google.genai import types

    contents = [types.Content.model_validate(payload) for payload in payloads]
    stored = [Event(author="clerk", content=content).model_dump_json() for content in contents]
    return [Event.model_validate_json(text).content for text in stored]


def _adk_content(payload: Json) -> Any:
    from holdfast.integrations.google_adk import as_content

    return as_content(payload)


def _crewai_messages(payloads: list[Json]) -> Sequence[Any]:
    return [_crewai_message().validate_python(payload) for payload in payloads]


@cache
def _crewai_message() -> Any:
    from crewai.utilities.types import LLMMessage
    from pydantic import TypeAdapter

    return TypeAdapter(LLMMessage)


FRAMEWORKS = {
    "openai_agents": WireFramework("agents", "openai-responses", _agents_items),
    "litellm": WireFramework("litellm", "openai-chat", _litellm_messages),
    "google_adk": WireFramework("google.adk", "gemini", _adk_contents, _adk_content),
    "crewai": WireFramework("crewai", "openai-chat", _crewai_messages),
}
each_framework = pytest.mark.parametrize(
    "name", [name for name, one in FRAMEWORKS.items() if is_installed(one.package)]
)


def through_classes(messages: list[Message], name: str) -> tuple[list[Message], Sequence[Any]]:
    """Returns the messages after the way through the framework's classes, and what the integration gets of them."""
    framework = FRAMEWORKS[name]
    given = framework.objects(encode_all(messages, framework.format))
    return decode_all(given, framework.format)[0], given


def assert_same_content(messages: list[Message], name: str) -> None:
    format = FRAMEWORKS[name].format
    expected = read(encode_all(bare(messages), format), format)
    again, given = through_classes(bare(messages), name)
    assert facts(again) == facts(expected)
    assert encode_all(read(encode_all(again, format), format), format) == encode_all(again, format)
    if load := FRAMEWORKS[name].load:
        assert [load(payload) for payload in encode_all(again, format)] == given
    assert all_parts(through_classes(again, name)[0]) == all_parts(again)


@each_framework
@given(data=st.data())
def test_random_history_through_real_classes_has_same_content(name: str, data: st.DataObject) -> None:
    """`HYPOTHESIS_PROFILE=quick EXAMPLES=500` tries that many."""
    format = FRAMEWORKS[name].format
    assert_same_content(read(data.draw(histories.wire(format, broken=data.draw(st.booleans()))), format), name)


@each_framework
@each_nth_session(20, 1)
def test_real_session_through_real_classes_has_same_content(path: Path, name: str) -> None:
    assert_same_content(history(path), name)


@each_framework
@each_nth_session(50, 3)
def test_compacted_session_is_valid_and_loads_into_the_classes(path: Path, name: str) -> None:
    format = FRAMEWORKS[name].format
    _, given = through_classes(bare(history(path)), name)
    result = compact(given, budget=8_000, format=format)
    assert result.messages and check(result.messages, format) == []
    sent, _ = through_classes(read(list(result.messages), format), name)
    assert check(sent, format) == []
    assert repair(list(result.messages), format) == list(result.messages)
