"""The notes contain only text of the history."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_helpers import page_of, section

import histories
from holdfast import compact
from holdfast.ledger import PAGE_OPENING
from holdfast.ledger.headings import ALSO, ERRORS, EXCERPTS, GROUP
from holdfast.ledger.text import unquote_structure
from holdfast.ledger.tool_calls import classify_call
from holdfast.messages import Message, Text, ToolCall, ToolResult, decode_all, encode_all, repair_messages, rules_for
from holdfast.triggers import always
from real_sessions import each_nth_session, history

_WORD = re.compile(r"[^\W\d_]{5,}")
_RUN = re.compile(r"\[[\d,]+\](?: \(ran again in \[[\d,]+\](?:, no errors)?\))?")
_OURS = frozenset(
    "notes earlier conversation messages archived full under cited numbers task later user omitted open work calls "
    "since last tool errors output verbatim files only read unless marked commands decisions findings "
    "relevant excerpts single lines whole texts also more names from there edited written failed nothing every step "
    "plan done pending attached image audio video file message below begun system again neither deleted "
    "results begin selected longer shown compaction round steps before counts reach dropped "
    "found searches opened approved items known".split()
)
"""Words of headings and fixed phrases of the page."""


def texts_of(messages: list[Message]) -> list[str]:
    """All text of the messages: content, tool calls (also as classified on one line) and results."""
    texts: list[str] = []
    for message in repair_messages(messages, rules_for("openai-chat")):
        for part in message.parts:
            if isinstance(part, Text | ToolResult):
                texts.append(part.text)
            elif isinstance(part, ToolCall):
                texts += [part.name, part.arguments_text, classify_call(part).subject, *_strings(part.arguments_dict)]
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


def check_page(page: str, sources: list[str]) -> None:
    whole = "\n".join(sources)
    for line in section(page, EXCERPTS) + section(page, ERRORS):
        names = line.removeprefix(ALSO).split(", ") if line.startswith(ALSO) else [unquote_structure(line).strip()]
        assert line.startswith(GROUP) or _RUN.fullmatch(line) or all(name in whole for name in names), line
    known = set(_WORD.findall(whole))
    invented = {word for word in _WORD.findall(page) if word not in known and word.lower() not in _OURS}
    assert not {word for word in invented if word not in whole}, invented


@each_nth_session(20, 1)
def test_page_of_real_session_contains_only_its_text(path: Path) -> None:
    messages = encode_all(history(path), "openai-chat")
    size = compact(messages, budget=10**9).tokens_before
    result = compact(messages, budget=size - 1, target=size // 6)
    check_page(page_of(list(result.messages)), texts_of(history(path)))


@given(messages=histories.wire("openai-chat"), target=st.integers(150, 3_000))
@settings(max_examples=min(100, settings().max_examples))
def test_page_of_random_history_contains_only_its_text(messages: list[dict[str, Any]], target: int) -> None:
    result = compact(messages, budget=10**6, target=target, estimator="chars/4", format="openai-chat", trigger=always)
    shown = [message for message in result.messages if str(message.get("content")).startswith(PAGE_OPENING)]
    if shown:
        check_page(page_of(shown), texts_of(decode_all(messages, "openai-chat")[0]))
