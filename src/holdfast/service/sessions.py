"""`SessionService`: sessions that never lose anything and always fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..boundaries import repair
from ..budget import positive
from ..errors import InvalidInput, NoRoom
from ..events import Event, Kind, SessionRecord, new_id, now
from ..messages import COMMON, ToolCall, encode_all, format_name, profile_for
from . import exchange, history, redaction, restoring, verification
from .compacting import Compacting
from .context import Context
from .threads import Threads
from .writing import draft

Events = list[Event]
Exported = list[dict[str, Any]]
Findings = list[str]

PATIENCE = 60.0
"""Seconds that `wait=True` waits for a compaction."""


class SessionService(Compacting, Threads):
    """Create, append, context, compact, fork, undo: the same on every store."""

    # -- writing ------------------------------------------------------------------------------------

    async def append(
        self,
        session_id: str,
        message_or_messages: Any,
        lane: str | None = None,
        id: str | Sequence[str] | None = None,
        after: int | None = None,
        *,
        usage: Any = None,
        synthetic: bool = False,
        aside: bool = False,
        wait: bool | float = False,
    ) -> Events:
        """Append one message or several, atomically; returns the events as stored.

        An id that is known already is a retry and changes nothing. `after` is the version that the
        message was made for: if the session has moved on, StaleVersion is raised. `usage` is what the
        provider reported with an assistant's reply, in its own words or as its SDK's object. `aside` is for
        what a program says in the user's voice, as "go on": it is no turn, and goes when its time comes.
        `wait` lets a compaction that is running end first, for a minute or so many seconds; after that, what was
        said is appended all the same (W13).
        """
        if wait is not False:
            await self._waited(session_id, lane, wait)
        live = await self._live(session_id)
        view = await live.view(lane)
        ready = draft(
            message_or_messages,
            view,
            lane=lane,
            ids=id,
            usage=usage,
            synthetic=synthetic,
            format=live.record.format,
            aside=aside,
        )
        done = await self.store.append(session_id, ready.events, after=after, media=ready.media)
        if done.fresh:
            await live.appended(done.events, done.version)
        return await live.with_media(done.events)

    async def restore(self, session_id: str, event_id: str, lane: str | None = None, *, id: str | None = None) -> Event:
        """Bring an archived message back: a quoted copy of it at the end of the context, with its source.

        It counts as no turn, and nothing that was shown before it changes. With an `id` it is idempotent.
        """
        live = await self._live(session_id, refresh=True)
        source = await restoring.source_of(live, event_id)
        known = await live.events([id]) if id is not None else []
        if known and known[0].body.get("source") == source.id:
            return known[0]
        view = await live.view(lane)
        restoring.must_be_useful(view, source)
        ready = draft(
            restoring.copy_of(source),
            view,
            lane=lane,
            ids=id,
            usage=None,
            synthetic=True,
            format=live.record.format,
            source=source.id,
        )
        done = await self.store.append(session_id, ready.events, media=ready.media)
        await live.appended(done.events, done.version)
        return (await live.with_media(done.events))[0]

    async def pin(self, session_id: str, event_id: str, *, pinned: bool = True) -> None:
        """Keep an event visible through every compaction, or let it go again."""
        live = await self._live(session_id)
        event = await live.event(event_id)
        if event.kind != Kind.MESSAGE:
            raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be pinned.")
        await self._mark(live, Event(new_id(), Kind.PIN, now(), {"event": event_id, "pinned": pinned}, event.lane))

    # -- reading ------------------------------------------------------------------------------------

    async def context(
        self,
        session_id: str,
        lane: str | None = None,
        *,
        format: str | None = None,
        wait: bool | float = False,
        budget: int | None = None,
    ) -> Context:
        """What to send to the model next, in the session's own format or, for another model, in this one.

        `wait` lets a compaction that is running end first, for a minute or so many seconds (W13). If it has not
        by then, the context is as it was before; NoRoom is raised where that is over the `budget`, which is the
        model's window unless it is said otherwise.
        """
        if budget is not None:
            positive("budget", budget)
        ready = wait is False or await self._waited(session_id, lane, wait)
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        most = budget or self.window_of(live.record)
        if not ready and most is not None and view.tokens > most:
            raise NoRoom(session_id, view.tokens, most, _patience(wait))
        wanted = view.format if format is None else format_name(format)
        shown = view.shown(format=wanted)
        if wanted != view.format:
            shown = repair(shown, profile_for(wanted))
        return Context(
            encode_all(shown, wanted),
            format=None if wanted == COMMON else wanted,
            tokens=view.tokens,
            version=live.version,
            system=live.record.system,
            tools=live.record.tools,
            known=view.calibration.known_tokens is not None,
            view=view,
        )

    async def events(
        self,
        session_id: str,
        *,
        kind: str | None = None,
        lane: str | None = None,
        archived: bool | None = None,
        text: str | None = None,
        last: int | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Events:
        """Events of the log, oldest first.

        `lane` names a sub-agent's lane; "" is the root alone, None all lanes. `archived` asks for messages
        that a compaction made invisible (True) or left visible (False). `text` is looked for in all that
        an event says, whatever its case. `last` gives the newest n; `page` (from 0, the oldest) and
        `page_size` give one page.
        """
        live = await self._live(session_id, refresh=True)
        pages = history.Pages(last=last, page=page, page_size=page_size)
        return await history.find(live, pages, kind=kind, lane=lane, archived=archived, text=text)

    async def waiting(self, session_id: str, lane: str | None = None) -> tuple[ToolCall, ...]:
        """The tool calls that have no result yet, under the ids by which the session knows them."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).waiting

    async def round(self, session_id: str, lane: str | None = None) -> int:
        """How many compactions the context has behind it."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).checkpoint.carry.round

    async def shown(self, session_id: str) -> frozenset[str]:
        """Ids of the events that a checkpoint shows though they stand before its boundary, in any lane."""
        return await history.shown_first(await self._live(session_id, refresh=True))

    async def fork(self, session_id: str, at: str | None = None, *, id: str | None = None) -> SessionRecord:
        """A new session with the events up to and including `at`; this one is untouched (P10).

        It has the context that this session had right after `at`, so that a fork from before a
        compaction has the uncompacted context again.
        """
        live = await self._live(session_id, refresh=True)
        record = await history.fork_record(live, at, new_id() if id is None else id, now())
        await self.store.create(record)
        return record

    # -- the owner's explicit acts, and moving house --------------------------------------------------

    async def redact(self, session_id: str, event_id: str) -> None:
        """Remove the content of one event for privacy; its id and digest stay as a tombstone."""
        live = await self._live(session_id, refresh=True)
        await redaction.redact(live, event_id)
        self._open.clear()

    async def export(self, session_id: str) -> Exported:
        """The whole session as plain data, one record a line, to be imported anywhere."""
        return await exchange.export(await self._live(session_id, refresh=True))

    async def import_(self, records: Sequence[Mapping[str, Any]], *, id: str | None = None) -> SessionRecord:
        """A session from what `export` returned."""
        self._not_closed()
        return await exchange.import_(self.store, records, id)

    async def verify(self, session_id: str) -> Findings:
        """Re-derive everything from the log and say what does not agree; empty if all does."""
        return await verification.verify(await self._live(session_id, refresh=True))

    async def _waited(self, session_id: str, lane: str | None, wait: bool | float) -> bool:
        return await self.ready(session_id, _patience(wait), lane)


def _patience(wait: bool | float) -> float:
    return PATIENCE if wait is True else wait
