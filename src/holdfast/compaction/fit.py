"""Shrinks a plan whose context is over its target: archives more, shortens results, and drops notes last."""

from __future__ import annotations

from ..context import Plan, Request
from ..ledger import is_ledger_page, shorten_page
from ..messages import framed_message, strip_frame
from ..strategies import TokenWindow
from ..strategies.shortening import ShortenResults


def shrink_to_fit(request: Request, plan: Plan, target: int | None, limit: int | None) -> Plan:
    """Returns the plan, followed by a token window if its context is over the target.

    The window is narrowed until what the wire format requires fits too. Over the limit, messages of earlier turns in
    the head are archived, and of a page only the task and the user's rules stay. Then tool results that may not be
    archived are shortened, as far as the limit requires: the model has not read them yet. Notes are dropped at the
    end, but never a model's summary for a target that stays out of reach without it.
    """
    most = target
    if target is not None:
        plan = _in_narrower_windows(request, plan, target)
    if limit is not None and plan.tokens > limit:
        plan = _smaller(plan, _without_earlier_turns(plan))
    if target is not None and limit is not None and plan.tokens > limit:
        plan, most = _smaller(plan, _with_shorter_pages(plan)), limit
        plan = _followed_by(ShortenResults(limit), request, plan)
    if most is not None and plan.tokens > most:
        bare = plan.show((), plan.summary)
        keeps_summary = plan.summary is not None and bare.tokens > most and (limit is None or plan.tokens <= limit)
        plan = plan if keeps_summary else _smaller(plan, bare)
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


def _with_shorter_pages(plan: Plan) -> Plan:
    """Returns the plan with only the task and the user's rules of each ledger page."""
    notes = [shown.message for shown in plan.head if shown.kind == "note"]
    pages = (framed_message(shorten_page(strip_frame(note))) if is_ledger_page(note) else note for note in notes)
    return plan.show(pages, plan.summary) if any(map(is_ledger_page, notes)) else plan


def _without_earlier_turns(plan: Plan) -> Plan:
    """Returns the plan without the messages that it shows of turns before the newest."""
    earlier = {"preamble", "turn"} if plan.view.turns else {"preamble"}
    return plan.drop({shown.source for shown in plan.head if shown.kind in earlier} - plan.base.pins)


def _smaller(plan: Plan, other: Plan) -> Plan:
    return other if other.tokens < plan.tokens else plan
