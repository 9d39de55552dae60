"""What the user said in a session, before and after any compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...anatomy import first_line
from ...errors import InvalidInput
from ...events import Event, Kind, LaneTip, SessionRecord
from ...messages import Message, is_framed
from ...recall.resolve import resolve
from ...references import reference
from ...stores import Slice
from ...stores.said import message_of

if TYPE_CHECKING:
    from ..chat import Chat

_OPENING = 20
"""Events of a session among which the first words of the user are looked for."""
_OURS = ("synthetic", "aside", "source", "closes")
"""Marks of messages that a program wrote in the user's voice."""


class UserMessage(msgspec.Struct, frozen=True):
    number: int
    """Among the user's messages, from 1."""
    event: Event
    message: Message
    archived: bool

    @property
    def line(self) -> str:
        return first_line(self.message.text) or "(an image or a file)"


async def user_messages(chat: Chat) -> list[UserMessage]:
    """All of them, the newest last."""
    sessions, session_id = chat.sessions, chat.record.id
    start = (await sessions.get(session_id)).lanes.get("", LaneTip()).start
    shown = await sessions.shown(session_id)
    events = await sessions.events(session_id, kind=Kind.MESSAGE, lane="")
    own = [(event, message) for event in events if (message := own_words(event)) is not None]
    return [
        UserMessage(number, event, message, event.seq <= start and event.id not in shown)
        for number, (event, message) in enumerate(own, 1)
    ]


async def user_message(chat: Chat, written: str) -> UserMessage:
    """The one that was meant: by its number in the list, by a reference as #12, or by its id."""
    found = await user_messages(chat)
    if not found:
        raise InvalidInput("Nothing was said in this session yet: there is no message to choose.")
    if written.isdecimal():
        number = int(written) if len(written) < 10 else 0
        if not 1 <= number <= len(found):
            raise InvalidInput(f"There is no message {written}: they are 1 to {len(found)}, see /branch.")
        return found[number - 1]
    record = await chat.sessions.get(chat.record.id)
    event = (await resolve(chat.sessions.store, record, written)).first
    chosen = next((one for one in found if one.event.id == event.id), None)
    if chosen is None:
        raise InvalidInput(f"{reference(event)} is not a message of yours: see /branch for those that are.")
    return chosen


def own_words(event: Event) -> Message | None:
    """The message of an event, if it is one that the user wrote."""
    if any(event.body.get(mark) for mark in _OURS):
        return None
    message = message_of(event)
    return message if message is not None and message.role == "user" and not is_framed(message) else None


async def first_words(chat: Chat, record: SessionRecord) -> str:
    """What a session is about, in the user's first words."""
    opening = Slice(kinds=(Kind.MESSAGE,), limit=_OPENING)
    for event in await chat.sessions.store.read(record.id, opening):
        if (message := own_words(event)) is not None and (line := first_line(message.text)):
            return line
    return "(nothing was said yet)"
