"""Compacts one lane of a session: lease, hooks, decision, and a compare-and-set commit of the checkpoint."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
import msgspec

from ..compaction import (
    Abort,
    CompactionResult,
    CompactionRun,
    Cost,
    Decision,
    Notify,
    Partition,
    Policy,
    PolicyLike,
    SummarizerRun,
    resolve,
)
from ..compaction.checkpoint import checkpoint_of
from ..context import Checkpoint, Plan, View
from ..context.events import Event, EventKind, LaneTip, new_id, now
from ..errors import InvalidInput, Outcome
from ..hooks import Hooks
from ..messages import Json, encode_all, extract_media
from ..stores import Unchanged
from ..strategies.memory import BlendMemory, pin_memory
from ..strategies.read_back import read_notes_back
from ..triggers import always
from .breaker import open_breaker, record_failure
from .lease import LeaseTaken, SessionLease
from .live import LiveSession

if TYPE_CHECKING:
    from ..context.events import SessionRecord
    from ..hooks import HookRunner
    from ..hooks.hooks import Listener
    from ..models.calls import Limits, Model
    from ..types import Clock, StrategyLike, SummarizerLike, Trigger
    from .lease import RunningCompactions, SessionLeases
    from .notes import SessionStartTexts

log = logging.getLogger("holdfast")


class CompactingService(Protocol):
    """What a compaction uses of the `SessionService` it runs in."""

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
    preset: PolicyLike | None = None,
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

    `will_retry`: a failure is not recorded, because the caller retries it itself. `urgent`: the circuit breaker is
    ignored, because the model has refused the context as it is, and no running compaction is waited for.
    """
    if on_conflict not in ("skip", "rebase"):
        raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
    live = await service._live(session_id, refresh=True)
    await live.view(lane)
    if preset is None and strategy is None:
        preset = live.policy
    policy = resolve(
        preset,
        budget=budget,
        target=target,
        trigger=trigger,
        strategy=strategy,
        summarizer=service._summarizer(summarizer),
        instructions=instructions,
        min_saving=min_saving,
        limits=limits or service.limits,
    )
    if trigger is None and budget is None and not policy.name:
        policy = policy.changed(trigger=always)
    automatic = (trigger is not None or bool(policy.name)) and policy.trigger is not always
    if min_saving is None and not automatic:
        policy = policy.changed(min_saving=0.0)
    nested = service._running.is_nested((session_id, lane))
    own = Hooks(listen=service.hooks.listen) if nested else service.hooks
    hooks = own.around(session_id, lane, "auto" if automatic else "manual", listen)
    abort = abort or Abort()
    commit = _Commit(
        service,
        live,
        lane,
        policy,
        SummarizerRun(policy.summarizer, policy.limits, hooks.with_listeners(notify), abort),
        hooks,
        strict=on_conflict == "skip",
        respects_breaker=automatic and not urgent,
        records_failure=not will_retry,
    )
    with hooks:
        while True:
            if automatic and not urgent and (session_id, lane) in service._running:
                with abort.scope():
                    await service._running.wait_idle((session_id, lane))
                await live.refresh()
            wants_lease = lane is None and not nested and not abort.aborted
            try:
                with service._running.running((session_id, lane)):
                    async with service._leases.lease(
                        session_id, "compaction", required=automatic and not urgent
                    ) as lease:
                        return await commit(lease if wants_lease else None)
            except LeaseTaken:
                with abort.scope():
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
    hooks = Hooks().around(live.id, lane, "auto" if automatic else "manual")
    policy = resolve(strategy=BlendMemory(), trigger=always, summarizer=service._summarizer(summarizer), min_saving=0.0)
    calls = SummarizerRun(policy.summarizer, service.limits, notify, abort)
    commit = _Commit(
        service, live, lane, policy, calls, hooks, strict=False, respects_breaker=automatic, records_failure=False
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
        policy: Policy,
        calls: SummarizerRun,
        hooks: HookRunner,
        *,
        strict: bool,
        respects_breaker: bool,
        records_failure: bool,
    ) -> None:
        self.service = service
        self.live = live
        self.lane = lane
        self.policy = policy
        self.calls = calls
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
        run = CompactionRun(
            view,
            self.policy,
            self.calls,
            window=self.service.window_of(live.record),
            session_id=live.id,
            model=live.record.model,
            started=started,
        )
        skipped = run.not_triggered()
        if skipped is None and self.respects_breaker:
            skipped = open_breaker(run.request, self.policy.trigger, clock())
        if skipped is not None:
            return self.hooks.finish_unchanged(self._result(run, view, skipped))
        if lease is not None:
            await lease.acquire()
        view = prepare_view(run, view)
        decision = await self.hooks.decide(run)
        if decision.plan is None or decision.outcome is not Outcome.COMPACTED:  # what cannot be sent is not committed
            if self.records_failure:
                await record_failure(live, lane, view, decision, run.summarizer.meter, clock())
            return self.hooks.finish_unchanged(self._result(run, view, decision))
        cost = run.cost(decision)
        sizes = decision.tokens_before, decision.tokens_after
        checkpoint = checkpoint_of(decision.plan, *sizes, cost, previous=view.checkpoint_id)
        checkpoint = msgspec.structs.replace(checkpoint, parameters=run.parameters(version, calibrated=live.calibrated))
        known = view.events.get(checkpoint.boundary or "")
        start = tip.start if known is None else known.seq
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
            text = await self.hooks.run_session_start(run.request.at(Plan.of(shown)), result.round, run)
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
        shown, plan = after or view, decision.plan
        format, count, visible = shown.format, len(shown.messages), len(view.events)

        def messages() -> list[Json]:
            return encode_all(shown.context_messages(count, format), format)

        def partition() -> Partition:
            if checkpoint is None or plan is None:
                return Partition(list(view.events.values())[:visible], [], [])
            ids = [*(item.source or "" for item in plan.dropped), *(view.ids[index] for index in plan.archived)]
            superseded = {view.ids[index] for index in plan.superseded}
            gone = set(ids)
            unchanged = gone.union(shown.source or "" for shown in plan.head)
            edited = [view.ids[index] for index in sorted(plan.edits)]
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
    run.request = run.request.at(Plan.of(pin_memory(view.snapshot())))
    read_notes_back(run.request.view)
    return run.request.view


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
