"""What each wire format insists on, as data; and the two mendings that need nothing but that."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .formats import COMMON, format_name
from .frame import CONTINUE, OPENING
from .parts import Message, Opaque, Part, Reasoning, Text, ToolCall


class Profile(msgspec.Struct, frozen=True):
    name: str
    user_first: bool = False
    """The first message must be the user's."""
    refuses_empty: bool = False
    """A message without content, or a blank text, is refused."""
    merges_roles: bool = False
    """Neighbours of one role count as one message."""
    items: bool = False
    """One item a message: a batch of calls is a run of assistant items."""
    unique_calls: bool = False
    """A call id may be used once in a whole conversation."""
    signed_reasoning: bool = False
    """Reasoning needs a signature, which is bound to all that stands before it."""
    calls_follow_user: bool = False
    """A function call comes right after the user or a function's answer, never after the model."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("openai-chat"),
        Profile("openai-responses", items=True),
        Profile(
            "anthropic",
            user_first=True,
            refuses_empty=True,
            merges_roles=True,
            unique_calls=True,
            signed_reasoning=True,
        ),
        Profile("gemini", user_first=True, refuses_empty=True, calls_follow_user=True),
    )
}


def profile_for(format: str) -> Profile:
    """The profile of a format; plain text that fits several is held to OpenAI Chat's."""
    return PROFILES["openai-chat" if format == COMMON else format_name(format)]


def presentable(message: Message, profile: Profile) -> Message | None:
    """Without the parts that this format refuses; None if nothing is left to show."""
    parts = tuple(part for part in message.parts if not _refused(part, profile))
    if not parts and (profile.refuses_empty or message.role in ("assistant", "tool")):
        return None
    return message if len(parts) == len(message.parts) else message.with_parts(parts)


def _refused(part: Part, profile: Profile) -> bool:
    if type(part) is Text:
        return profile.refuses_empty and not part.text.strip()
    if type(part) is Reasoning:
        return profile.signed_reasoning and not (part.signature or part.encrypted)
    return False


def arrange(messages: Iterable[Message], profile: Profile) -> list[Message]:
    """Put in the user's messages that a format insists on, where history has none to give.

    What stands before a message never depends on what comes after it: the prompt cache holds.
    """
    if not (profile.user_first or profile.calls_follow_user):
        return list(messages)
    out: list[Message] = []
    started = False
    for message in messages:
        if not started and message.role != "system":
            started = True
            if profile.user_first and not opens(message):
                out.append(OPENING)
        if profile.calls_follow_user and out and out[-1].role == message.role == "assistant" and _calls(message):
            out.append(CONTINUE)
        out.append(message)
    if out and not started and profile.user_first:
        out.append(OPENING)
    return out


def _calls(message: Message) -> bool:
    return any(type(part) is ToolCall for part in message.parts)


def _vendor_summary(message: Message) -> bool:
    """Anthropic's own compaction block is the one assistant message that may come first."""
    return bool(message.parts) and isinstance(first := message.parts[0], Opaque) and first.kind == "compaction"


def opens(message: Message) -> bool:
    """May this message be the first where a format wants the user's?"""
    return message.role == "user" or (message.role == "assistant" and _vendor_summary(message))
