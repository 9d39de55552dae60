"""What may stand where: the questions that checking and arranging both ask of a message."""

from __future__ import annotations

from .parts import Message, Opaque, ToolCall
from .profiles import Profile


def opens(message: Message) -> bool:
    """May this message be the first where a format wants the user's?"""
    return message.role == "user" or (message.role == "assistant" and is_summary(message))


def continues(message: Message, previous: Message, profile: Profile) -> bool:
    """Does this format want the user's turn put between these two?"""
    return profile.calls_follow_user and previous.role == message.role == "assistant" and _calls(message)


def _calls(message: Message) -> bool:
    return any(type(part) is ToolCall for part in message.parts)


def follows_user(previous: Message) -> bool:
    """May a system message stand behind this one?"""
    return previous.role in ("user", "tool")


def needs_reasoning(message: Message) -> bool:
    """May reasoning stand right before this message?"""
    return message.role == "assistant" and not is_summary(message)


def is_summary(message: Message) -> bool:
    """Is this a vendor's own summary of what came before it?"""
    return bool(message.parts) and isinstance(first := message.parts[0], Opaque) and first.kind in _SUMMARIES


_SUMMARIES = frozenset(("compaction", "compaction_summary", "context_compaction"))


def item_id(message: Message) -> str | None:
    """The id that OpenAI gave an item."""
    name = None if message.raw is None else message.raw.get("id")
    return name if isinstance(name, str) else None
