"""Whatever stands in the notes was said, done or shown in the history."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_story import page_of, section

import histories
from holdfast import always, compact
from holdfast.boundaries import repair
from holdfast.ledger import OPENING
from holdfast.ledger.deeds import deed_of
from holdfast.ledger.headings import ALSO, AT_HAND, ERRORS, GROUP
from holdfast.ledger.shortening import unquoted
from holdfast.messages import Message, Text, ToolCall, ToolResult, decode_all, encode_all, profile_for
from real_sessions import each_session, history

_WORD = re.compile(r"[^\W\d_]{5,}")
_RUN = re.compile(r"\[[\d,]+\](?: \(ran again in \[[\d,]+\]\))?")
_OURS = frozenset(
    "notes earlier conversation messages archived under numbers given here task what user said since open work last "
    "errors tool output exactly files only read unless says more commands decisions findings lines have hand single "
    "their order whole texts edited written failed nothing every step plan done pending attached image audio video "
    "file full that went not also names from there called spoke some came after message below "
    "begun system told again neither deleted".split()
)
"""Words of titles and of what the notes say of themselves."""


def texts_of(messages: list[Message]) -> list[str]:
    """Everything that was said, asked for (also as a call is told on one line) or shown."""
    texts: list[str] = []
    for message in repair(messages, profile_for("openai-chat")):
        for part in message.parts:
            if isinstance(part, Text | ToolResult):
                texts.append(part.text)
            elif isinstance(part, ToolCall):
                texts += [part.name, part.written, deed_of(part).subject, *_strings(part.object)]
            else:
                texts += [str(value) for value in (getattr(part, "name", ""), getattr(part, "url", "")) if value]
                texts += [str(getattr(part, "mime", "") or ""), str(getattr(part, "file_id", "") or "")]
    return texts


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (str(key), *_strings(item))]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [str(value)]


def check_page(page: str, told: list[str]) -> None:
    whole = "\n".join(told)
    for line in section(page, AT_HAND) + section(page, ERRORS):
        names = line.removeprefix(ALSO).split(", ") if line.startswith(ALSO) else [unquoted(line).strip()]
        assert line.startswith(GROUP) or _RUN.fullmatch(line) or all(name in whole for name in names), line
    known = set(_WORD.findall(whole))
    invented = {word for word in _WORD.findall(page) if word not in known and word.lower() not in _OURS}
    assert not {word for word in invented if word not in whole}, invented


@each_session
def test_notes_on_a_real_session_hold_only_what_it_says(path: Path) -> None:
    messages = encode_all(history(path), "openai-chat")
    size = compact(messages, budget=10**9).tokens_before
    result = compact(messages, budget=size - 1, target=size // 6)
    check_page(page_of(list(result.messages)), texts_of(history(path)))


@given(messages=histories.wire("openai-chat"), target=st.integers(150, 3_000))
@settings(max_examples=min(100, settings().max_examples))
def test_notes_on_any_history_hold_only_what_it_says(messages: list[dict[str, Any]], target: int) -> None:
    result = compact(messages, budget=10**6, target=target, estimator="chars/4", format="openai-chat", trigger=always)
    shown = [message for message in result.messages if str(message.get("content")).startswith(OPENING)]
    if shown:
        check_page(page_of(shown), texts_of(decode_all(messages, "openai-chat")[0]))
