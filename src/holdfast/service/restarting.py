"""What a hook says when a compacted session goes on: an aside, as soon as one can stand there (G7)."""

from __future__ import annotations

from itertools import chain

from ..messages import framed
from .live import LiveSession
from .underway import Lane
from .writing import draft


class Restarting:
    """While tool calls wait for their results nothing may come in between: what is to be said waits with them."""

    def __init__(self) -> None:
        self._owed: dict[Lane, str] = {}

    async def say(self, live: LiveSession, lane: str | None, text: str) -> bool:
        """Append it, unless it can still be seen. True where the context is another one now."""
        self._owed[live.id, lane] = text
        return await self.catch_up(live, lane)

    async def catch_up(self, live: LiveSession, lane: str | None) -> bool:
        """Say what could not be said before."""
        if (live.id, lane) not in self._owed:
            return False
        view = await live.view(lane)
        if view.waiting:
            return False
        aside = framed(self._owed.pop((live.id, lane)), aside=True)
        if any(message.parts == aside.parts for message in chain((one.message for one in view.head), view.messages)):
            return False
        ready = draft(
            aside, view, lane=lane, ids=None, usage=None, synthetic=False, format=live.record.format, aside=True
        )
        done = await live.store.append(live.id, ready.events, media=ready.media)
        await live.appended(done.events, done.version)
        return True
