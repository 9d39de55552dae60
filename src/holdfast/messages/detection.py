"""Detection of the wire format, by fields and values that only one format has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import UnknownFormat
from . import anthropic, gemini, openai_chat, openai_responses
from .frameworks import CONVERSE, FRAMEWORKS, framework_in, has_converse_blocks
from .parts import Json

CHAT, RESPONSES, ANTHROPIC, GEMINI = openai_chat.name, openai_responses.name, anthropic.name, gemini.name
FORMATS = (CHAT, RESPONSES, ANTHROPIC, GEMINI)
"""Names of the supported wire formats."""
COMMON = "common"
"""Plain role-and-text messages, which are the same in several formats."""
PLAIN = frozenset((CHAT, RESPONSES, ANTHROPIC))
"""Formats in which a plain text message looks the same."""
ALL = frozenset((*FORMATS, *FRAMEWORKS))
_NONE: frozenset[str] = frozenset()
_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI = (frozenset((name,)) for name in FORMATS)
_OPENAI = _CHAT | _RESPONSES
_FRAMEWORKS: dict[str | None, frozenset[str]] = {name: frozenset((name,)) for name in FRAMEWORKS}
_PLAIN_OR_CONVERSE = PLAIN | {CONVERSE}
_CHAT_FIELDS = frozenset(("tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning"))
_FORMATS_BY_PART: dict[str, frozenset[str]] = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), _RESPONSES),
    **dict.fromkeys(("image_url", "file"), _CHAT),
    **dict.fromkeys(("refusal", "input_audio"), _OPENAI),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image"), _ANTHROPIC),
    **dict.fromkeys(anthropic.OPAQUE, _ANTHROPIC),
    "text": _CHAT | _ANTHROPIC,
}
"""Formats that have this type of content part."""


def detect_format(payloads: Iterable[Json]) -> str:
    """Returns the format of these payloads; `common` if they are plain text and fit several."""
    return narrow_formats(enumerate(payloads), ALL)


def narrow_formats(payloads: Iterable[tuple[int, Json]], possible: frozenset[str]) -> str:
    """Returns the format of these payloads among those still possible; raises UnknownFormat if none fits."""
    for index, payload in payloads:
        fits = formats_of(payload)
        if fits is possible:
            continue
        if not fits and "content" in payload and "role" in payload and payload["role"] not in [*openai_chat.ROLES]:
            roles = ", ".join(openai_chat.ROLES)
            raise UnknownFormat(f"Message {index} has the role {payload['role']!r}: use one of {roles}.")
        if not fits:
            raise UnknownFormat(
                f"Message {index} is in no known format (keys: {', '.join(map(str, payload)) or 'none'}): "
                f"pass format=, one of {', '.join(FORMATS)}."
            )
        if not possible & fits:
            raise UnknownFormat(
                f"Message {index} looks like {_either(fits)}, but others like {_either(possible)}: "
                f"pass messages of one format at a time."
            )
        possible = fits if fits <= possible else possible & fits
    return next(iter(possible)) if len(possible) == 1 else COMMON


def _either(formats: frozenset[str]) -> str:
    return " or ".join(sorted(formats - FRAMEWORKS.keys() or formats))


def formats_of(payload: Json) -> frozenset[str]:
    """Returns all formats in which this payload could be a message."""
    role = payload.get("role")
    if "type" in payload:
        return _formats_of_item(payload)
    if role == "tool" or (role == "assistant" and "tool_calls" in payload):
        return _CHAT
    if "parts" in payload and "content" not in payload:
        return _GEMINI if role is None or str(role) in gemini.ROLES else _NONE
    if not isinstance(role, str) or role not in openai_chat.ROLES:
        return _RESPONSES if payload.keys() == {"id"} else _FRAMEWORKS.get(framework_in(payload), _NONE)
    if role == "tool" or role == "function" or not _CHAT_FIELDS.isdisjoint(payload):
        return _CHAT
    fits = _formats_of_content(payload.get("content"))
    return fits - _ANTHROPIC if role == "developer" else fits


def _formats_of_item(payload: Json) -> frozenset[str]:
    kind = payload["type"]
    if kind == "message":
        return _ANTHROPIC if "stop_reason" in payload else _RESPONSES
    known = isinstance(kind, str) and (
        kind == "reasoning" or kind.endswith(("_call", "_output")) or kind in openai_responses.OPAQUE
    )
    return _RESPONSES if known else _NONE


def _formats_of_content(content: Any) -> frozenset[str]:
    if isinstance(content, str):
        return PLAIN
    if not isinstance(content, list):
        return _NONE
    if not content:
        return _PLAIN_OR_CONVERSE
    if has_converse_blocks(content):
        return _FRAMEWORKS[CONVERSE]
    fits = PLAIN
    for part in content:
        if isinstance(part, dict):
            has = _FORMATS_BY_PART.get(str(part.get("type")), PLAIN)
        else:
            has = _CHAT if isinstance(part, str) else _NONE
        if has is not fits:
            fits = has if has <= fits else fits & has
    return fits
