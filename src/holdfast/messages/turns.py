"""Turns: a turn of a conversation starts at a user's own words or media.

Programs put messages on the user's side too: approvals, tool changes, notes and summaries. None of them is a turn.
"""

from __future__ import annotations

from .frame import is_note
from .parts import Message, Opaque

_BY_PROGRAMS = frozenset(
    (
        "additional_tools",
        "browser_state",
        "compaction_trigger",
        "configuration_update",
        "mcp_approval_response",
        "tool-approval-response",
        "tool_addition",
        "tool_removal",
    )
)
"""Items and blocks on the user's side that a program makes."""


def is_from_user(message: Message) -> bool:
    """Whether this is a message on the user's side, and not only a program's answer to the provider."""
    if message.role != "user":
        return False
    for part in message.parts:
        if type(part) is not Opaque or part.kind not in _BY_PROGRAMS:
            return True
    return not message.parts


def starts_turn(message: Message) -> bool:
    """Whether a turn starts at this message: it holds the user's own words or media, and is no note or summary."""
    return is_from_user(message) and not is_note(message)
