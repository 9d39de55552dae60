"""What a client can look at: where the conversation stands, what was said, and which sessions there are."""

from __future__ import annotations

from typing import Literal

from ..chat import Chat
from ..chat.commands.user_messages import own_words
from ..errors import InvalidInput
from ..events import Event, Kind
from ..recall.resolve import resolve
from ..stores.said import message_of
from .records import Listed, Logged, Messages, Sessions


async def context_of(chat: Chat) -> Messages:
    """The messages that would be sent now."""
    context = await chat.sessions.context(chat.record.id)
    return Messages(context.messages, context.format)


async def said_in(chat: Chat) -> Messages:
    """All that the user and the model ever said in the session, also what was compacted away."""
    events = await chat.sessions.events(chat.record.id, kind=Kind.MESSAGE, lane="")
    archived = await chat.sessions.events(chat.record.id, kind=Kind.MESSAGE, lane="", archived=True)
    gone = {event.id for event in archived}
    return Messages([line for event in events if (line := _logged(event, event.id in gone)) is not None], None)


async def sessions_of(chat: Chat, limit: int) -> Sessions:
    if limit < 1:
        raise InvalidInput(f"limit is how many sessions to list: at least 1, not {limit}.")
    found = await chat.sessions.list(limit=limit)
    return Sessions([Listed(one.id, one.created, one.version, one.parent, one.model) for one in found])


async def event_at(chat: Chat, at: str | int, *, of_user: bool = False) -> str:
    """The id of the event that is meant, by its id or its number; a branch begins at what the user said (P10)."""
    record = await chat.sessions.get(chat.record.id)
    place = await resolve(chat.sessions.store, record, str(at))
    if place.first.id != place.last.id or place.offset:
        raise InvalidInput(f"{at!r} names more than one event, or a part of one: give the number or the id of one.")
    if of_user and own_words(place.first) is None:
        raise InvalidInput(f"{at!r} is nothing that the user said: branch from a user message, or fork anywhere.")
    return place.first.id


def _logged(event: Event, archived: bool) -> Logged | None:
    """None for what neither of the two said: results of tools, and what a program put in."""
    message = message_of(event)
    if message is None or (own_words(event) is None and message.role != "assistant"):
        return None
    role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
    return Logged(event.seq, event.id, role, message.text, len(message.calls), archived)
