"""What holds for every codec on random histories holds on real sessions too, in every format."""

from __future__ import annotations

import copy
from pathlib import Path

from codec_facts import all_parts, bare, facts, read

from holdfast.messages import (
    FORMATS,
    Message,
    Opaque,
    ToolResult,
    anthropic,
    encode_all,
    gemini,
    openai_chat,
    openai_responses,
)
from holdfast.messages.payload import fitting_id
from real_sessions import each_session, format_of, history, transcript

OPAQUE = {module.name: module.OPAQUE for module in (openai_chat, openai_responses, anthropic, gemini)}
C, R, A, G = FORMATS
WALK = (C, R, C, A, C, G, R, A, R, G, A, G, C)
"""Every format, and from each to every other."""


def ids_are_legal(messages: list[Message]) -> bool:
    """Would every format take every call's id as it is?"""
    return all(fitting_id(call.id, 40, strict=True) == call.id for message in messages for call in message.calls)


@each_session
def test_the_session_goes_out_exactly_as_it_came(path: Path) -> None:
    payloads = transcript(path).messages
    before = copy.deepcopy(payloads)
    assert encode_all(history(path), format_of(path)) == before
    assert payloads == before


@each_session
def test_it_says_the_same_from_any_format_to_any_other(path: Path) -> None:
    """Through every pair of formats in one walk; nothing that is lost on the way could come back."""
    messages = history(path)
    ids = ids_are_legal(messages)
    said = facts(messages, ids=ids)
    for format in WALK:
        payloads = encode_all(bare(messages), format)
        messages = read(payloads, format)
        assert facts(messages, ids=ids) == said, format
        assert encode_all(messages, format) == payloads, format
        assert all_parts(read(encode_all(bare(messages), format), format)) == all_parts(messages), format


@each_session
def test_only_listed_kinds_are_opaque(path: Path) -> None:
    parts = [part for message in history(path) for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.content]
    assert {part.kind for part in parts if isinstance(part, Opaque)} <= OPAQUE[format_of(path)]
