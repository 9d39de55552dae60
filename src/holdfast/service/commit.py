"""One compaction of one lane: decide, then write a checkpoint by compare-and-set (S1-S3, L9)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import anyio
import msgspec

from ..compaction import (
    Asking,
    CompactionResult,
    Cost,
    Decision,
    Sides,
    idle,
    next_carry,
    next_edits,
    standing_summary,
)
from ..events import Event, Kind, LaneTip, new_id, now
from ..hooks import Around
from ..messages import COMMON, Json, decode_one, encode_all, lift_media
from ..models import reads
from ..outcome import Outcome
from ..stores import Unchanged
from ..strategies.blend_memory import keeping_memory
from ..view import Checkpoint, HeadItem, Request, Run, Shown, View, runs_of
from . import breaker
from .flags import Flag
from .live import LiveSession
from .restarting import Restarting

if TYPE_CHECKING:
    from ..types import Clock, Strategy, Trigger

log = logging.getLogger("holdfast")


async def commit(
    live: LiveSession,
    trigger: Trigger | None,
    strategy: Strategy,
    asking: Asking,
    around: Around,
    restarting: Restarting,
    *,
    strict: bool,
    automatic: bool,
    lane: str | None,
    budget: int | None,
    target: int | None,
    instructions: str | None,
    min_saving: float,
    clock: Clock,
    noted: bool = True,
    flag: Flag | None = None,
) -> CompactionResult:
    """`around` asks and tells others; `noted` says whether a failure makes the next automatic compaction wait.

    The `flag` is hoisted once it is clear that there is something to do.
    """
    started = time.perf_counter()
    await restarting.catch_up(live, lane)
    view = await live.view(lane)
    version, tip = live.version, live.tip(lane)
    request = Request(
        view,
        budget=budget,
        target=target,
        session_id=live.id,
        instructions=instructions,
        reads=reads(asking.model),
        asks=asking.model is not None,
    )
    waits = idle(request, trigger) or (breaker.waits(view, request.tokens, clock()) if automatic else None)
    if waits is not None:
        return around.ended(_result(live, view, waits, started))
    if flag is not None:
        await flag.hoist()
    request = request.over(keeping_memory(view.snapshot()))
    view = request.view
    decision = await around.decide(request, strategy, asking, min_saving)
    if decision.plan is None:
        if noted:
            await breaker.note(live, lane, view, decision, asking.meter, clock())
        return around.ended(_result(live, view, decision, started))
    cost = asking.cost(request, decision, live.record.model)
    checkpoint = _checkpoint(request, decision, cost)
    start = await _start(live, view, checkpoint, tip)
    checkpoint = await _still_hidden(live, view, checkpoint, start)
    body, media = lift_media(msgspec.to_builtins(checkpoint))
    if media:
        body["media"] = sorted(media)
    event = Event(new_id(), Kind.COMPACTION, now(), body, lane)
    moved = LaneTip(tip.mark, event.id, start, tip.base, tip.base_epoch)
    unchanged = Unchanged(version=version) if strict else Unchanged(lane=lane, mark=tip.mark)
    with anyio.CancelScope(shield=True):  # who is stopped in here would be told that nothing has changed
        done = await live.store.append(live.id, [event], when=unchanged, tip=moved, media=media)
        if done.conflict:
            await live.refresh()
            size, why = decision.tokens_before, f"another writer moved the session to version {done.version}"
            lost = Decision(Outcome.CONFLICT, size, size, why, remarks=decision.remarks)
            return around.ended(_result(live, await live.view(lane), lost, started))
        await live.appended(done.events, done.version, moved)
        shown = await live.view(lane)
        result = _result(live, view, decision, started, shown, checkpoint, cost)
        completed = around.changed(result, event.id, asking)
    log.info(
        "compaction session=%s lane=%s round=%d strategy=%r tokens=%d->%d archived=%d seconds=%.3f",
        live.id,
        lane or "",
        result.round,
        result.strategy,
        result.tokens_before,
        result.tokens_after,
        result.removed,
        result.duration,
    )
    if checkpoint.carry.round > view.checkpoint.carry.round:
        text = await around.session_start(request.over(shown), result.round, trigger, asking)
        if text is not None and await restarting.say(live, lane, text):
            result = _result(live, view, decision, started, await live.view(lane), checkpoint, cost)
    return await around.after(completed, result, asking)


async def _start(live: LiveSession, view: View, checkpoint: Checkpoint, tip: LaneTip) -> int:
    """The seq of the boundary: the live events are those after it."""
    if checkpoint.boundary is None:
        return tip.start
    known = view.events.get(checkpoint.boundary)
    return (known or await live.event(checkpoint.boundary)).seq


async def _still_hidden(live: LiveSession, view: View, checkpoint: Checkpoint, start: int) -> Checkpoint:
    """The checkpoint with the edits of live messages of which nothing is left to see: the view does not know them."""
    shown = set(view.ids)
    hidden = await live.events([name for name in view.checkpoint.edits if name not in shown])
    edits = {event.id: view.checkpoint.edits[event.id] for event in hidden if event.seq > start}
    return msgspec.structs.replace(checkpoint, edits={**edits, **checkpoint.edits}) if edits else checkpoint


def _checkpoint(request: Request, decision: Decision, cost: Cost | None) -> Checkpoint:
    view, plan, composed = request.view, decision.plan, decision.composed
    assert plan is not None and composed is not None
    before, carry = view.checkpoint, next_carry(request, decision)
    written = [place for place in composed.archived if view.ids[place] in view.events]
    left = (Run(shown.source, shown.source, 1) for shown in composed.dropped if shown.source in view.events)
    return Checkpoint(
        boundary=next((name for name in reversed(view.ids[: plan.cut]) if name in view.events), before.boundary),
        head=tuple(_item(shown, view) for shown in composed.head),
        edits=next_edits(view, composed, view.ids[plan.cut :]),
        carry=msgspec.structs.replace(carry, pins=tuple(sorted(view.pins - plan.forgotten))),
        archived=(*left, *runs_of(view.ids, written)),
        tokens_before=decision.tokens_before,
        tokens_after=decision.tokens_after,
        summary=standing_summary(request, plan),
        previous=view.checkpoint_id,
        strategy=plan.by,
        fallback=plan.fallback or None,
        remarks=plan.remarks,
        cost=None if cost is None else msgspec.to_builtins(cost),
    )


def _item(shown: Shown, view: View) -> HeadItem:
    """A reference where the event can be shown just as it was; else the message as it is shown."""
    event = view.events.get(shown.source or "")
    if event is None:
        return HeadItem(shown.kind, None, shown.message)
    same = decode_one(event.body["message"], event.body.get("format")) == shown.message
    return HeadItem(shown.kind, event.id, None if same else shown.message)


def _result(
    live: LiveSession,
    view: View,
    decision: Decision,
    started: float,
    after: View | None = None,
    checkpoint: Checkpoint | None = None,
    cost: Cost | None = None,
) -> CompactionResult:
    """Constant work: what is asked for later is read from views that have only grown since (H5)."""
    shown = after or view
    composed, plan = decision.composed, decision.plan
    format, count, visible = shown.format, len(shown.messages), len(view.events)

    def messages() -> list[Json]:
        return encode_all(shown.shown(count, format), format)

    def sides() -> Sides:
        if checkpoint is None or composed is None:
            return Sides(list(view.events.values())[:visible], [], [])
        names = [*(item.source or "" for item in composed.dropped), *(view.ids[place] for place in composed.archived)]
        replaced = {view.ids[place] for place in composed.superseded}
        archived = [view.events[name] for name in names if name in view.events and name not in replaced]
        gone = set(names)
        edited = [view.events[view.ids[place]] for place in sorted(composed.edits) if view.ids[place] in view.events]
        return Sides(
            [event for event_id, event in view.events.items() if event_id not in gone],
            archived,
            edited,
        )

    return CompactionResult(
        messages=messages,
        outcome=decision.outcome,
        sides=sides,
        tokens_before=decision.tokens_before,
        tokens_after=decision.tokens_after,
        checkpoint=lambda: checkpoint or (view.checkpoint if view.checkpoint_id else None),
        why=decision.why,
        strategy=plan.by if plan else "",
        fallback=plan.fallback if plan else "",
        summary=plan.summary if plan else None,
        remarks=decision.remarks,
        cost=cost,
        round=shown.checkpoint.carry.round,
        duration=time.perf_counter() - started,
        format=None if format == COMMON else format,
        version=live.version,
    )
