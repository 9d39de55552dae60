"""What goes along from one checkpoint to the next."""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import COMMON
from ..strategies.truncation import topics
from ..view import Carry, Composition, Edit, Plan, Request, View, combined
from .decide import Decision


def next_carry(request: Request, decision: Decision) -> Carry:
    """A prune does not raise the round; a cut does (L10)."""
    view, plan, composed = request.view, decision.plan, decision.composed
    assert plan is not None and composed is not None
    before = view.checkpoint.carry
    gone, numbers = [view.messages[place] for place in composed.archived], view.numbers
    count = len({numbers[place] for place in composed.archived} if numbers else gone)
    return Carry(
        round=before.round + (plan.cut > 0),
        archived=before.archived + count + len(composed.dropped),
        format=None if view.format == COMMON else view.format,
        counter=view.gauge.estimator.name,
        calibration=view.calibration.forget_size(),
        pins=tuple(sorted(view.pins)),
        topics=tuple(topics(gone, before.topics)),
        passed=max([before.passed, *view.named[: plan.cut]]) if view.named else before.passed + plan.cut,
        settled=_settled(request, plan) if plan.cut else before.settled,
        ledger=before.ledger if plan.ledger is None else plan.ledger(),
        state=before.state if plan.state is None else plan.state,
        memory=before.memory if plan.memory is None else plan.memory,
    )


def next_edits(view: View, composed: Composition, kept: Iterable[str]) -> dict[str, tuple[Edit, ...]]:
    """What is changed in messages that are shown: now, and before in those that are kept."""
    edits = {view.ids[place]: changes for place, changes in composed.edits.items()}
    for id in kept:
        if (before := view.checkpoint.edits.get(id)) is not None:
            edits[id] = combined(before, edits.get(id, ()))
    return edits


def standing_summary(request: Request, plan: Plan) -> str | None:
    """What a model wrote last, for as long as it is shown: a plan without notes of its own leaves it standing."""
    if plan.summary is None and plan.notes is None:
        return request.view.checkpoint.summary
    return plan.summary


def _settled(request: Request, plan: Plan) -> int:
    view = request.view
    return view.version if view.events else len(view.messages) - plan.cut
