"""What goes from one session to another, and what is kept within one: handoff, title, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..compaction import Abort, Asking, Notify
from ..events import Event
from ..hooks import Around, Hooks
from ..strategies.blend_memory import BlendMemory, remembered
from ..summaries.memory import MemoryBlock, due
from ..triggers import always
from . import handoff, memory, titles
from .commit import commit
from .handoff import Handoff
from .live import LiveSession
from .opening import OpenSessions

if TYPE_CHECKING:
    from ..compaction import CompactionResult


class Threads(OpenSessions):
    """Handoff, title, remember, memory, blend."""

    async def handoff(
        self,
        session_id: str,
        goal: str,
        *,
        lane: str | None = None,
        summarizer: Any = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        max_tokens: int = 4_000,
    ) -> Handoff:
        """The first message for a new session with this goal: what is known here that matters for it (P23).

        Nothing is written: read it, change it, then create a session and append it. Without a model it is
        made from the ledger. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        asking = self._asking(summarizer, notify, abort)
        return await handoff.handoff(live, goal, asking, lane=lane, max_tokens=max_tokens)

    async def title(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: Any = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> str:
        """What the session is about, in at most two sentences, for display: written by a model, or the task's own.

        It is not stored. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        asking = self._asking(summarizer, notify, abort)
        return await titles.title(live, asking, lane=lane)

    async def remember(self, session_id: str, text: str, *, lane: str | None = None, id: str | None = None) -> Event:
        """Keep a note for as long as the session lives: it is shown at the end of the context, now and later (W11).

        When there are 15, the oldest 10 are blended into a summary, if the service has a model. With an `id`
        it is idempotent.
        """
        live = await self._live(session_id, refresh=True)
        event = await memory.remember(live, text, lane, id)
        if self.model is not None and due(remembered(await live.view(lane))):
            await self._blend(live, Asking(self.model, self.limits), lane, automatic=True)
        return event

    async def memory(self, session_id: str, *, lane: str | None = None) -> MemoryBlock:
        """What is remembered: a summary of the older notes, and the newer ones as they are (W11)."""
        live = await self._live(session_id, refresh=True)
        return remembered(await live.view(lane))

    async def blend_memory(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: Any = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> CompactionResult:
        """Blend the oldest notes into the memory's summary, if there are enough; where no model does it, they stay."""
        live = await self._live(session_id, refresh=True)
        asking = self._asking(summarizer, notify, abort)
        return await self._blend(live, asking, lane, automatic=False)

    async def _blend(self, live: LiveSession, asking: Asking, lane: str | None, *, automatic: bool) -> CompactionResult:
        """Nothing of the conversation goes, so that no hook is asked."""
        around = Around(Hooks(), live.id, lane, "auto" if automatic else "manual")
        with self._underway.compaction((live.id, lane)):
            return await commit(
                live,
                always,
                BlendMemory(),
                asking,
                around,
                self._restarting,
                strict=False,
                automatic=automatic,
                lane=lane,
                budget=None,
                target=None,
                instructions=None,
                min_saving=0.0,
                clock=self.clock,
                noted=False,
            )
