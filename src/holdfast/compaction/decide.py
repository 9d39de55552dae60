"""Decides whether a plan may be committed: the one place that validates plans, and shrinks those that do not fit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from ..context import Plan, Request, Skip
from ..errors import Outcome
from ..ledger import is_ledger_page, shorten_page
from ..messages import Message, find_problems, framed_message, is_aside, is_framed, strip_frame
from ..strategies import KeepLedger, TokenWindow
from ..strategies.history import shorten_notes
from ..strategies.shortening import ShortenResults

if TYPE_CHECKING:
    from ..types import Strategy

log = logging.getLogger("holdfast")
SHORTENED = "A summary was shortened: it does not fit the target."
LEFT_OUT = "Notes or a summary were left out: they do not fit beside what must stay."
_NOTES_SHARE = 0.25
"""Share of the target that notes may take, within the limit, where the rest leaves them none."""


class Decision(msgspec.Struct, frozen=True):
    """The outcome of a compaction before anything is written. Without a plan, nothing changes."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    why: str = ""
    tokens_saved: int | None = None
    """By the plan's own estimator, if it has one."""
    plan: Plan | None = None
    remarks: tuple[str, ...] = ()


def validate_plan(request: Request, strategy: Strategy, answer: Plan | Skip, *, min_saving: float = 0.0) -> Decision:
    """Accepts only a plan whose context is valid for its wire format and smaller than before.

    Over the limit any saving counts: `min_saving` is for contexts that fit as they are. Without a budget the strategy's
    own target is the limit; a result over that is accepted, since only a budget says what cannot be sent.
    """
    before = request.plan.base.tokens
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
    room_for_gap = None if limit is None or not request.gap else max(1, limit - request.gap)
    lowest = min((n for n in (limit, plan.target or strategy.target, room_for_gap) if n is not None), default=None)
    lowest = None if lowest is None else request.reachable(lowest)
    limit = limit if request.budget is not None or limit is None else request.reachable(limit)
    plan = shrink_to_fit(request, plan, lowest, limit)
    after = plan.tokens
    if not (plan.changed or isinstance(answer, Plan)):
        outcome = Outcome.NOTHING_TO_COMPACT if fits else Outcome.CANNOT_FIT
        return Decision(outcome, before, before, why or "nothing that may be archived is left")
    if problems := find_problems(plan.messages, request.rules):
        log.warning("compaction by %s refused: %s", plan.strategy, "; ".join(map(str, problems[:3])))
        return Decision(Outcome.NO_PROGRESS, before, before, f"the result would be invalid: {problems[0]}")
    too_little = fits and (before - after) < before * min_saving
    if after > before or too_little or not (plan.archived or after < before):
        why = f"{before} tokens would become {after}"
        return Decision(Outcome.NO_PROGRESS if fits else Outcome.CANNOT_FIT, before, before, why)
    fits = limit is None or after <= limit
    outcome = Outcome.COMPACTED if fits or request.budget is None else Outcome.CANNOT_FIT
    why = "" if fits else f"the smallest valid context has {after} tokens, over the limit of {limit}"
    return Decision(outcome, before, after, why, _tokens_saved(plan), plan, plan.remarks)


def _tokens_saved(plan: Plan) -> int | None:
    if (estimator := plan.estimator) is None:
        return None
    sums = plan.base.token_sums_for(estimator)
    after = sums.overhead + sum(map(estimator.measure, plan.messages))
    return max(0, estimator.tokens(plan.base.units(sums)) - estimator.tokens(after))


def _shorter_notes(request: Request) -> Plan:
    """Returns a plan that rewrites the ledger page for less room, if the context has one; else the context as it is."""
    answer = KeepLedger()(request) if any(map(is_ledger_page, request.notes)) else None
    return answer if isinstance(answer, Plan) else request.plan


def shrink_to_fit(request: Request, plan: Plan, target: int | None, limit: int | None) -> Plan:
    """Returns the plan, followed by a token window if its context is over the target.

    The window is narrowed until what the wire format requires fits too. Over the limit, messages of earlier turns in
    the head are archived. Notes and summaries are shortened to the room that is left; over the limit, of a page only
    the task and the user's rules stay. Then tool results that may not be archived are shortened, as far as the budget
    requires: the model has not read them yet. Where even the shortest notes do not fit, they are left out, with a
    remark.
    """
    if target is None:
        return plan if plan.strategies or not plan.changed else plan.made_by("token window")
    plan = _in_narrower_windows(request, plan, target)
    if limit is not None and plan.tokens > limit:
        plan = _smaller(plan, _without_earlier_turns(plan))
    if plan.tokens > target:
        plan = _with_shorter_notes(plan, target, limit)
        if not request.plan.unread and plan.tokens > target and (bare := _without_notes(plan)).tokens <= target:
            plan = bare
    if limit is not None and plan.tokens > limit:
        plan = _smaller(plan, _with_shorter_pages(plan))
        if request.budget is not None:
            plan = _followed_by(ShortenResults(limit), request, plan)
    if request.budget is not None and plan.tokens > request.budget:
        plan = _smaller(plan, _without_notes(plan))
    return plan if plan.strategies or not plan.changed else plan.made_by("token window")


def _in_narrower_windows(request: Request, plan: Plan, target: int) -> Plan:
    room, step = target, 1
    while plan.tokens > target and room:
        plan = _followed_by(TokenWindow(room), request, plan)
        step = max(2 * step, plan.tokens - target)
        room = max(1, room - step) if room > 1 else 0
    return plan


def _followed_by(strategy: TokenWindow | ShortenResults, request: Request, plan: Plan) -> Plan:
    answer = strategy(request.at(plan))
    return answer if isinstance(answer, Plan) else plan


def _with_shorter_notes(plan: Plan, target: int, limit: int | None) -> Plan:
    """Returns the plan with notes and summaries shortened to what the rest leaves of the target, or a share of it."""
    notes = [shown.message for shown in plan.head if shown.kind == "note"]
    rest = _without_notes(plan).tokens
    least = min(target, target if limit is None else max(0, limit - rest)) * _NOTES_SHARE
    room = max(target - rest, int(least))
    shorter = dict(zip(map(id, notes), shorten_notes(notes, room, plan.base.token_sums.estimator), strict=True))
    if all(shorter[id(note)] is note for note in notes):
        return plan
    return plan.rewrite_notes(lambda note: shorter[id(note)]).remarked(SHORTENED)


def _with_shorter_pages(plan: Plan) -> Plan:
    """Returns the plan with only the task and the user's rules of each ledger page."""

    def shorten(note: Message) -> Message:
        return framed_message(shorten_page(strip_frame(note))) if is_ledger_page(note) else note

    return plan.rewrite_notes(shorten)


def _without_notes(plan: Plan) -> Plan:
    """Returns the plan without notes and summaries; a summary is carried to the next round."""
    notes = [shown.message for shown in plan.head if shown.kind == "note"]
    summaries = [strip_frame(note) if is_framed(note) else note.text for note in notes if not is_ledger_page(note)]
    left_out = [LEFT_OUT] if any(not is_aside(note) for note in notes) else []
    return plan.show((), plan.summary or "\n\n".join(summaries) or None).remarked(*left_out)


def _without_earlier_turns(plan: Plan) -> Plan:
    """Returns the plan without the messages that it shows of turns before the newest."""
    earlier = {"preamble", "turn"} if plan.view.turns else {"preamble"}
    return plan.drop({shown.source for shown in plan.head if shown.kind in earlier} - plan.base.pins)


def _smaller(plan: Plan, other: Plan) -> Plan:
    return other if other.tokens < plan.tokens else plan
