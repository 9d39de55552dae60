"""Plans, then writes: one place decides whether a plan may be committed, and what to call the outcome."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from ..boundaries import find_problems
from ..ledger import is_page
from ..outcome import Outcome
from ..strategies import KeepLedger, TokenWindow, steps
from ..triggers import OverBudget
from ..view import Composition, Plan, Request, Skip, compose, follow, merge
from .replay import without_model

if TYPE_CHECKING:
    from ..types import Strategy, Trigger

log = logging.getLogger("holdfast")


class Decision(msgspec.Struct, frozen=True):
    """What is to be done about a request. Without a plan, nothing changes."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    why: str = ""
    plan: Plan | None = None
    composed: Composition | None = None
    remarks: tuple[str, ...] = ()


def decide(
    request: Request, strategy: Strategy, trigger: Trigger | None = None, *, min_saving: float = 0.0
) -> Decision:
    """Ask the trigger, then the strategy, and weigh what it plans (S1). A strategy that needs a model has none."""
    if (nothing := idle(request, trigger)) is not None:
        return nothing
    return weigh(request, strategy, without_model(steps(strategy, request)), min_saving=min_saving)


def idle(request: Request, trigger: Trigger | None) -> Decision | None:
    """The decision to do nothing, where the trigger does not fire."""
    if (trigger or OverBudget())(request):
        return None
    return Decision(Outcome.NOT_NEEDED, request.tokens, request.tokens, "the trigger did not fire")


def weigh(request: Request, strategy: Strategy, answer: Plan | Skip, *, min_saving: float = 0.0) -> Decision:
    """Accept only a plan whose context is valid and smaller (H2)."""
    before = request.tokens
    limit = request.budget if request.budget is not None else getattr(strategy, "target", None)
    fits = limit is None or before <= limit
    if isinstance(answer, Skip):
        if fits or answer.outcome is not Outcome.NOTHING_TO_COMPACT:
            stuck = answer.outcome is Outcome.NO_PROGRESS and not fits
            outcome = Outcome.CANNOT_FIT if stuck else answer.outcome
            return Decision(outcome, before, before, answer.why, remarks=answer.remarks)
        plan, why = _shorter_notes(request), answer.why
    else:
        plan, why = answer, ""
    target = plan.aim if plan is not None and plan.aim else getattr(strategy, "target", None)
    aim = min((n for n in (limit, target) if n is not None), default=None)
    plan, composed, after = _fitted(request, plan, aim, limit)
    if plan is None or composed is None:
        outcome = Outcome.NOTHING_TO_COMPACT if fits else Outcome.CANNOT_FIT
        return Decision(outcome, before, before, why or "nothing that may go is left")
    if problems := find_problems(composed.shown, request.profile):
        log.warning("compaction by %s refused: %s", plan.by, "; ".join(map(str, problems[:3])))
        return Decision(Outcome.NO_PROGRESS, before, before, f"the result would be invalid: {problems[0]}")
    if after > before or (before - after) < before * min_saving or not (composed.archived or after < before):
        why = f"{before} tokens would become {after}"
        stuck = limit is not None and before > limit
        return Decision(Outcome.CANNOT_FIT if stuck else Outcome.NO_PROGRESS, before, before, why)
    fits = limit is None or after <= limit
    outcome = Outcome.COMPACTED if fits else Outcome.CANNOT_FIT
    why = "" if fits else f"the smallest valid context has {after} tokens, over the limit of {limit}"
    return Decision(outcome, before, after, why, plan, composed, plan.remarks)


def _shorter_notes(request: Request) -> Plan | None:
    """Where only notes could go: ours, written anew for less room."""
    answer = KeepLedger()(request) if any(map(is_page, request.notes)) else None
    return answer if isinstance(answer, Plan) else None


def _fitted(
    request: Request, plan: Plan | None, aim: int | None, limit: int | None
) -> tuple[Plan | None, Composition | None, int]:
    """The plan; where its result is still too large, followed by a token window that is not.

    The window is made narrower for what a format insists on. Last of all, notes go; but a summary that a model
    wrote does not go for an aim that is out of reach anyway.
    """
    composed, after = _measured(request, plan)
    room, step = aim or 0, 1
    while aim is not None and after > aim and room:
        answer = TokenWindow(room)(request if plan is None else follow(request, plan))
        if isinstance(answer, Plan):
            plan = answer if plan is None else merge(plan, answer, request)
            composed, after = _measured(request, plan)
        step = max(2 * step, after - aim)
        room = max(1, room - step) if room > 1 else 0
    if aim is not None and after > aim:
        bare = msgspec.structs.replace(plan or Plan(0, by="token window"), notes=())
        without, smaller = _measured(request, bare)
        paid_for = bare.summary is not None and smaller > aim and (limit is None or after <= limit)
        if smaller < after and not paid_for:
            plan, composed, after = bare, without, smaller
    return plan, composed, after


def _measured(request: Request, plan: Plan | None) -> tuple[Composition | None, int]:
    """A plan's context and its size: only what is new in it is counted, the rest was (L13)."""
    if plan is None:
        return None, request.tokens
    composed = compose(request, plan)
    view, gauge = request.view, request.view.gauge
    known = {id(shown.message): size for shown, size in zip(view.head, gauge.head, strict=True)}
    for index in request.staying(plan.cut) + list(plan.preamble):
        known[id(view.messages[index])] = gauge.sums[index + 1] - gauge.sums[index]
    for place, message in enumerate(composed.live, plan.cut):
        if place not in composed.edits:
            known[id(message)] = gauge.sums[place + 1] - gauge.sums[place]
    measure = gauge.estimator.measure
    units = gauge.fixed + sum(known[id(m)] if id(m) in known else measure(m) for m in composed.shown)
    return composed, view.tokens_of(units)
