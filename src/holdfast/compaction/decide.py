"""Decides whether a plan may be committed: the one place that validates plans."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from ..context import Plan, Request, Skip
from ..errors import Outcome
from ..ledger import is_ledger_page
from ..messages import find_problems
from ..strategies import KeepLedger
from .fit import shrink_to_fit

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
    remarks: tuple[str, ...] = ()


def validate_plan(request: Request, strategy: Strategy, answer: Plan | Skip, *, min_saving: float = 0.0) -> Decision:
    """Accepts only a plan whose context is valid for its wire format and smaller than before.

    Over the limit any saving counts: `min_saving` is for contexts that fit as they are. Without a budget the strategy's
    own target is the limit; a result over that is accepted, since only a budget says what cannot be sent.
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
    room_for_gap = None if limit is None or not request.gap else max(1, limit - request.gap)
    lowest = min((n for n in (limit, plan.target or strategy.target, room_for_gap) if n is not None), default=None)
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
    return Decision(outcome, before, after, why, _tokens_saved(request, plan), plan, plan.remarks)


def _tokens_saved(request: Request, plan: Plan) -> int | None:
    if (estimator := plan.estimator) is None:
        return None
    sums = request.view.token_sums_for(estimator)
    after = sums.overhead + sum(map(estimator.measure, plan.messages))
    return max(0, estimator.tokens(request.view.units(sums)) - estimator.tokens(after))


def _shorter_notes(request: Request) -> Plan:
    """Returns a plan that rewrites the ledger page for less room, if the context has one; else the context as it is."""
    answer = KeepLedger()(request) if any(map(is_ledger_page, request.notes)) else None
    return answer if isinstance(answer, Plan) else request.plan
