"""The last step before sending: everything where its wire format wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .formats import join_results
from .frame import CONTINUE, OPENING
from .numbering import NAMELESS
from .parts import Message, Opaque, Part, Reasoning, Text, ToolResult
from .places import continues, follows_user, is_summary, needs_reasoning, opens
from .profiles import Profile


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
    if order != sorted(order) and any(result.call_id.startswith(NAMELESS) for result in message.results):
        parts = sorted(message.parts, key=lambda part: places.get(getattr(part, "call_id", ""), len(places)))
        message = Message("tool", tuple(parts))
    out.append(message)


def _says_more(message: Message) -> bool:
    """Does a message of results end in something else?"""
    return message.role == "tool" and type(message.parts[-1]) is not ToolResult


def _results_first(first: Message, second: Message) -> Message:
    parts = first.parts + second.parts
    return Message("tool", tuple(sorted(parts, key=lambda part: type(part) is not ToolResult)))


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
