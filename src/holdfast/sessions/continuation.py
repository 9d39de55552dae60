"""Lets interrupted work continue: after an overflow, after a reply that was cut off, after a compaction."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from ..context.events import Event
from ..messages import Json, Links, Message, ToolCall, decode_one, drop_parts, is_framed, is_interrupted
from .live import Context


def drop_incomplete_calls(messages: Iterable[Message]) -> list[Message]:
    """Drops tool calls with truncated JSON arguments: they cannot run, and providers reject them."""
    kept = []
    for message in messages:
        calls = ((index, part) for index, part in enumerate(message.parts) if isinstance(part, ToolCall))
        left = drop_parts(message, [index for index, call in calls if not _is_complete(call)])
        if left.parts or left is message:
            kept.append(left)
    return kept


def _is_complete(call: ToolCall) -> bool:
    if isinstance(call.arguments, dict):
        return True
    try:
        return isinstance(msgspec.json.decode(call.arguments or "{}"), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


CONTINUE_PROMPT = "(The conversation was compacted in the middle of your work. Continue where you stopped.)"
INTERRUPTED_PROMPT = "(You were interrupted. Continue where you stopped.)"
_NEWEST_MESSAGES = 8
"""Newest messages that decide whether a continue prompt is needed."""


def continue_prompt(context: Context, *, compacted: bool, stored: bool) -> str | None:
    """Returns the prompt that tells the model to continue interrupted work, or None if none is needed.

    Work in progress whose trail shows the prompt of an earlier compaction needs no second one. `stored`: the messages
    come from a session, so they may not end with an assistant message either; some providers reject that. A context
    of notes alone has no open request: a reply that was cut off is archived with the message it answers.
    """
    newest = [decode_one(message, context.format) for message in context.messages[-_NEWEST_MESSAGES:]]
    last = next((message for message in reversed(newest) if not is_framed(message)), None)
    ends_with_reply = stored and bool(newest) and newest[-1].role == "assistant" and not Links(newest).is_unfinished
    only_notes = stored and bool(newest) and last is None
    working = compacted and last is not None and last.role == "tool" and not _shows_continue_prompt(context)
    if not (ends_with_reply or only_notes or working):
        return None
    return CONTINUE_PROMPT if compacted else INTERRUPTED_PROMPT


def _shows_continue_prompt(context: Context) -> bool:
    messages = (decode_one(message, context.format) for message in context.messages)
    return any(message.role == "user" and CONTINUE_PROMPT in message.text for message in messages)


def is_unfinished(message: Message) -> bool:
    """Whether the agent has something to go on with after this message: no reply, open calls, or a broken reply."""
    return Links([message]).is_unfinished or message.role in ("user", "tool") or is_interrupted(message)


class OverflowRecovery(msgspec.Struct, frozen=True):
    """How to proceed after the provider rejected a prompt as too long."""

    retry: bool
    """Send the context again, once: it was compacted."""
    why: str = ""
    context: Context | None = None


class LengthRecovery(msgspec.Struct, frozen=True):
    """How to proceed after a reply was cut off at its length limit."""

    status: Literal["go_on", "max_tokens"]
    messages: list[Json]
    """The reply without incomplete tool calls, in its own format."""
    calls: tuple[ToolCall, ...]
    """Tool calls with complete arguments."""
    events: list[Event]
    """The stored reply."""
    why: str = ""
