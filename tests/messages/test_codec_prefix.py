"""H6: each request extends the previous one byte for byte, compared right before each model message."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from codec_facts import Wire, bare, read
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.context import View
from holdfast.context.events import Event, EventKind
from holdfast.messages import COMMON, FORMATS, Message, decode_all, encode_all
from holdfast.tokens import CharsPerPiece
from real_sessions import each_nth_session, history

each_format = pytest.mark.parametrize("format", FORMATS)


def lines(messages: Sequence[Message], format: str) -> list[str]:
    return [json.dumps(payload) for payload in encode_all(messages, format)]


def replies(messages: Sequence[Message]) -> list[int]:
    """Indices at which the model replied: the messages before each were a request."""
    spoke = [message.role == "assistant" for message in messages]
    return [place for place, speaks in enumerate(spoke) if speaks and not (place and spoke[place - 1])]


def events(payloads: Wire, format: str) -> Iterator[Event]:
    for seq, payload in enumerate(payloads, 1):
        yield Event(f"e{seq}", EventKind.MESSAGE, "", {"message": payload, "format": format}, seq=seq)


def requests(payloads: Wire, format: str, every: int = 1) -> Iterator[list[Message]]:
    """Returns the contexts of a view right before each model message.

    With a pending call, a context is not yet a request: no provider would accept it. A reply of which nothing
    can be shown does not count: a system message before it may still move (see `normalize_for_wire`).
    """
    view = View(CharsPerPiece(), format=format)
    spoken = 0
    for event, message in zip(events(payloads, format), read(payloads, format), strict=True):
        spoken += message.role == "assistant"
        asked = message.role == "assistant" and not view.pending_calls and spoken % every == 0
        request = view.context_messages() if asked else None
        view.append(event)
        if request is not None and view.messages and view.ids[-1] == event.id:
            yield request


def draw(data: Any, format: str) -> Wire:
    """Draws a broken history: pending calls, late and repeated results, two model messages in a row."""
    payloads: Wire = data.draw(histories.wire(format, broken=data.draw(st.booleans())))
    return payloads


@each_format
@given(data=st.data(), rendered=st.booleans())
@settings(max_examples=40)
def test_codec_growing_history_extends_encoded_prefix(format: str, data: Any, rendered: bool) -> None:
    messages = read(draw(data, format), format)
    messages = bare(messages) if rendered else messages
    before: list[str] = []
    for place in [place for place, message in enumerate(messages) if message.role == "assistant"]:
        after = lines(messages[:place], format)
        assert after[: len(before)] == before
        before = after


@each_format
@given(data=st.data(), other=st.sampled_from(FORMATS))
@settings(max_examples=40)
def test_view_growing_log_extends_encoded_prefix(format: str, data: Any, other: str) -> None:
    """Also for a history from another provider."""
    payloads = encode_all(read(draw(data, other), other), format)
    before: list[str] = []
    for request in requests(payloads, format):
        after = lines(request, format)
        assert after[: len(before)] == before
        before = after


@each_format
@given(data=st.data())
@settings(max_examples=40)
def test_view_prefix_is_stable_while_format_is_detected(format: str, data: Any) -> None:
    """Plain text fits several formats; the first payload that decides it must not change the earlier requests."""
    payloads: Wire = data.draw(histories.wire(format))
    view = View(CharsPerPiece())
    before: list[str] = []
    for seq, payload in enumerate(payloads, 1):
        [message], found = decode_all([payload])
        if message.role == "assistant" and not view.pending_calls:
            after = lines(view.context_messages(), view.format)
            assert after[: len(before)] == before
            before = after
        body = {"message": payload} if found == COMMON else {"message": payload, "format": found}
        view.append(Event(f"e{seq}", EventKind.MESSAGE, "", body, seq=seq))


@pytest.mark.sampled(20)
@each_format
@each_nth_session(6)
def test_codec_real_session_extends_encoded_prefix(path: Path, format: str) -> None:
    """Encodes every window between two replies separately, and a few whole prefixes."""
    messages = history(path)
    whole = lines(messages, format)
    start = sent = 0
    for place in replies(messages):
        window = lines(messages[start:place], format)
        if whole[sent : sent + len(window)] == window:
            sent += len(window)
        else:  # a late result: its call is further back
            sent = len(prefix := lines(messages[:place], format))
            assert whole[:sent] == prefix
        start = place
    for place in sample(replies(messages)):
        prefix = lines(messages[:place], format)
        assert whole[: len(prefix)] == prefix


@pytest.mark.sampled(20)
@each_format
@each_nth_session(6, 1)
def test_view_real_session_extends_encoded_prefix(path: Path, format: str) -> None:
    """Checks every third request, so that a whole folder of sessions can be replayed."""
    payloads = encode_all(history(path), format)
    before: list[Message] = []
    shown: list[list[Message]] = []
    for request in requests(payloads, format, every=3):
        assert request[: len(before)] == before
        before = request
        shown.append(request)
    whole = lines(before, format)
    for request in sample(shown):
        prefix = lines(request, format)
        assert whole[: len(prefix)] == prefix


def sample(places: list[Any]) -> list[Any]:
    return random.Random(len(places)).sample(places, min(2, len(places)))
