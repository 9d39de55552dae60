"""Shrinks a plan whose context is over its target: archives more, shortens results, and drops notes last."""

from __future__ import annotations

from ..context import Plan, Request
from ..strategies import TokenWindow
from ..strategies.shortening import ShortenResults


def shrink_to_fit(request: Request, plan: Plan, target: int | None, limit: int | None) -> Plan:
    """Returns the plan, followed by a token window if its context is over the target.

    The window is narrowed until what the wire format requires fits too. Over the limit, messages of earlier turns in
    the head are archived, and tool results that may not be archived are shortened. Notes are dropped last, but never
    a model's summary for a target that stays out of reach without it.
    """
    if target is not None:
        plan = _in_narrower_windows(request, plan, target)
    if limit is not None and plan.tokens > limit:
        plan = _smaller(plan, _without_earlier_turns(plan))
    if target is not None and limit is not None and plan.tokens > limit:
        shortened = ShortenResults(target)(request.at(plan))
        plan = shortened if isinstance(shortened, Plan) else plan
    if target is not None and plan.tokens > target:
        bare = plan.show((), plan.summary)
        keeps_summary = plan.summary is not None and bare.tokens > target and (limit is None or plan.tokens <= limit)
        plan = plan if keeps_summary else _smaller(plan, bare)
    return plan if plan.strategies or not plan.changed else plan.made_by("token window")


def _in_narrower_windows(request: Request, plan: Plan, target: int) -> Plan:
    room, step = target, 1
    while plan.tokens > target and room:
        answer = TokenWindow(room)(request.at(plan))
        plan = answer if isinstance(answer, Plan) else plan
        step = max(2 * step, plan.tokens - target)
        room = max(1, room - step) if room > 1 else 0
    return plan


def _without_earlier_turns(plan: Plan) -> Plan:
    """Returns the plan without the messages that it shows of turns before the newest."""
    earlier = {"preamble", "turn"} if plan.view.turns else {"preamble"}
    return plan.drop({shown.source for shown in plan.head if shown.kind in earlier} - plan.base.pins)


def _smaller(plan: Plan, other: Plan) -> Plan:
    return other if other.tokens < plan.tokens else plan
