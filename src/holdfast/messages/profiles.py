"""What each wire format insists on, as data; and the two mendings that need nothing but that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from .detection import COMMON
from .formats import format_name, join_results
from .frame import CONTINUE, OPENING
from .parts import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult


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
    if profile.refuses_blank or message.role in ("assistant", "tool"):
        return True
    return message.raw is not None and not isinstance(message.raw.get("content"), str)


def _refused(part: Part, profile: Profile) -> bool:
    if type(part) is Text:
        return profile.refuses_blank and not part.text.strip()
    if type(part) is Reasoning:
        return profile.signed_reasoning and not (part.signature or part.encrypted)
    return False


def arrange(messages: Iterable[Message], profile: Profile) -> list[Message]:
    """Put in the user's messages that a format insists on, and everything where it wants it.

    Up to each of the assistant's messages, what comes out never depends on what comes later: the
    prompt cache holds. (The exception is a system message that something other than a reply follows.)
    """
    if not (profile.user_first or profile.reasoning_leads):
        return list(messages)
    out: list[Message] = []
    started = False
    for message in _reasoning_led(messages) if profile.reasoning_leads else messages:
        before = out[-1] if out else None
        if profile.places_system:
            if before is not None and before.role == "system" and message.role != "assistant":
                out[-1] = as_user(before)
            if message.role == "system" and not (before is not None and follows_user(before)):
                message = as_user(message)
        if before is not None and is_summary(message):
            message = _spoken_summary(message)
        if profile.one_answer and message.role == "tool" and started:
            _answer(out, message)
            continue
        if profile.merges_roles and message.role == "tool" and before is not None and _says_more(before):
            out[-1] = _results_first(before, message)
            continue
        if profile.user_first and not started and message.role != "system":
            started = True
            if not opens(message):
                out.append(OPENING)
        if out and continues(message, out[-1], profile):
            out.append(CONTINUE)
        out.append(message)
    if out and profile.user_first and not started:
        out.append(OPENING)
    return out


def _reasoning_led(messages: Iterable[Message]) -> Iterator[Message]:
    """Without reasoning that nothing of the assistant's follows."""
    held: list[Message] = []
    for message in messages:
        if held and not needs_reasoning(message):
            yield from _spoken(held)
            held = []
        if message.parts and type(message.parts[-1]) is Reasoning:
            held.append(message)
        else:
            yield from held
            yield message
            held = []
    yield from _spoken(held)


def _spoken(held: list[Message]) -> Iterator[Message]:
    """What is left of messages that end in reasoning once that is gone."""
    for message in held:
        if said := tuple(_dropped_last(message.parts)):
            yield message.with_parts(said)


def needs_reasoning(message: Message) -> bool:
    """May reasoning stand right before this message?"""
    return message.role == "assistant" and not is_summary(message)


def _dropped_last(parts: Sequence[Part]) -> Sequence[Part]:
    end = len(parts)
    while end and type(parts[end - 1]) is Reasoning:
        end -= 1
    return parts[:end]


def _answer(out: list[Message], message: Message) -> None:
    """Add results to those of the same batch, in the order of its calls."""
    if out and out[-1].role == "tool":
        message = join_results(out.pop(), message)
    places = {call.id: place for place, call in enumerate(out[-1].calls if out else ())}
    order = [places.get(result.call_id, len(places)) for result in message.results]
    if order != sorted(order):
        parts = sorted(message.parts, key=lambda part: places.get(getattr(part, "call_id", ""), len(places)))
        message = Message("tool", tuple(parts))
    out.append(message)


def _says_more(message: Message) -> bool:
    """Does a message of results end in something else?"""
    return message.role == "tool" and type(message.parts[-1]) is not ToolResult


def _results_first(first: Message, second: Message) -> Message:
    parts = first.parts + second.parts
    return Message("tool", tuple(sorted(parts, key=lambda part: type(part) is not ToolResult)))


def item_id(message: Message) -> str | None:
    """The id that OpenAI gave an item."""
    name = None if message.raw is None else message.raw.get("id")
    return name if isinstance(name, str) else None


def is_summary(message: Message) -> bool:
    """Is this a vendor's own summary of what came before it?"""
    return bool(message.parts) and isinstance(first := message.parts[0], Opaque) and first.kind in _SUMMARIES


_SUMMARIES = frozenset(("compaction", "compaction_summary", "context_compaction"))


def _spoken_summary(message: Message) -> Message:
    """A signed summary block may only come first; anywhere else its words are said as text."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Opaque) and part.kind == "compaction" and part.data.get("signature"):
            part = Text(str(part.data.get("content") or "(A summary stood here.)"))
        parts.append(part)
    return (
        message if all(a is b for a, b in zip(parts, message.parts, strict=True)) else message.with_parts(tuple(parts))
    )


def as_user(message: Message) -> Message:
    return Message("user", message.parts)


def follows_user(previous: Message) -> bool:
    """May a system message stand behind this one?"""
    return previous.role in ("user", "tool")


def continues(message: Message, previous: Message, profile: Profile) -> bool:
    """Does this format want the user's turn put between these two?"""
    return profile.calls_follow_user and previous.role == message.role == "assistant" and _calls(message)


def _calls(message: Message) -> bool:
    return any(type(part) is ToolCall for part in message.parts)


def opens(message: Message) -> bool:
    """May this message be the first where a format wants the user's?"""
    return message.role == "user" or (message.role == "assistant" and is_summary(message))
