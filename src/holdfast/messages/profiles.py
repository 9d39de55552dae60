"""What each wire format insists on, as data; and what of a message it would refuse."""

from __future__ import annotations

import msgspec

from .detection import COMMON
from .formats import format_name
from .parts import Message, Part, Reasoning, Text


class Profile(msgspec.Struct, frozen=True):
    name: str
    user_first: bool = False
    """The first message must be the user's."""
    refuses_blank: bool = False
    """A blank text is refused."""
    merges_roles: bool = False
    """Neighbours of one role count as one message."""
    items: bool = False
    """One item a message: a batch of calls is a run of assistant items."""
    unique_calls: bool = False
    """A call id may be used once in a whole conversation."""
    reasoning_leads: bool = False
    """Reasoning stands before something that the assistant said or called, never last."""
    signed_reasoning: bool = False
    """Reasoning needs a signature, which is bound to all that stands before it."""
    places_system: bool = False
    """A system message among the others stands right behind the user's and before the assistant's, or last."""
    one_answer: bool = False
    """The results of one batch of calls stand in one message."""
    calls_follow_user: bool = False
    """A function call comes right after the user or a function's answer, never after the model."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("openai-chat"),
        Profile("openai-responses", items=True, reasoning_leads=True, unique_calls=True),
        Profile(
            "anthropic",
            user_first=True,
            refuses_blank=True,
            merges_roles=True,
            unique_calls=True,
            reasoning_leads=True,
            signed_reasoning=True,
            places_system=True,
        ),
        Profile("gemini", user_first=True, one_answer=True, calls_follow_user=True),
    )
}


def profile_for(format: str) -> Profile:
    """The profile of a format; plain text that fits several is held to OpenAI Chat's."""
    return PROFILES["openai-chat" if format == COMMON else format_name(format)]


def presentable(message: Message, profile: Profile) -> Message | None:
    """Without the parts that this format refuses; None if nothing is left to show."""
    parts = tuple(part for part in message.parts if not _refused(part, profile))
    if not parts and says_nothing(message, profile):
        return None
    return message if len(parts) == len(message.parts) else message.with_parts(parts)


def says_nothing(message: Message, profile: Profile) -> bool:
    """Would a message without parts be refused? An empty string is content for some, an empty list for none."""
    if profile.refuses_blank or message.role == "tool":
        return True
    return message.raw is None or not isinstance(message.raw.get("content"), str)


def _refused(part: Part, profile: Profile) -> bool:
    if type(part) is Text:
        return profile.refuses_blank and not part.text.strip()
    if type(part) is Reasoning:
        return profile.signed_reasoning and not (part.signature or part.encrypted)
    return False
