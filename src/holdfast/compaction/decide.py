"""Decides whether a plan may be committed: the one place that validates plans."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from ..context import Plan, PlannedContext, Request, Skip, apply_plan, merge_plans, request_after
from ..errors import Outcome
from ..ledger import is_ledger_page
from ..messages import find_problems
from ..strategies import KeepLedger, TokenWindow
from ..strategies.shortening import ShortenResults

if TYPE_CHECKING:
    from ..types import Strategy

log = logging.getLogger("holdfast")


class Decision(msgspec.Struct, frozen=True):
    """The outcome of a compaction before anything is written. Without a plan, nothing changes."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    why: str = ""
    tokens_saved: int | None = None
    """By the plan's own estimator, if it has one."""
    plan: Plan | None = None
    planned: PlannedContext | None = None
    remarks: tuple[str, ...] = ()


def validate_plan(request: Request, strategy: Strategy, answer: Plan | Skip, *, min_saving: float = 0.0) -> Decision:
    """Accepts only a plan whose context is valid for its wire format and smaller than before.

    Over the limit any saving counts: `min_saving` is for contexts that fit as they are.
    """
    before = request.tokens
    limit = request.budget if request.budget is not None else strategy.target
    fits = limit is None or before <= limit
    if isinstance(answer, Skip):
        if fits or answer.outcome is not Outcome.NOTHING_TO_COMPACT:
            stuck = answer.outcome is Outcome.NO_PROGRESS and not fits
            outcome = Outcome.CANNOT_FIT if stuck else answer.outcome
            return Decision(outcome, before, before, answer.why, remarks=answer.remarks)
        plan, why = _shorter_notes(request), answer.why
    else:
        plan, why = answer, ""
    target = plan.target if plan is not None and plan.target else strategy.target
    room_for_gap = None if limit is None or not request.gap else max(1, limit - request.gap)
    lowest = min((n for n in (limit, target, room_for_gap) if n is not None), default=None)
    plan, planned, after = _shrink_to_fit(request, plan, lowest, limit)
    if plan is None or planned is None:
        outcome = Outcome.NOTHING_TO_COMPACT if fits else Outcome.CANNOT_FIT
        return Decision(outcome, before, before, why or "nothing that may be archived is left")
    if problems := find_problems(planned.messages, request.rules):
        log.warning("compaction by %s refused: %s", plan.strategy, "; ".join(map(str, problems[:3])))
        return Decision(Outcome.NO_PROGRESS, before, before, f"the result would be invalid: {problems[0]}")
    too_little = fits and (before - after) < before * min_saving
    if after > before or too_little or not (planned.archived or after < before):
        why = f"{before} tokens would become {after}"
        return Decision(Outcome.NO_PROGRESS if fits else Outcome.CANNOT_FIT, before, before, why)
    fits = limit is None or after <= limit
    outcome = Outcome.COMPACTED if fits else Outcome.CANNOT_FIT
    why = "" if fits else f"the smallest valid context has {after} tokens, over the limit of {limit}"
    return Decision(outcome, before, after, why, _tokens_saved(request, plan, planned), plan, planned, plan.remarks)


def _tokens_saved(request: Request, plan: Plan, planned: PlannedContext) -> int | None:
    if (estimator := plan.estimator) is None:
        return None
    sums = request.view.token_sums_for(estimator)
    after = sums.overhead + sum(map(estimator.measure, planned.messages))
    return max(0, estimator.tokens(request.view.units(sums)) - estimator.tokens(after))


def _shorter_notes(request: Request) -> Plan | None:
    """Returns a plan that rewrites the ledger page for less room, if the context has one."""
    answer = KeepLedger()(request) if any(map(is_ledger_page, request.notes)) else None
    return answer if isinstance(answer, Plan) else None


def _shrink_to_fit(
    request: Request, plan: Plan | None, target: int | None, limit: int | None
) -> tuple[Plan | None, PlannedContext | None, int]:
    """Returns the plan, followed by a token window if its context is over the target.

    The window is narrowed until what the wire format requires fits too. Over the limit, messages of earlier turns in
    the head are archived, and tool results that may not be archived are shortened. Notes are dropped last, but never
    a model's summary for a target that stays out of reach without it.
    """
    planned, after = _measure(request, plan)
    room, step = target or 0, 1
    while target is not None and after > target and room:
        answer = TokenWindow(room)(request if plan is None else request_after(request, plan))
        if isinstance(answer, Plan):
            plan = answer if plan is None else merge_plans(plan, answer, request)
            planned, after = _measure(request, plan)
        step = max(2 * step, after - target)
        room = max(1, room - step) if room > 1 else 0
    if limit is not None and after > limit:
        fewer = _without_earlier_turns(request, plan or Plan(0, strategy="token window"))
        without, smaller = _measure(request, fewer)
        if smaller < after:
            plan, planned, after = fewer, without, smaller
    if target is not None and limit is not None and after > limit:
        answer = ShortenResults(target)(request if plan is None else request_after(request, plan))
        if isinstance(answer, Plan):
            plan = answer if plan is None else merge_plans(plan, answer, request)
            planned, after = _measure(request, plan)
    if target is not None and after > target:
        bare = msgspec.structs.replace(plan or Plan(0, strategy="token window"), notes=(), archives_newest=False)
        without, smaller = _measure(request, bare)
        keeps_summary = bare.summary is not None and smaller > target and (limit is None or after <= limit)
        if smaller < after and not keeps_summary:
            plan, planned, after = bare, without, smaller
    return plan, planned, after


def _without_earlier_turns(request: Request, plan: Plan) -> Plan:
    """Returns the plan without the messages that it shows of turns before the newest."""
    view = request.view
    earlier = {"preamble", "turn"} if view.turns else {"preamble"}
    past = {shown.source for shown in view.head if shown.kind in earlier and shown.source} - view.pins
    return msgspec.structs.replace(
        plan, preamble=(), dropped_from_head=plan.dropped_from_head | past, kept_in_head=frozenset()
    )


def _measure(request: Request, plan: Plan | None) -> tuple[PlannedContext | None, int]:
    """Returns a plan's context and its tokens; only messages that are new in it are counted."""
    if plan is None:
        return None, request.tokens
    planned = apply_plan(request, plan)
    view, sums = request.view, request.view.token_sums
    known = {id(shown.message): size for shown, size in zip(view.head, sums.head, strict=True)}
    for index in request.kept_before(plan.cut) + list(plan.preamble):
        known[id(view.messages[index])] = sums.cumulative[index + 1] - sums.cumulative[index]
    for index, message in enumerate(planned.live, plan.cut):
        if index not in planned.edits:
            known[id(message)] = sums.cumulative[index + 1] - sums.cumulative[index]
    measure = sums.estimator.measure
    units = sums.overhead + sum(known[id(m)] if id(m) in known else measure(m) for m in planned.messages)
    return planned, view.tokens_of(units)
