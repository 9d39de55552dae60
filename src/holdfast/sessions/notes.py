"""Messages that the service appends itself: memory notes and session-start texts."""

from itertools import chain

import msgspec

from ..context.events import Event, message_in
from ..errors import InvalidInput
from ..messages import framed_message
from ..strategies.memory import is_memory_note, memory_note
from ..summaries import replace_surrogates
from .lease import Lane
from .live import LiveSession
from .message_events import message_events


async def append_memory(live: LiveSession, text: str, lane: str | None, id: str | None) -> Event:
    """Appends a memory note; with a known `id`, writes nothing."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("There is nothing to remember: give a text that is not blank.")
    note = memory_note(replace_surrogates(text))
    known = await live.events([id]) if id is not None else []
    if any(is_memory_note(event) and message_in(event).parts == note.parts for event in known):
        return known[0]
    view = await live.view(lane)
    if view.pending_calls:
        names = ", ".join(repr(call.id) for call in view.pending_calls)
        raise InvalidInput(f"Tool calls wait for their results ({names}): append those, then remember this.")
    ready = message_events(note, view, lane=lane, ids=id, synthetic=True, format=live.record.format)
    events = [msgspec.structs.replace(event, body={**event.body, "memory": True}) for event in ready.events]
    return (await live.append(events)).events[0]


class SessionStartTexts:
    """Texts of session-start hooks, appended as soon as no tool call waits for its result."""

    def __init__(self) -> None:
        self.pending: dict[Lane, str] = {}
        """Texts that wait, by session and lane."""

    async def append(self, live: LiveSession, lane: str | None, text: str) -> bool:
        """Appends the text unless the context shows it already. Returns whether the context changed."""
        self.pending[live.id, lane] = text
        return await self.append_pending(live, lane)

    async def append_pending(self, live: LiveSession, lane: str | None) -> bool:
        """Appends a text that had to wait, if it can be appended now."""
        if (live.id, lane) not in self.pending:
            return False
        view = await live.view(lane)
        if view.pending_calls:
            return False
        aside = framed_message(self.pending.pop((live.id, lane)), aside=True)
        if any(message.parts == aside.parts for message in chain((one.message for one in view.head), view.messages)):
            return False
        ready = message_events(aside, view, lane=lane, format=live.record.format, aside=True)
        await live.append(ready.events, media=ready.media)
        return True
