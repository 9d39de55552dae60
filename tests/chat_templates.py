"""Chat templates that refuse a conversation whose roles do not alternate, as their authors wrote the rule.

Mistral's leaves calls and results out and looks at the rest; its API refuses the user's words right after a result.
Gemma's looks at every message; it has no results.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

Messages = list[dict[str, Any]]
MISTRAL = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
GEMMA = "Conversation roles must alternate user/assistant/user/assistant/..."


def without_system(messages: Messages) -> Messages:
    return messages[1:] if messages and messages[0]["role"] == "system" else messages


def mistral(messages: Messages) -> str:
    """Returns the error of the template; empty if it accepts the messages."""
    spoken = [one for one in without_system(messages) if one["role"] != "tool" and not one.get("tool_calls")]
    if any((one["role"] == "user") != (place % 2 == 0) for place, one in enumerate(spoken)):
        return MISTRAL
    broken = (after["role"] for before, after in pairwise(messages) if _breaks(before, after))
    return next((f"Unexpected role '{role}' after role 'tool'" for role in broken), "")


def _breaks(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return before["role"] == "tool" and after["role"] not in ("tool", "assistant")


def gemma(messages: Messages) -> str:
    """Returns the error of the template; empty if it accepts the messages, which have no tools."""
    roles = enumerate(one["role"] for one in without_system(messages))
    return GEMMA if any((role == "user") != (place % 2 == 0) for place, role in roles) else ""
