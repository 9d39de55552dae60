"""`SessionService`: sessions over a store, whose context always fits its model and whose log loses nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
import msgspec

from ..compaction import CompactionOptions, Preset, SummarizerRun, not_triggered, preset_named
from ..context import Request
from ..context.events import Event, SessionRecord, new_id, now
from ..errors import Conflict, InvalidInput, NoRoom, StoreClosed
from ..hooks import Hooks
from ..hooks.timeouts import require_seconds
from ..messages import ToolCall, format_name
from ..models import resolve_model
from ..stores import Log
from ..strategies import PruneToolResults
from ..strategies.memory import read_memory
from ..summaries.memory import MemoryBlock, blend_is_due
from ..tokens import Estimator, Tokenizer, estimator_for
from ..tokens.budget import require_positive
from ..tokens.catalog import CATALOG
from ..triggers import always, token_limit
from .breaker import open_breaker
from .compactor import blend_session_memory, compact_session
from .explain import CompactionPreview, Explanation, explain_compaction, preview_compaction
from .handoff import Handoff, handoff_session, title_session
from .history import EventPages, find_events, fork_record, head_event_ids, verify_session, view_at
from .lease import LEASE_SECONDS, CompactionLeases, RunningCompactions
from .live import Context, ContextSize, LiveSession, read_context
from .marks import pin_event, undo_compaction
from .message_events import message_events, new_events
from .notes import SessionStartTexts, append_memory
from .redaction import redact_event, redact_text
from .restore import RestoreLimits, restore_after_results, restore_deferred, restore_event
from .transfer import export_session, import_session

if TYPE_CHECKING:
    from ..compaction import Abort, CompactionResult, Notify
    from ..hooks.hooks import Listener
    from ..models.calls import Limits, Model
    from ..types import (
        Clock,
        EstimatorLike,
        MessageLike,
        StrategyLike,
        SummarizerLike,
        SystemLike,
        ToolsLike,
        Trigger,
        UsageLike,
    )

WAIT_SECONDS = 60.0
"""How long `wait=True` waits for a running compaction."""
OPEN_SESSIONS = 256
"""Sessions kept in memory; the least recently used is closed first."""
Records = list[SessionRecord]
Events = list[Event]
ExportedLines = list[dict[str, Any]]
Findings = list[str]


class SessionService:
    """Create, append, context, compact, fork, undo: the same on every store.

    `summarizer` writes summaries for calls that name none. `window` is the context window where the catalog does not
    know the session's model. `preset` decides how `compact` compacts when it is given no strategy. `lease` is how many
    seconds other processes wait for a worker that died.
    """

    def __init__(
        self,
        store: Log,
        *,
        estimator: EstimatorLike | None = None,
        preset: str | Preset | None = None,
        summarizer: SummarizerLike | None = None,
        limits: Limits | None = None,
        clock: Clock = time.time,
        hooks: Hooks | None = None,
        lease: float = LEASE_SECONDS,
        window: int | None = None,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Hooks):
            raise InvalidInput(f"hooks= takes Hooks(before=…, after=…, …), not {type(hooks).__name__}.")
        if window is not None:
            require_positive("window", window)
        require_seconds(lease, "lease")
        self.store = store
        self.model: Model | None = resolve_model(summarizer)
        self.window = window
        self.clock = clock
        self.hooks = hooks or Hooks()
        self._running = RunningCompactions()
        self._leases = CompactionLeases(store, lease)
        self._start_texts = SessionStartTexts()
        self._given_estimator, self._given_limits = estimator, limits
        self._open: OrderedDict[str, LiveSession] = OrderedDict()
        self._closed = False
        self._apply(None if preset is None else preset_named(preset))

    def _apply(self, preset: Preset | None) -> None:
        """Takes estimator and limits from the preset unless they were given."""
        self.preset = preset
        self.limits = self._given_limits or (preset.limits if preset else None)
        estimator, self._calibrated = self._given_estimator, self._given_estimator is None
        if estimator is None and preset is not None:
            estimator, self._calibrated = preset.estimator, preset.calibrated
        self.healed_views = 0
        """Views in memory that differed from their log and were read again; 0 unless something is wrong."""
        self._estimator = Tokenizer() if estimator is None else estimator_for(estimator)

    def follow(self, preset: str | Preset) -> None:
        """Switches to another preset and its estimator; open sessions are measured again when next used."""
        self._apply(preset_named(preset))
        self._open.clear()

    @property
    def estimator(self) -> Estimator:
        """The estimator that counts tokens."""
        return self._estimator

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the service and its store."""
        self._closed = True
        self._open.clear()
        await self.store.close()

    # -- sessions -------------------------------------------------------------------------------------

    async def create(
        self,
        *,
        id: str | None = None,
        system: SystemLike | None = None,
        tools: ToolsLike | None = None,
        format: str | None = None,
        model: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """Creates an empty session. System prompt and tools count towards its size, and are in `context().request`."""
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
        self._require_open()
        await self.store.create(record)
        return record

    async def get(self, session_id: str) -> SessionRecord:
        """Returns a session's record."""
        self._require_open()
        return await self.store.session(session_id)

    async def list(self, owner: str | None = None, limit: int | None = None) -> Records:
        """Returns sessions, newest first."""
        self._require_open()
        return await self.store.sessions(owner, limit)

    async def delete(self, session_id: str) -> None:
        """Deletes a session permanently; its forks keep the events they share with it."""
        self._require_open()
        self._open.pop(session_id, None)
        await self.store.delete(session_id)

    def window_of(self, record: SessionRecord) -> int | None:
        """Returns the context window of a session, if the service, the catalog or the preset knows it."""
        if self.window is not None or record.model:
            return self.window or CATALOG.window(record.model)
        return None if self.preset is None else self.preset.window

    # -- writing --------------------------------------------------------------------------------------

    async def append(
        self,
        session_id: str,
        message_or_messages: MessageLike | Iterable[MessageLike],
        lane: str | None = None,
        id: str | Sequence[str] | None = None,
        after: int | None = None,
        *,
        usage: UsageLike | None = None,
        model: str | None = None,
        synthetic: bool = False,
        aside: bool = False,
        wait: bool | float = False,
    ) -> Events:
        """Appends one message or several, atomically; returns the events as stored.

        A known `id` is a retry and changes nothing. `after` is the version that the message was made for: StaleVersion
        is raised if the session has a newer one. `usage` is what the provider reported with a reply, in its own form;
        `model` is stored with it, for its price. `aside` marks what a program says in the user's voice ("continue"): it
        is no turn. `wait` first waits for a running compaction, for a minute or so many seconds, and then appends in
        any case.
        """
        if wait is not False:
            await self._wait_ready(session_id, lane, wait)
        live = await self._live(session_id)
        view = await live.view(lane)
        ready = message_events(
            message_or_messages,
            view,
            lane=lane,
            ids=id,
            usage=usage,
            model=model,
            synthetic=synthetic,
            format=live.record.format,
            aside=aside,
        )
        events = ready.events if id is None else await new_events(live, ready)
        done = await self.store.append(session_id, events, after=after, media=ready.media)
        if done.fresh:
            await live.appended(done.events, done.version)
        if live.deferred_restores:
            await restore_deferred(live, lane)
        return await live.with_media(done.events)

    async def restore(
        self,
        session_id: str,
        event_id: str,
        lane: str | None = None,
        *,
        id: str | None = None,
        max_tokens: int | None = None,
    ) -> Event:
        """Appends a quoted copy of an archived message to the context, with its source.

        It counts as no turn, and nothing before it changes. With an `id` it is idempotent. Raises InvalidInput if it
        takes more than `max_tokens` or would exceed a known window.
        """
        live = await self._live(session_id, refresh=True)
        limits = RestoreLimits(max_tokens, self.window_of(live.record))
        return await restore_event(live, event_id, lane, id, limits)

    async def restore_after_results(
        self, session_id: str, event_id: str, lane: str | None = None, *, max_tokens: int | None = None
    ) -> Event | None:
        """Restores like `restore`; while tool calls are open, after their last result, and returns None until then."""
        live = await self._live(session_id, refresh=True)
        limits = RestoreLimits(max_tokens, self.window_of(live.record))
        return await restore_after_results(live, event_id, lane, limits)

    async def pin(
        self, session_id: str, event_id: str, *, pinned: bool = True, id: str | None = None, after: int | None = None
    ) -> None:
        """Keeps an event visible through every compaction, or unpins it.

        With an `id` it is idempotent. `after` is the version that the caller saw: Conflict is raised if another writer
        has compacted, pinned, undone or redacted since. Without it, the pin holds whatever was written meanwhile.
        """
        live = await self._live(session_id, refresh=after is not None)
        await pin_event(live, event_id, pinned=pinned, id=id, after=after)

    # -- reading --------------------------------------------------------------------------------------

    async def context(
        self,
        session_id: str,
        lane: str | None = None,
        *,
        format: str | None = None,
        wait: bool | float = False,
        budget: int | None = None,
    ) -> Context:
        """Returns what to send to the model next, in the session's own wire format or in this one.

        `wait` first waits for a running compaction, for a minute or so many seconds. If it is still running then, the
        context is as before it; NoRoom is raised if that exceeds `budget`, by default the model's window.
        """
        if budget is not None:
            require_positive("budget", budget)
        ready = wait is False or await self._wait_ready(session_id, lane, wait)
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        limit = budget or self.window_of(live.record)
        if not ready and limit is not None and view.tokens > limit:
            raise NoRoom(session_id, view.tokens, limit, _wait_seconds(wait))
        wanted = view.format if format is None else format_name(format)
        return await read_context(view, live.record, wanted, timed_out=not ready)

    async def context_at(self, session_id: str, event_id: str, *, format: str | None = None) -> Context:
        """Returns what `context` returned right after this event, in the event's lane; nothing is written.

        `version` is the event's seq. Messages are sent between events, so what a reply was made from is the context at
        the event before it.
        """
        live = await self._live(session_id, refresh=True)
        event = await live.event(event_id)
        view = await view_at(live, event)
        record = msgspec.structs.replace(live.record, version=event.seq)
        return await read_context(view, record, view.format if format is None else format_name(format))

    async def explain(self, session_id: str, compaction: str) -> Explanation:
        """Explains a compaction, given its event id: what became of each event, and why its page has its lines.

        The compaction is computed again from the log and compared with what is stored: `agrees` tells the result. It is
        None where that is not possible, with the reason in `why`. Nothing is written.
        """
        return await explain_compaction(await self._live(session_id, refresh=True), compaction)

    async def preview(
        self,
        session_id: str,
        strategy: StrategyLike | None = None,
        *,
        at: str | None = None,
        lane: str | None = None,
        preset: str | Preset | None = None,
        budget: int | None = None,
        target: int | None = None,
    ) -> CompactionPreview:
        """Returns what a compaction would do now, or right after the event `at`; nothing is written.

        No model is called: a strategy that needs one falls back as if it had failed.
        """
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane) if at is None else await view_at(live, await live.event(at))
        if preset is not None:
            chosen = preset_named(preset)
            budget = budget or self.window_of(live.record) or chosen.window
            strategy, target = strategy or chosen.strategy, target or chosen.target_in(budget)
        options = CompactionOptions.resolve(budget=budget, target=target, trigger=always, strategy=strategy)
        return await preview_compaction(live, view, options)

    async def events(
        self,
        session_id: str,
        *,
        kind: str | None = None,
        lane: str | None = None,
        archived: bool | None = None,
        text: str | None = None,
        last: int | None = None,
        before: int | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Events:
        """Returns events of the log, oldest first.

        `lane` names a sub-agent's lane; "" is the root alone, None all lanes. `archived` selects messages that a
        compaction archived (True) or left visible (False). `text` must occur in the event, ignoring case. `before`
        selects events with a lower number. `last` returns the newest n; `page` (from 0, the oldest) and `page_size`
        return one page.
        """
        live = await self._live(session_id, refresh=True)
        pages = EventPages(last=last, before=before, page=page, page_size=page_size)
        return await find_events(live, pages, kind=kind, lane=lane, archived=archived, text=text)

    async def waiting(self, session_id: str, lane: str | None = None) -> tuple[ToolCall, ...]:
        """Returns the tool calls without a result, with their ids in this session."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).pending_calls

    async def size(self, session_id: str, lane: str | None = None) -> ContextSize:
        """Returns the size of the context without its messages, which costs little however many they are."""
        live = await self._live(session_id, refresh=True)
        view, window, limit = await live.view(lane), self.window_of(live.record), None
        if self.preset is not None:
            trigger = self.preset.trigger_in(window or self.preset.window)
            limit = token_limit(trigger, Request(view, budget=window, session_id=session_id))
        return ContextSize(
            view.tokens,
            len(view.messages),
            view.checkpoint_id is not None,
            view.checkpoint.carry.round,
            view.calibration.known_tokens is not None,
            limit,
        )

    async def round(self, session_id: str, lane: str | None = None) -> int:
        """Returns how many times the context was compacted."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).checkpoint.carry.round

    async def shown(self, session_id: str) -> frozenset[str]:
        """Returns ids of events that a checkpoint shows although they are before its boundary, in any lane."""
        return await head_event_ids(await self._live(session_id, refresh=True))

    # -- compaction -----------------------------------------------------------------------------------

    async def compact(
        self,
        session_id: str,
        trigger: Trigger | None = None,
        strategy: StrategyLike | None = None,
        on_conflict: Literal["skip", "rebase"] = "skip",
        *,
        lane: str | None = None,
        budget: int | None = None,
        target: int | None = None,
        instructions: str | None = None,
        summarizer: SummarizerLike | None = None,
        min_saving: float | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        listen: Listener | None = None,
    ) -> CompactionResult:
        """Asks the trigger; if it fires, runs the strategy and commits its plan by compare-and-set.

        Without a trigger the budget decides; without a budget it compacts unconditionally. Without a budget or target,
        a trigger that counts tokens sets the target: half of its threshold. If another writer is
        faster, the outcome is `conflict` and nothing is lost: `skip` aborts on any concurrent append, `rebase` only on
        a compaction, pin or undo. Messages appended meanwhile follow the summary. An automatic compaction (one with a
        trigger) first waits for a running one, here or in another process. `listen` receives this compaction's
        events, like the listeners of the service's hooks; hooks do not run for a compaction made by a hook.
        """
        return await compact_session(
            self,
            session_id,
            trigger,
            strategy,
            on_conflict,
            lane=lane,
            budget=budget,
            target=target,
            instructions=instructions,
            summarizer=summarizer,
            min_saving=min_saving,
            notify=notify,
            abort=abort,
            listen=listen,
        )

    async def due(self, session_id: str, trigger: Trigger | None = None, *, lane: str | None = None) -> bool:
        """Whether an automatic compaction would run now, by this trigger or the preset's; writes nothing.

        The trigger sees the window as `request.budget`, if it is known.
        """
        if trigger is None and self.preset is None:
            raise InvalidInput("due() needs a trigger: pass one, or create the service with preset=.")
        live = await self._live(session_id, refresh=True)
        view, window = await live.view(lane), self.window_of(live.record)
        request = Request(view, budget=window, session_id=session_id)
        if trigger is None and self.preset is not None:
            trigger = self.preset.trigger_in(window or self.preset.window)
        if not_triggered(request, trigger) is not None:
            return False
        return open_breaker(view, request.tokens, self.clock()) is None

    def compacting(self, session_id: str, lane: str | None = None) -> bool:
        """Whether a compaction of this session is running in this service."""
        return (session_id, lane) in self._running

    async def ready(
        self,
        session_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the caller decides how long a request waits
        lane: str | None = None,
    ) -> bool:
        """Waits until the session is not being compacted; returns False after `timeout` seconds.

        Waits for other processes too, if the store has leases; for a lane, only for this one. A compaction that fails
        or is aborted ends the wait, and the lease of a dead worker expires. Returns False at once inside a hook of
        that compaction.
        """
        if timeout is not None:
            require_seconds(timeout)
        await self.get(session_id)
        with anyio.move_on_after(timeout):
            if not await self._running.wait_idle((session_id, lane)):
                return False
            if lane is None:
                await self._leases.wait_released(session_id)
            return True
        return False

    async def prune(
        self, session_id: str, strategy: PruneToolResults | None = None, *, lane: str | None = None
    ) -> CompactionResult:
        """Clears old tool results in place; the log keeps them."""
        return await self.compact(session_id, always, strategy or PruneToolResults(), "rebase", lane=lane)

    async def undo(
        self, session_id: str, *, lane: str | None = None, to: str | None = None, after: int | None = None
    ) -> str | None:
        """Undoes the last compaction, or goes back to the checkpoint `to`; returns the checkpoint now in force.

        `after` is the version that the caller saw, by default the one that this service saw last. Conflict is raised
        if another writer has compacted, pinned, undone or redacted since: the undo would take that away.
        """
        return await undo_compaction(await self._live(session_id, refresh=after is not None), lane, to, after)

    # -- from one session to another, and memory --------------------------------------------------------

    async def fork(self, session_id: str, at: str | None = None, *, id: str | None = None) -> SessionRecord:
        """Creates a session with the events up to and including `at`; this one is untouched.

        Its context is the one this session had right after `at`, so a fork from before a compaction has the
        uncompacted context again.
        """
        live = await self._live(session_id, refresh=True)
        id = new_id() if id is None else id
        while True:
            mark, record = live.tip(None).mark, await fork_record(live, at, id, now())
            try:
                await self.store.create(record, mark=mark)
            except Conflict:
                await live.refresh()
            else:
                return record

    async def handoff(
        self,
        session_id: str,
        goal: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        max_tokens: int = 4_000,
    ) -> Handoff:
        """Returns the first message for a new session with this goal: what this session knows that matters for it.

        Nothing is written: read it, change it, then create a session and append it. Without a model it is made from
        the ledger. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        run = SummarizerRun(self._summarizer(summarizer), self.limits, notify, abort)
        return await handoff_session(live, goal, run, lane=lane, max_tokens=max_tokens)

    async def title(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> str:
        """Returns at most two sentences on what the session is about: a model's, or the start of the task.

        It is not stored. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        return await title_session(live, SummarizerRun(self._summarizer(summarizer), self.limits, notify, abort), lane)

    async def remember(self, session_id: str, text: str, *, lane: str | None = None, id: str | None = None) -> Event:
        """Stores a note for the life of the session; it is shown at the end of the context.

        From 15 notes on, the oldest 10 are blended into a summary, if the service has a model. With an `id` it is
        idempotent.
        """
        live = await self._live(session_id, refresh=True)
        event = await append_memory(live, text, lane, id)
        if self.model is not None and blend_is_due(read_memory(await live.view(lane))):
            await blend_session_memory(self, live, lane, automatic=True)
        return event

    async def memory(self, session_id: str, *, lane: str | None = None) -> MemoryBlock:
        """Returns the memory: a summary of the older notes, and the newer ones verbatim."""
        live = await self._live(session_id, refresh=True)
        return read_memory(await live.view(lane))

    async def blend_memory(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> CompactionResult:
        """Blends the oldest notes into the memory's summary, if there are enough; without a model they stay."""
        live = await self._live(session_id, refresh=True)
        return await blend_session_memory(self, live, lane, summarizer, notify, abort)

    # -- the owner's rights ----------------------------------------------------------------------------

    async def redact(self, session_id: str, event_id: str) -> None:
        """Removes the content of one message for privacy; its id and digest stay as a tombstone.

        It is also removed from what was derived from it: copies, notes, summaries, the search index, and forks. The
        bytes are erased from the store's files. May be repeated, after a cancellation too.
        """
        await redact_event(await self._live(session_id, refresh=True), event_id)

    async def redact_text(self, session_id: str, text: str) -> int:
        """Removes a text, such as a password, wherever the session and its forks have it; returns how many events had.

        System prompt, tools and metadata are included. Like `redact`, it erases and may be repeated.
        """
        return await redact_text(await self._live(session_id, refresh=True), text)

    async def export(self, session_id: str) -> ExportedLines:
        """Returns the whole session as plain data, one record a line, to be imported anywhere."""
        return await export_session(await self._live(session_id, refresh=True))

    async def import_(self, records: Sequence[Mapping[str, Any]], *, id: str | None = None) -> SessionRecord:
        """Creates a session from what `export` returned."""
        self._require_open()
        return await import_session(self.store, records, id)

    async def verify(self, session_id: str) -> Findings:
        """Rebuilds everything from the log and returns what does not agree; empty if all does."""
        return await verify_session(await self._live(session_id, refresh=True))

    # -- for the other parts of this package ------------------------------------------------------------

    def _summarizer(self, given: SummarizerLike | None) -> Model | None:
        """Returns the model of one call: the given one, else the service's own."""
        return resolve_model(given) or self.model

    async def _live(self, session_id: str, *, refresh: bool = False) -> LiveSession:
        """Returns the open session, from the cache or from the store; `refresh` catches up with other writers."""
        self._require_open()
        live = self._open.get(session_id)
        if live is None:
            record = await self.store.session(session_id)
            live = LiveSession(
                self.store, record, self._estimator, calibrated=self._calibrated, on_heal=self._count_healed
            )
            self._open[session_id] = live
            if len(self._open) > OPEN_SESSIONS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(session_id)
            if refresh:
                await live.refresh()
        return live

    def _count_healed(self) -> None:
        self.healed_views += 1

    def _require_open(self) -> None:
        if self._closed:
            raise StoreClosed

    async def _wait_ready(self, session_id: str, lane: str | None, wait: bool | float) -> bool:
        return await self.ready(session_id, _wait_seconds(wait), lane)


def _wait_seconds(wait: bool | float) -> float:
    return WAIT_SECONDS if wait is True else wait
