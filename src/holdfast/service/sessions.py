"""`SessionService`: sessions that never lose anything and always fit."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from ..budget import positive
from ..calls import Limits
from ..catalog import CATALOG
from ..compaction import Abort, Asking, Notify, default_strategy, least_saving
from ..errors import InvalidInput, StoreClosed
from ..events import Event, Kind, LaneTip, SessionRecord, new_id, now
from ..messages import COMMON, encode_all, format_name
from ..models import model_for
from ..presets import Preset, preset_named
from ..stores import Log
from ..strategies import PruneToolResults
from ..strategies.blend_memory import BlendMemory, remembered
from ..summaries.memory import MemoryBlock, due
from ..tokens import Estimator, Tokenizer, estimator_for
from ..triggers import always
from . import exchange, handoff, history, memory, redaction, restoring, titles, verification
from .commit import commit
from .context import Context
from .handoff import Handoff
from .live import LiveSession
from .writing import draft

if TYPE_CHECKING:
    from ..compaction import CompactionResult
    from ..types import Clock, Strategy, Trigger

Records = list[SessionRecord]
Events = list[Event]
Exported = list[dict[str, Any]]
Findings = list[str]

OPEN_SESSIONS = 256
"""How many sessions stay open in memory; the least recently used goes first."""


class SessionService:
    """Create, append, context, compact, fork, undo: the same on every store."""

    def __init__(
        self,
        store: Log,
        *,
        estimator: Estimator | Callable[[str], int] | str | None = None,
        preset: str | Preset | None = None,
        summarizer: Any = None,
        limits: Limits | None = None,
        clock: Clock = time.time,
    ) -> None:
        self.store = store
        self.preset = None if preset is None else preset_named(preset)
        self.model = model_for(summarizer)
        """Who writes summaries, where a call does not say otherwise."""
        self.limits = limits or (self.preset.limits if self.preset else None)
        self.clock = clock
        self._calibrated = estimator is None
        if estimator is None and self.preset is not None:
            estimator, self._calibrated = self.preset.estimator, self.preset.calibrated
        self._estimator = Tokenizer() if estimator is None else estimator_for(estimator)
        self._open: OrderedDict[str, LiveSession] = OrderedDict()
        self._closed = False

    @property
    def estimator(self) -> Estimator:
        return self._estimator

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        self._open.clear()
        await self.store.close()

    # -- sessions -----------------------------------------------------------------------------------

    async def create(
        self,
        *,
        id: str | None = None,
        system: Any = None,
        tools: Any = None,
        format: str | None = None,
        model: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """A new, empty session. System prompt and tools count towards its size."""
        record = SessionRecord(
            id=new_id() if id is None else id,
            created=now(),
            owner=owner,
            system=system,
            tools=tools,
            format=None if format is None else format_name(format),
            model=model,
            metadata=dict(metadata or {}),
        )
        self._not_closed()
        await self.store.create(record)
        return record

    async def get(self, session_id: str) -> SessionRecord:
        self._not_closed()
        return await self.store.session(session_id)

    async def list(self, owner: str | None = None, limit: int | None = None) -> Records:
        """Sessions, newest first."""
        self._not_closed()
        return await self.store.sessions(owner, limit)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; its forks keep what they share with it."""
        self._not_closed()
        self._open.pop(session_id, None)
        await self.store.delete(session_id)

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
    ) -> Events:
        """Append one message or several, atomically; returns the events as stored.

        An id that is known already is a retry and changes nothing. `after` is the version that the
        message was made for: if the session has moved on, StaleVersion is raised. `usage` is what the
        provider reported with an assistant's reply, in its own words or as its SDK's object.
        """
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

    async def pin(self, session_id: str, event_id: str, *, pinned: bool = True) -> None:
        """Keep an event visible through every compaction, or let it go again."""
        live = await self._live(session_id)
        event = await live.event(event_id)
        if event.kind != Kind.MESSAGE:
            raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be pinned.")
        await self._mark(live, Event(new_id(), Kind.PIN, now(), {"event": event_id, "pinned": pinned}, event.lane))

    async def _mark(self, live: LiveSession, event: Event, tip: LaneTip | None = None) -> None:
        tip = tip or live.tip(event.lane)
        done = await self.store.append(live.id, [event], tip=tip)
        if done.fresh:
            await live.appended(done.events, done.version, tip)

    # -- reading ------------------------------------------------------------------------------------

    async def context(self, session_id: str, lane: str | None = None) -> Context:
        """What to send to the model next."""
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        return Context(
            encode_all(view.shown(), view.format),
            format=None if view.format == COMMON else view.format,
            tokens=view.tokens,
            version=live.version,
            system=live.record.system,
            tools=live.record.tools,
            known=view.calibration.known_tokens is not None,
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

    async def shown(self, session_id: str) -> frozenset[str]:
        """Ids of the events that a checkpoint shows though they stand before its boundary, in any lane."""
        return await history.shown_first(await self._live(session_id, refresh=True))

    async def memory(self, session_id: str, *, lane: str | None = None) -> MemoryBlock:
        """What is remembered: a summary of the older notes, and the newer ones as they are (W11)."""
        live = await self._live(session_id, refresh=True)
        return remembered(await live.view(lane))

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
        asking = Asking(model_for(summarizer) or self.model, self.limits, notify, abort)
        return await titles.title(live, asking, lane=lane)

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
        asking = Asking(model_for(summarizer) or self.model, self.limits, notify, abort)
        return await handoff.handoff(live, goal, asking, lane=lane, max_tokens=max_tokens)

    # -- compacting ---------------------------------------------------------------------------------

    async def compact(
        self,
        session_id: str,
        trigger: Trigger | None = None,
        strategy: Strategy | None = None,
        on_conflict: Literal["skip", "rebase"] = "skip",
        *,
        lane: str | None = None,
        budget: int | None = None,
        target: int | None = None,
        instructions: str | None = None,
        summarizer: Any = None,
        min_saving: float | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> CompactionResult:
        """Ask the trigger; if it fires, let the strategy plan, and commit the plan by compare-and-set.

        Without a trigger the budget decides, and without a budget it compacts unconditionally. If
        another writer moved the session first, the outcome is `conflict` and nothing is lost: `skip`
        minds every append, `rebase` only what is more than one. What is said while a model writes is not
        lost either: with `rebase` it stands behind the summary.
        """
        if on_conflict not in ("skip", "rebase"):
            raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
        for name, limit in (("budget", budget), ("target", target)):
            if limit is not None:
                positive(name, limit)
        if target is None and budget is not None:
            target = max(1, budget // 2)
        live = await self._live(session_id, refresh=True)
        asking = Asking(model_for(summarizer) or self.model, self.limits, notify, abort)
        if self.preset is not None and strategy is None:
            window = CATALOG.window(live.record.model) if live.record.model else self.preset.window
            trigger, strategy = trigger or self.preset.trigger_in(budget or window), self.preset.strategy
            budget, target = budget or window, target or (budget or window) // 2
        chosen = strategy or default_strategy(target, asking.model is not None)
        automatic = trigger is not None and trigger is not always
        return await commit(
            live,
            trigger or (always if budget is None else None),
            chosen,
            asking,
            strict=on_conflict == "skip",
            automatic=automatic,
            lane=lane,
            budget=budget,
            target=target,
            instructions=instructions,
            min_saving=least_saving(chosen, min_saving) if automatic else min_saving or 0.0,
            clock=self.clock,
        )

    async def prune(
        self, session_id: str, strategy: PruneToolResults | None = None, *, lane: str | None = None
    ) -> CompactionResult:
        """Clear old tool results in place; the log keeps them (P22)."""
        return await self.compact(session_id, always, strategy or PruneToolResults(), "rebase", lane=lane)

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
        asking = Asking(model_for(summarizer) or self.model, self.limits, notify, abort)
        return await self._blend(live, asking, lane, automatic=False)

    async def _blend(self, live: LiveSession, asking: Asking, lane: str | None, *, automatic: bool) -> CompactionResult:
        return await commit(
            live,
            always,
            BlendMemory(),
            asking,
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

    async def undo(self, session_id: str, *, lane: str | None = None, to: str | None = None) -> str | None:
        """Step back over the last compaction, or to the checkpoint `to`; returns the one now in force."""
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        if view.checkpoint_id is None:
            raise InvalidInput(f"Session {session_id!r} has no compaction to undo.")
        earlier = view.checkpoint.previous if to is None else to
        start = await live.start_of(earlier)
        tip = live.tip(lane)
        back = LaneTip(tip.mark, earlier, start, tip.base, tip.base_epoch)
        await self._mark(live, Event(new_id(), Kind.UNDO, now(), {"to": earlier}, lane), back)
        return earlier

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

    # -- within -------------------------------------------------------------------------------------

    def _not_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    async def _live(self, session_id: str, *, refresh: bool = False) -> LiveSession:
        self._not_closed()
        live = self._open.get(session_id)
        if live is None:
            record = await self.store.session(session_id)
            live = LiveSession(self.store, record, self._estimator, calibrated=self._calibrated)
            self._open[session_id] = live
            if len(self._open) > OPEN_SESSIONS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(session_id)
            if refresh:
                await live.refresh()
        return live
