"""H6: right before each of the model's messages, a request extends the one before it, byte for byte."""

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
from holdfast.events import Event, Kind
from holdfast.messages import COMMON, FORMATS, Message, decode_all, encode_all
from holdfast.tokens import CharsPerPiece
from holdfast.view import View
from real_sessions import each_session, history

each_format = pytest.mark.parametrize("format", FORMATS)


def lines(messages: Sequence[Message], format: str) -> list[str]:
    return [json.dumps(payload) for payload in encode_all(messages, format)]


def replies(messages: Sequence[Message]) -> list[int]:
    """Where the model began to speak: what stood before it there was a request."""
    spoke = [message.role == "assistant" for message in messages]
    return [place for place, speaks in enumerate(spoke) if speaks and not (place and spoke[place - 1])]


def events(payloads: Wire, format: str) -> Iterator[Event]:
    for seq, payload in enumerate(payloads, 1):
        yield Event(f"e{seq}", Kind.MESSAGE, "", {"message": payload, "format": format}, seq=seq)


def requests(payloads: Wire, format: str, every: int = 1) -> Iterator[list[Message]]:
    """The contexts that a view shows right before each of the model's messages.

    While a call waits for its result, a context is no request yet: no provider would take it. And a reply
    of which nothing can be shown is none: a system message that waits for one is then moved (see `arrange`).
    """
    view = View(CharsPerPiece(), format=format)
    spoken = 0
    for event, message in zip(events(payloads, format), read(payloads, format), strict=True):
        spoken += message.role == "assistant"
        asked = message.role == "assistant" and not view.waiting and spoken % every == 0
        request = view.shown() if asked else None
        view.append(event)
        if request is not None and view.messages and view.ids[-1] == event.id:
            yield request


def draw(data: Any, format: str) -> Wire:
    """Dangling calls, late and repeated results, the model speaking twice: all that broken histories have."""
    payloads: Wire = data.draw(histories.wire(format, broken=data.draw(st.booleans())))
    return payloads


@each_format
@given(data=st.data(), rendered=st.booleans())
@settings(max_examples=40)
def test_a_codec_only_ever_adds(format: str, data: Any, rendered: bool) -> None:
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
def test_a_view_only_ever_adds(format: str, data: Any, other: str) -> None:
    """Also where the history came from another provider."""
    payloads = encode_all(read(draw(data, other), other), format)
    before: list[str] = []
    for request in requests(payloads, format):
        after = lines(request, format)
        assert after[: len(before)] == before
        before = after


@each_format
@given(data=st.data())
@settings(max_examples=40)
def test_a_view_only_ever_adds_while_it_learns_the_format(format: str, data: Any) -> None:
    """Plain text says nothing of its format; the first payload that does must not change what was sent."""
    payloads: Wire = data.draw(histories.wire(format))
    view = View(CharsPerPiece())
    before: list[str] = []
    for seq, payload in enumerate(payloads, 1):
        [message], found = decode_all([payload])
        if message.role == "assistant" and not view.waiting:
            after = lines(view.shown(), view.format)
            assert after[: len(before)] == before
            before = after
        body = {"message": payload} if found == COMMON else {"message": payload, "format": found}
        view.append(Event(f"e{seq}", Kind.MESSAGE, "", body, seq=seq))


@each_format
@each_session
def test_a_codec_only_ever_adds_to_a_session(path: Path, format: str) -> None:
    """Every window between two replies is encoded by itself, and a few whole prefixes to prove the rule."""
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


@each_format
@each_session
def test_a_view_only_ever_adds_to_a_session(path: Path, format: str) -> None:
    """Every third request, so that a whole folder of sessions can be replayed."""
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
