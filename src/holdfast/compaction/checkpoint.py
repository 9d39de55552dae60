"""The checkpoint of a plan: everything from which its context is rebuilt, and all that later rounds need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..context import Carry, Checkpoint, Edit, HeadItem, HeadMessage, Plan, View, event_id_ranges
from ..context.checkpoint import EventIdRange
from ..context.events import message_in
from ..messages import COMMON
from ..strategies.history import user_topics
from ..tokens.window import WindowFacts

if TYPE_CHECKING:
    from .result import Cost


def checkpoint_of(
    plan: Plan, tokens_before: int, tokens_after: int, cost: Cost | None, *, previous: str | None
) -> Checkpoint:
    """Returns the checkpoint to which this plan leads; `previous` names the one that it replaces."""
    view = plan.base
    boundary = next((id for index in range(plan.cut - 1, -1, -1) if _is_stored(id := view.ids[index], view)), None)
    archived = event_id_ranges(view.ids, (index for index in plan.archived if _is_stored(view.ids[index], view)))
    dropped = (EventIdRange(shown.source, shown.source, 1) for shown in plan.dropped if shown.source in view.events)
    return Checkpoint(
        boundary=boundary or view.checkpoint.boundary,
        head=tuple(_head_item(shown, view) for shown in plan.head),
        edits=_edits(plan, boundary),
        carry=_carry(plan),
        archived=(*dropped, *archived),
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        summary=plan.summary,
        previous=previous,
        strategy=plan.strategy,
        fallback=plan.fallback or None,
        remarks=plan.remarks,
        cost=None if cost is None else msgspec.to_builtins(cost),
    )


def _is_stored(id: str, view: View) -> bool:
    """Whether a log holds this message; in a list without a log, the list does."""
    return id in view.events or not view.events


def _head_item(shown: HeadMessage, view: View) -> HeadItem:
    """A reference if the event is shown unchanged, else the message itself."""
    if not view.events:
        return HeadItem(shown.kind, shown.source, shown.message)
    if (event := view.events.get(shown.source or "")) is None:
        return HeadItem(shown.kind, None, shown.message)
    return HeadItem(shown.kind, event.id, None if message_in(event) == shown.message else shown.message)


def _edits(plan: Plan, boundary: str | None) -> dict[str, tuple[Edit, ...]]:
    """Edits of the messages after the boundary: the plan's, and earlier ones, also of messages that these emptied."""
    view, earlier = plan.base, plan.base.checkpoint.edits
    start = 0 if boundary not in view.events else view.events[boundary].seq
    edits = {id: earlier[id] for id, seq in view.hidden.items() if seq > start}
    for index in range(plan.cut, len(view.messages)) if earlier else sorted(plan.edits):
        if changes := plan.edits.get(index) or earlier.get(view.ids[index]):
            edits[view.ids[index]] = changes
    return edits


def _carry(plan: Plan) -> Carry:
    """Everything later compactions need from before the boundary. Only archived messages raise the round."""
    view, before = plan.base, plan.base.checkpoint.carry
    archived, numbers = [view.messages[index] for index in plan.archived], view.numbers
    count = len({numbers[index] for index in plan.archived}) if numbers else len(archived)
    if view.given_numbers:
        before_boundary = max([before.before_boundary, *view.given_numbers[: plan.cut]])
    else:
        before_boundary = before.before_boundary + plan.cut
    kept_until = view.version if view.events else len(view.messages) - plan.cut
    return Carry(
        round=before.round + plan.archives,
        archived=before.archived + count + len(plan.dropped),
        format=None if view.format == COMMON else view.format,
        counter=view.token_sums.estimator.name,
        calibration=view.calibration.reset_size(),
        pins=tuple(sorted(plan.pins)),
        policy=view.policy,
        window=None if view.window_facts == WindowFacts() else view.window_facts,
        prompt=view.prompt_units,
        topics=tuple(user_topics(archived, before.topics)),
        before_boundary=before_boundary,
        kept_until=kept_until if plan.cut else before.kept_until,
        ledger=before.ledger if plan.ledger is None else plan.ledger(),
        state=before.state if plan.state is None else plan.state,
        memory=before.memory if plan.memory is None else plan.memory,
    )
