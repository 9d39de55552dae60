"""What to do instead of an automatic compaction that the user has undone, when it is due again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...context.events import EventKind
from ...sessions.history import user_message_in
from ...stores import Slice
from .base import Choice, Choices

if TYPE_CHECKING:
    from ..chat import Chat

KEEP, AGAIN = "keep", "again"
"""Choices that hold nothing back: compact with instructions, or as before; the others are words of /autocompact."""


async def again_choices(chat: Chat) -> Choices | None:
    """Returns what to do instead of an automatic compaction that the user has undone and that is due again."""
    size, session_id = await chat.agent.keeper.size(), chat.record.id
    keeper = chat.agent.keeper
    if not keeper.auto or keeper.until_full or not size.threshold or size.tokens <= size.threshold:
        return None
    newest = Slice(kinds=(EventKind.COMPACTION, EventKind.UNDO), limit=1, newest=True)
    marks = await chat.sessions.store.read(session_id, newest)
    if not marks or marks[0].kind != EventKind.UNDO:
        return None
    since = await chat.sessions.store.read(session_id, Slice(after=marks[0].seq, kinds=(EventKind.MESSAGE,)))
    if any(user_message_in(event) is not None for event in since):
        return None
    full = f"now {size.tokens:,} of {size.window or 0:,} tokens"
    items = [
        Choice("pause", "Off for this session", "", "nothing is compacted until /autocompact on"),
        Choice("full", "Not until the window is really full", "", full),
        Choice(KEEP, "Again, but keep …", "", "say what; your message is sent afterwards"),
        Choice(AGAIN, "Again", "", f"above {size.threshold:,} tokens, as before"),
    ]
    return Choices("The compaction that you undid is due again", items, "/autocompact", leave="edit the message")
