"""A reply that ran into its limit: what of it can be kept (G3)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..messages import Message, ToolCall


def without_broken_calls(messages: Iterable[Message]) -> list[Message]:
    """A reply without the calls whose JSON breaks off: nobody can run them, and no provider takes them back."""
    kept = []
    for message in messages:
        parts = tuple(part for part in message.parts if not isinstance(part, ToolCall) or _is_whole(part))
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(message.with_parts(parts))
    return kept


def _is_whole(call: ToolCall) -> bool:
    if isinstance(call.arguments, dict):
        return True
    try:
        return isinstance(msgspec.json.decode(call.arguments or "{}"), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
