"""Compacts one lane of a session: lease, hooks, decision, and a compare-and-set commit of the checkpoint."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
import msgspec

from ..compaction import Abort, CompactionOptions, CompactionResult, CompactionRun, Cost, Decision, Notify, Partition
from ..context import Checkpoint, EventIdRange, HeadItem, HeadMessage, Request, View, event_id_ranges
from ..context.events import Event, EventKind, LaneTip, message_in, new_id, now
from ..errors import InvalidInput, Outcome
from ..hooks import HookRunner, Hooks
from ..messages import Json, encode_all, extract_media
from ..stores import Unchanged
from ..strategies.memory import BlendMemory, pin_memory
from ..strategies.read_back import read_notes_back
from ..tokens.budget import require_positive
from ..triggers import always
from ..triggers.combine import token_limit
from .breaker import open_breaker, record_failure
from .lease import LeaseTaken, SessionLease
from .live import LiveSession

if TYPE_CHECKING:
    from ..compaction import Preset
    from ..context.events import SessionRecord
    from ..hooks.hooks import Listener
    from ..models.calls import Limits, Model
    from ..types import Clock, StrategyLike, SummarizerLike, Trigger
    from .lease import RunningCompactions, SessionLeases
    from .notes import SessionStartTexts

log = logging.getLogger("holdfast")


class CompactingService(Protocol):
    """What a compaction uses of the `SessionService` it runs in."""

    preset: Preset | None
    hooks: Hooks
    limits: Limits | None
    clock: Clock
    _running: RunningCompactions
    _leases: SessionLeases
    _start_texts: SessionStartTexts

    def window_of(self, record: SessionRecord) -> int | None: ...
    def _summarizer(self, given: SummarizerLike | None) -> Model | None: ...
    async def _live(self, session_id: str, *, refresh: bool = False) -> LiveSession: ...


async def compact_session(
    service: CompactingService,
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
    limits: Limits | None = None,
    will_retry: bool = False,
    urgent: bool = False,
) -> CompactionResult:
    """`SessionService.compact`, with limits and two switches for loops and workers.

    Without a budget or a target, the size at which the trigger fires is the budget of a strategy that was not chosen
    by the caller, and half of it the target of any strategy that has one.

    `will_retry`: a failure is not recorded, because the caller retries it itself. `urgent`: the circuit breaker is
    ignored, because the model has refused the context as it is, and no running compaction is waited for.
    """
    if on_conflict not in ("skip", "rebase"):
        raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
    for name, limit in (("budget", budget), ("target", target)):
        if limit is not None:
            require_positive(name, limit)
    live = await service._live(session_id, refresh=True)
    if service.preset is not None and strategy is None:
        budget = budget or service.window_of(live.record) or service.preset.window
        trigger, strategy = trigger or service.preset.trigger_in(budget), service.preset.strategy
        target = target or service.preset.target_in(budget)
    if trigger is not None and budget is None and target is None:
        limit = token_limit(trigger, Request(await live.view(lane), session_id=session_id))
        if strategy is None:
            budget = limit
        elif limit is not None:
            target = max(1, limit // 2)
    if target is None and budget is not None:
        target = max(1, budget // 2)
    automatic = trigger is not None and trigger is not always
    nested = service._running.is_nested((session_id, lane))
    hooks = HookRunner(
        Hooks(listen=service.hooks.listen) if nested else service.hooks,
        session_id,
        lane,
        "auto" if automatic else "manual",
        listen,
    )
    options = CompactionOptions.resolve(
        budget=budget,
        target=target,
        trigger=trigger or (always if budget is None else None),
        strategy=strategy,
        summarizer=service._summarizer(summarizer),
        instructions=instructions,
        min_saving=min_saving if automatic else min_saving or 0.0,
        limits=limits or service.limits,
        notify=hooks.with_listeners(notify),
        abort=abort,
    )
    commit = _Commit(
        service,
        live,
        lane,
        options,
        hooks,
        strict=on_conflict == "skip",
        respects_breaker=automatic and not urgent,
        records_failure=not will_retry,
    )
    with hooks:
        while True:
            if automatic and not urgent and (session_id, lane) in service._running:
                with options.abort.scope():
                    await service._running.wait_idle((session_id, lane))
                await live.refresh()
            wants_lease = lane is None and not nested and not options.abort.aborted
            try:
                with service._running.running((session_id, lane)):
                    async with service._leases.lease(
                        session_id, "compaction", required=automatic and not urgent
                    ) as lease:
                        return await commit(lease if wants_lease else None)
            except LeaseTaken:
                with options.abort.scope():
                    await service._leases.wait_released(session_id, "compaction")
                await live.refresh()


async def blend_session_memory(
    service: CompactingService,
    live: LiveSession,
    lane: str | None,
    summarizer: SummarizerLike | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
    *,
    automatic: bool = False,
) -> CompactionResult:
    """Blends the oldest memory notes into their summary. No message is archived, so no hook runs."""
    hooks = HookRunner(Hooks(), live.id, lane, "auto" if automatic else "manual")
    options = CompactionOptions.resolve(
        strategy=BlendMemory(),
        trigger=always,
        summarizer=service._summarizer(summarizer),
        min_saving=0.0,
        limits=service.limits,
        notify=notify,
        abort=abort,
    )
    commit = _Commit(
        service, live, lane, options, hooks, strict=False, respects_breaker=automatic, records_failure=False
    )
    with service._running.running((live.id, lane)):
        return await commit(None)


class _Commit:
    """One attempt to compact a lane and to commit the result."""

    def __init__(
        self,
        service: CompactingService,
        live: LiveSession,
        lane: str | None,
        options: CompactionOptions,
        hooks: HookRunner,
        *,
        strict: bool,
        respects_breaker: bool,
        records_failure: bool,
    ) -> None:
        self.service = service
        self.live = live
        self.lane = lane
        self.options = options
        self.hooks = hooks
        self.strict = strict
        """Any concurrent append is a conflict, not only another compaction, pin or undo."""
        self.respects_breaker = respects_breaker
        self.records_failure = records_failure

    async def __call__(self, lease: SessionLease | None) -> CompactionResult:
        """The lease is acquired once it is clear that there is something to do."""
        live, lane, clock = self.live, self.lane, self.service.clock
        started = time.perf_counter()
        await self.service._start_texts.append_pending(live, lane)
        view = await live.view(lane)
        version, tip, known_lanes = live.version, live.tip(lane), live.record.lanes
        run = CompactionRun(view, self.options, started=started, session_id=live.id, model=live.record.model)
        skipped = run.not_triggered()
        if skipped is None and self.respects_breaker:
            skipped = open_breaker(view, run.request.tokens, clock())
        if skipped is not None:
            return self.hooks.finish_unchanged(self._result(run, view, skipped))
        if lease is not None:
            await lease.acquire()
        view = prepare_view(run, view)
        decision = await self.hooks.decide(run)
        if decision.plan is None:
            if self.records_failure:
                await record_failure(live, lane, view, decision, run.summarizer.meter, clock())
            return self.hooks.finish_unchanged(self._result(run, view, decision))
        cost = run.cost(decision)
        checkpoint, start = await plan_checkpoint(live, run, decision, cost, tip.start)
        checkpoint = msgspec.structs.replace(checkpoint, parameters=run.parameters(version, calibrated=live.calibrated))
        body, media = extract_media(msgspec.to_builtins(checkpoint))
        if media:
            body["media"] = sorted(media)
        event = Event(new_id(), EventKind.COMPACTION, now(), body, lane)
        moved = LaneTip(tip.mark, event.id, start, tip.base, tip.base_epoch)
        strict = self.strict or (lane is not None and lane not in known_lanes)  # a lane without events has no mark
        unchanged = Unchanged(version=version) if strict else Unchanged(lane=lane, mark=tip.mark)
        with anyio.CancelScope(shield=True):  # a cancellation in here would report that nothing changed
            done = await live.store.append(live.id, [event], when=unchanged, tip=moved, media=media)
            if done.conflict:
                await live.refresh()
                size, why = decision.tokens_before, f"another writer moved the session to version {done.version}"
                lost = Decision(Outcome.CONFLICT, size, size, why, remarks=decision.remarks)
                return self.hooks.finish_unchanged(self._result(run, await live.view(lane), lost))
            await live.appended(done.events, done.version, moved)
            shown = await live.view(lane)
            result = self._result(run, view, decision, shown, checkpoint, cost)
            completed = self.hooks.finish_committed(result, event.id, run)
        _log_metrics(live.id, lane, result)
        if checkpoint.carry.round > view.checkpoint.carry.round:
            text = await self.hooks.run_session_start(run.request.with_view(shown), result.round, run)
            if text is not None and await self.service._start_texts.append(live, lane, text):
                result = self._result(run, view, decision, await live.view(lane), checkpoint, cost)
        return await self.hooks.run_after(completed, result, run)

    def _result(
        self,
        run: CompactionRun,
        view: View,
        decision: Decision,
        after: View | None = None,
        checkpoint: Checkpoint | None = None,
        cost: Cost | None = None,
    ) -> CompactionResult:
        """Constant work: messages and partition are read later, from views that only grow."""
        shown, planned = after or view, decision.planned
        format, count, visible = shown.format, len(shown.messages), len(view.events)

        def messages() -> list[Json]:
            return encode_all(shown.context_messages(count, format), format)

        def partition() -> Partition:
            if checkpoint is None or planned is None:
                return Partition(list(view.events.values())[:visible], [], [])
            ids = [*(item.source or "" for item in planned.dropped), *(view.ids[index] for index in planned.archived)]
            superseded = {view.ids[index] for index in planned.superseded}
            gone = set(ids)
            unchanged = gone.union(shown.source or "" for shown in planned.head)
            edited = [view.ids[index] for index in sorted(planned.edits)]
            return Partition(
                [event for id, event in view.events.items() if id not in gone],
                [view.events[id] for id in ids if id in view.events and id not in superseded],
                [view.events[id] for id in edited if id in view.events and id not in unchanged],
            )

        return run.result(
            decision,
            messages=messages,
            partition=partition,
            checkpoint=lambda: checkpoint or (view.checkpoint if view.checkpoint_id else None),
            round=shown.checkpoint.carry.round,
            format=format,
            cost=cost,
            version=self.live.version,
        )


def prepare_view(run: CompactionRun, view: View) -> View:
    """Sets the view that the run compacts: a snapshot in which memory notes stay and earlier notes are read back."""
    run.request = run.request.with_view(pin_memory(view.snapshot()))
    read_notes_back(run.request.view)
    return run.request.view


async def plan_checkpoint(
    live: LiveSession, run: CompactionRun, decision: Decision, cost: Cost | None, start: int
) -> tuple[Checkpoint, int]:
    """Returns the checkpoint of a decision, and the seq of its boundary: the live events are those after it.

    Earlier edits of live messages that these emptied are added: the view no longer has those messages. `start` is the
    seq of the boundary now in force.
    """
    view, checkpoint = run.request.view, _checkpoint(run, decision, cost)
    if checkpoint.boundary is not None:
        known = view.events.get(checkpoint.boundary)
        start = (known or await live.event(checkpoint.boundary)).seq
    shown = set(view.ids)
    hidden = await live.events([id for id in view.checkpoint.edits if id not in shown])
    edits = {event.id: view.checkpoint.edits[event.id] for event in hidden if event.seq > start}
    if edits:
        checkpoint = msgspec.structs.replace(checkpoint, edits={**edits, **checkpoint.edits})
    return checkpoint, start


def _checkpoint(run: CompactionRun, decision: Decision, cost: Cost | None) -> Checkpoint:
    view, plan, planned = run.request.view, decision.plan, decision.planned
    assert plan is not None and planned is not None
    stored = [index for index in planned.archived if view.ids[index] in view.events]
    dropped = (EventIdRange(shown.source, shown.source, 1) for shown in planned.dropped if shown.source in view.events)
    return run.checkpoint(
        decision,
        boundary=next((id for id in reversed(view.ids[: plan.cut]) if id in view.events), view.checkpoint.boundary),
        head=(_head_item(shown, view) for shown in planned.head),
        kept=view.ids[plan.cut :],
        archived=(*dropped, *event_id_ranges(view.ids, stored)),
        previous=view.checkpoint_id,
        pins=view.pins - plan.dropped_from_head,
        cost=cost,
    )


def _head_item(shown: HeadMessage, view: View) -> HeadItem:
    """A reference if the event is shown unchanged, else the message itself."""
    event = view.events.get(shown.source or "")
    if event is None:
        return HeadItem(shown.kind, None, shown.message)
    return HeadItem(shown.kind, event.id, None if message_in(event) == shown.message else shown.message)


def _log_metrics(session_id: str, lane: str | None, result: CompactionResult) -> None:
    log.info(
        "compaction session=%s lane=%s round=%d strategy=%r tokens=%d->%d archived=%d seconds=%.3f",
        session_id,
        lane or "",
        result.round,
        result.strategy,
        result.tokens_before,
        result.tokens_after,
        result.removed,
        result.duration,
    )
