"""Properties of every codec on real sessions, in every format."""

from __future__ import annotations

import copy
from pathlib import Path

from codec_facts import all_parts, bare, facts, read

from holdfast.messages import (
    FORMATS,
    Message,
    Opaque,
    ToolResult,
    ai_sdk,
    anthropic,
    encode_all,
    gemini,
    openai_chat,
    openai_responses,
)
from holdfast.messages.payload import make_legal_id
from real_sessions import each_nth_session, each_session, format_of, history, transcript

OPAQUE = {module.name: module.OPAQUE for module in (openai_chat, openai_responses, anthropic, gemini, ai_sdk)}
C, R, A, G, S = FORMATS
WALK = (C, R, C, A, C, G, R, A, R, G, A, G, C, S, R, S, A, S, G, S, C)
"""Every format, and from each to every other."""


def ids_are_legal(messages: list[Message]) -> bool:
    """Whether every format accepts every call id unchanged."""
    return all(make_legal_id(call.id, 40, strict=True) == call.id for message in messages for call in message.calls)


@each_session
def test_codec_real_session_round_trips_exactly(path: Path) -> None:
    payloads = transcript(path).messages
    before = copy.deepcopy(payloads)
    assert encode_all(history(path), format_of(path)) == before
    assert payloads == before


@each_nth_session(20, 2)
def test_codec_real_session_between_any_formats_has_same_content(path: Path) -> None:
    """Converts through every pair of formats in sequence; anything lost could not come back."""
    messages = history(path)
    ids = ids_are_legal(messages)
    expected = facts(messages, ids=ids)
    for format in WALK:
        payloads = encode_all(bare(messages), format)
        messages = read(payloads, format)
        assert facts(messages, ids=ids) == expected, format
        assert encode_all(messages, format) == payloads, format
        assert all_parts(read(encode_all(bare(messages), format), format)) == all_parts(messages), format


@each_session
def test_codec_real_session_has_only_listed_opaque_kinds(path: Path) -> None:
    parts = [part for message in history(path) for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.content]
    assert {part.kind for part in parts if isinstance(part, Opaque)} <= OPAQUE[format_of(path)]
