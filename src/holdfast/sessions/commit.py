"""Compacts one lane of a session: lease, hooks, decision, and a compare-and-set commit of the checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

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
)
from ..compaction.run import checkpoint_of
from ..context import Checkpoint, Plan, View
from ..context.events import Event, EventKind, LaneTip, new_id, now
from ..errors import Outcome
from ..hooks import Hooks
from ..messages import Json, encode_all, extract_media
from ..stores import Unchanged
from ..strategies.memory import BlendMemory, pin_memory
from ..strategies.read_back import read_notes_back
from ..triggers import always
from .breaker import open_breaker, record_failure
from .lease import LeaseTaken, SessionLease
from .live import LiveSession
from .notes import SessionStartTexts

if TYPE_CHECKING:
    from ..hooks import HookRunner
    from ..hooks.hooks import Listener
    from ..tokens.window import Window
    from ..types import Clock
    from .lease import Lane, RunningCompactions, SessionLeases

log = logging.getLogger("holdfast")


class CompactionCall(msgspec.Struct, frozen=True, kw_only=True):
    """How one compaction of a session is run, whatever its policy says."""

    lane: str | None = None
    strict: bool = False
    """Any concurrent append is a conflict, not only another compaction, pin or undo."""
    automatic: bool = False
    """Nobody asked for it: it waits for a running one, and respects the circuit breaker."""
    urgent: bool = False
    """The model refused the context as it is: it waits for none, and ignores the circuit breaker."""
    record_failure: bool = True
    """Whether a failure counts for the circuit breaker."""
    notify: Notify | None = None
    abort: Abort = msgspec.field(default_factory=Abort)
    hooks: Hooks | None = None
    """Hooks of this compaction, after those of the service."""
    listen: Listener | None = None


class Compactor:
    """Compacts lanes of a service's sessions: lease, hooks, circuit breaker, and a compare-and-set commit."""

    def __init__(
        self,
        leases: SessionLeases,
        running: RunningCompactions,
        hooks: Hooks,
        clock: Clock,
        window_of: Callable[[LiveSession, Policy], Window | None],
    ) -> None:
        self.leases = leases
        self.running = running
        self.hooks = hooks
        self.clock = clock
        self.window_of = window_of
        self.start_texts = SessionStartTexts()

    async def compact(self, live: LiveSession, policy: Policy, call: CompactionCall) -> CompactionResult:
        """Runs the policy on a lane; waits for a running compaction if this one is automatic and not urgent."""
        key, waits = (live.id, call.lane), call.automatic and not call.urgent
        nested = self.running.is_nested(key)
        with self._hooks_around(key, call, nested) as hooks:
            commit = _Commit(self, live, policy, call, hooks)
            while True:
                if waits and key in self.running:
                    with call.abort.scope():
                        await self.running.wait_idle(key)
                    await live.refresh()
                wants_lease = call.lane is None and not nested and not call.abort.aborted
                try:
                    with self.running.running(key):
                        async with self.leases.lease(live.id, "compaction", required=waits) as lease:
                            return await commit(lease if wants_lease else None)
                except LeaseTaken:
                    with call.abort.scope():
                        await self.leases.wait_released(live.id, "compaction")
                    await live.refresh()

    def _hooks_around(self, key: Lane, call: CompactionCall, nested: bool) -> AbstractContextManager[HookRunner | None]:
        """Returns the hooks of one compaction; None if nobody is to be asked or notified."""
        own = self.hooks if call.hooks is None or nested else self.hooks.joined(call.hooks)
        own = Hooks(listen=own.listen) if nested else own
        listens = call.listen is not None  # a list that listens is false while it is empty
        if not (own.before or own.after or own.session_start or own.listen or listens):
            return nullcontext()
        return own.around(*key, "auto" if call.automatic else "manual", call.listen)

    async def blend_memory(self, live: LiveSession, policy: Policy, call: CompactionCall) -> CompactionResult:
        """Blends the oldest memory notes into their summary. No message is archived, so no hook runs."""
        policy = policy.changed(strategy=BlendMemory(), trigger=always, min_saving=0.0)
        with self.running.running((live.id, call.lane)):
            return await _Commit(self, live, policy, call, None)(None)


class _Commit:
    """One attempt to compact a lane and to commit the result."""

    def __init__(
        self, compactor: Compactor, live: LiveSession, policy: Policy, call: CompactionCall, hooks: HookRunner | None
    ) -> None:
        self.compactor = compactor
        self.live = live
        self.policy = policy
        self.call = call
        self.hooks = hooks

    async def __call__(self, lease: SessionLease | None) -> CompactionResult:
        """The lease is acquired once it is clear that there is something to do."""
        live, call, clock, hooks = self.live, self.call, self.compactor.clock, self.hooks
        lane = call.lane
        started = time.perf_counter()
        if self.compactor.start_texts.pending:
            await self.compactor.start_texts.append_pending(live, lane)
        view = await live.view(lane)
        version, tip, known_lanes = live.version, live.tip(lane), live.record.lanes
        run = CompactionRun(
            view,
            self.policy,
            window=self.compactor.window_of(live, self.policy),
            session_id=live.id,
            model=live.record.model,
            started=started,
            notify=call.notify if hooks is None else hooks.with_listeners(call.notify),
            abort=call.abort,
        )
        skipped = run.not_triggered()
        if skipped is None and call.automatic and not call.urgent:
            skipped = open_breaker(run.request, self.policy.trigger, clock())
        if skipped is not None:
            return self._unchanged(run, view, skipped)
        if lease is not None:
            await lease.acquire()
        view = prepare_view(run, view)
        decision = await (run.decide_with_model() if hooks is None else hooks.decide(run))
        if decision.plan is None or decision.outcome is not Outcome.COMPACTED:  # what cannot be sent is not committed
            if call.record_failure:
                await record_failure(live, lane, view, decision, run.summarizer.meter, clock())
            return self._unchanged(run, view, decision)
        cost = run.cost(decision)
        sizes = decision.tokens_before, decision.tokens_after
        checkpoint = checkpoint_of(decision.plan, *sizes, cost, previous=view.checkpoint_id)
        checkpoint = msgspec.structs.replace(checkpoint, parameters=run.parameters(version, calibrated=live.calibrated))
        if (known := view.events.get(checkpoint.boundary or "")) is not None:
            start = known.seq
        else:  # the boundary is that of the checkpoint in force: of a new lane, the root's
            start = tip.start if tip.epoch is not None else await live.start_of(tip.base_epoch)
        body, media = extract_media(msgspec.to_builtins(checkpoint))
        if media:
            body["media"] = sorted(media)
        event = Event(new_id(), EventKind.COMPACTION, now(), body, lane)
        moved = LaneTip(tip.mark, event.id, start, tip.base, tip.base_epoch)
        strict = call.strict or (lane is not None and lane not in known_lanes)  # a lane without events has no mark
        unchanged = Unchanged(version=version) if strict else Unchanged(lane=lane, mark=tip.mark)
        with anyio.CancelScope(shield=True):  # a cancellation in here would report that nothing changed
            done = await live.append([event], when=unchanged, tip=moved, media=media)
            if done.conflict:
                size, why = decision.tokens_before, f"another writer moved the session to version {done.version}"
                lost = Decision(Outcome.CONFLICT, size, size, why, remarks=decision.remarks)
                return self._unchanged(run, await live.view(lane), lost)
            shown = await live.view(lane)
            result = self._result(run, view, decision, shown, checkpoint, cost)
            completed = None if hooks is None else hooks.finish_committed(result, event.id, run)
        _log_metrics(live.id, lane, result)
        if hooks is None:
            return result
        if checkpoint.carry.round > view.checkpoint.carry.round:
            text = await hooks.run_session_start(run.request.at(Plan.of(shown)), result.round, run)
            if text is not None and await self.compactor.start_texts.append(live, lane, text):
                result = self._result(run, view, decision, await live.view(lane), checkpoint, cost)
        return await hooks.run_after(completed, result, run)

    def _unchanged(self, run: CompactionRun, view: View, decision: Decision) -> CompactionResult:
        result = self._result(run, view, decision)
        return result if self.hooks is None else self.hooks.finish_unchanged(result)

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
            if plan is not None and checkpoint is None:  # the smallest valid context: too large to be committed
                return encode_all(plan.messages, format)
            return encode_all(shown.context_messages(count, format), format)

        def partition() -> Partition:
            if checkpoint is None or plan is None:
                return Partition(list(view.events.values())[:visible], [], [])
            ids = [*(item.source or "" for item in plan.dropped), *(view.ids[index] for index in plan.archived)]
            superseded = {view.ids[index] for index in plan.superseded}
            gone = set(ids)
            unchanged = gone.union(shown.source or "" for shown in plan.head)
            edited = [view.ids[index] for index in sorted(plan.edited)]
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
    view = view.snapshot()
    if view.synthetic or view.checkpoint.carry.memory is not None:
        view = pin_memory(view)
    if view.synthetic:
        read_notes_back(view)
    run.request = run.request.at(Plan.of(view))
    return view


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
