"""Which wire format is this? Told by what only one of them writes; never by guessing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import UnknownFormat
from . import anthropic, gemini, openai_chat, openai_responses
from .parts import Json

CHAT, RESPONSES, ANTHROPIC, GEMINI = openai_chat.name, openai_responses.name, anthropic.name, gemini.name
FORMATS = (CHAT, RESPONSES, ANTHROPIC, GEMINI)
COMMON = "common"
"""Plain role-and-text messages that several formats write alike."""
PLAIN = frozenset((CHAT, RESPONSES, ANTHROPIC))
"""The formats in which a lone text looks the same."""
ALL = frozenset(FORMATS)

_NONE: frozenset[str] = frozenset()
_CHAT_FIELDS = ("tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning")
_WRITTEN_BY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), frozenset((RESPONSES,))),
    **dict.fromkeys(("image_url", "file"), frozenset((CHAT,))),
    **dict.fromkeys(("refusal", "input_audio"), frozenset((CHAT, RESPONSES))),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image"), frozenset((ANTHROPIC,))),
    **dict.fromkeys(anthropic.OPAQUE, frozenset((ANTHROPIC,))),
    "text": frozenset((CHAT, ANTHROPIC)),
}
"""The formats that have a kind of content part."""


def detect(payloads: Iterable[Json]) -> str:
    """The one format that fits all of these payloads; `common` if plain text fits several."""
    return narrow(enumerate(payloads), ALL)


def narrow(payloads: Iterable[tuple[int, Json]], possible: frozenset[str]) -> str:
    for index, payload in payloads:
        fits = formats_of(payload)
        if not fits:
            raise UnknownFormat(
                f"Message {index} is in no format known here (keys: {', '.join(map(str, payload)) or 'none'}): "
                f"name it with format=, one of {', '.join(FORMATS)}."
            )
        if not possible & fits:
            raise UnknownFormat(
                f"Message {index} looks like {_either(fits)}, but others like {_either(possible)}: "
                f"hand in one format at a time."
            )
        possible &= fits
    return next(iter(possible)) if len(possible) == 1 else COMMON


def _either(formats: frozenset[str]) -> str:
    return " or ".join(sorted(formats))


def formats_of(payload: Json) -> frozenset[str]:
    """All formats in which this payload could be a message."""
    role, kind = payload.get("role"), payload.get("type")
    if "parts" in payload and "content" not in payload:
        return frozenset((GEMINI,)) if role is None or str(role) in gemini.ROLES else _NONE
    if isinstance(kind, str):
        if kind == "message" and "stop_reason" in payload:
            return frozenset((ANTHROPIC,))
        return frozenset((RESPONSES,)) if _is_item(kind) else _NONE
    if payload.keys() == {"id"}:
        return frozenset((RESPONSES,))
    if not isinstance(role, str) or role not in openai_chat.ROLES:
        return _NONE
    if role in ("tool", "function") or any(key in payload for key in _CHAT_FIELDS):
        return frozenset((CHAT,))
    spoken = PLAIN - {ANTHROPIC} if role == "developer" else PLAIN
    return spoken & _formats_of_content(payload.get("content"))


def _is_item(kind: str) -> bool:
    return kind in ("message", "reasoning") or kind in openai_responses.OPAQUE or kind.endswith(("_call", "_output"))


def _formats_of_content(content: Any) -> frozenset[str]:
    if isinstance(content, str):
        return PLAIN
    fits = PLAIN if isinstance(content, list) else _NONE
    for part in content if fits else ():
        if isinstance(part, dict):
            fits &= _WRITTEN_BY.get(str(part.get("type")), PLAIN)
        else:
            fits &= frozenset((CHAT,)) if isinstance(part, str) else _NONE
    return fits
