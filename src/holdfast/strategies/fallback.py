"""Fallbacks for a failed summary: leave unchanged, truncate, use the ledger, ask the user, or raise an error.

An abort closes the generator and never falls back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from ..context import Plan, Request, Skip
from ..errors import Outcome, SummaryFailed, plain_reason
from ..models.calls import Steps
from .base import run_strategy
from .ledger import KeepLedger
from .truncation import Truncate

if TYPE_CHECKING:
    from ..types import Strategy

log = logging.getLogger("holdfast")
LastResort = Literal["unchanged", "truncate", "ledger", "ask", "error"]
"""Policy if the summary fails: change nothing, truncate, use the ledger, let the user choose, or raise an error."""
LAST_RESORTS: tuple[str, ...] = get_args(LastResort)
"""All values of `LastResort`."""
USER_CHOICES = ". Choose: compact again, compact without a model, or continue unchanged."
"""Ends the reason of a failure that leaves the decision to the user."""


def with_fallback(
    work: Steps[Plan | Skip],
    request: Request,
    last_resort: LastResort,
    max_tokens: int | None = None,
    on_failure: Callable[[Request], object] | None = None,
    truncate: Strategy | None = None,
) -> Steps[Plan | Skip]:
    """Runs a strategy's steps; if it fails or raises, applies the `last_resort` policy.

    `truncate` is the strategy of that policy, `Truncate` by default. Raises `SummaryFailed` if the policy is `error`.
    """
    try:
        answer = yield from work
    except Exception as error:
        log.exception("a strategy raised an exception")
        answer = Skip(Outcome.SUMMARY_FAILED, f"the strategy failed: {plain_reason(error)}")
    failed = _failure_of(answer, request)
    if failed is None:
        return answer
    answer = failed
    limit = request.target if request.target is not None else request.budget
    if answer.outcome is Outcome.NO_PROGRESS and limit is not None and request.tokens <= limit:
        return answer
    if request.has_summarizer:
        log.warning("no summary of %s: %s", request.session_id or "the messages", answer.why)
    if on_failure is not None:
        try:
            on_failure(request)
        except Exception:
            log.exception("the on_failure callback raised an exception")
    if last_resort == "error" and answer.outcome is Outcome.SUMMARY_FAILED:
        raise SummaryFailed(answer.why)
    if last_resort in ("unchanged", "error"):
        return answer
    if last_resort == "ask":
        return msgspec.structs.replace(answer, why=f"{answer.why}{USER_CHOICES}")
    instead = KeepLedger(max_tokens) if last_resort == "ledger" else truncate or Truncate(max_tokens=max_tokens)
    plan = as_fallback((yield from run_strategy(instead, request)), answer.why)
    if isinstance(plan, Skip):
        return answer
    remarks = answer.remarks if answer.outcome is Outcome.SUMMARY_FAILED else ()
    return msgspec.structs.replace(plan, remarks=(*plan.remarks, *remarks))


def as_fallback(answer: Plan | Skip, why: str) -> Plan | Skip:
    """Marks a plan as made in place of a summary, for this reason."""
    if isinstance(answer, Skip):
        return answer
    strategy = answer.strategies[-1]
    remark = f"no summary ({why}): {strategy} instead"
    return msgspec.structs.replace(answer, fallback=strategy, remarks=(*answer.remarks, remark))


def _failure_of(answer: Plan | Skip | None, request: Request) -> Skip | None:
    """Returns the reason to fall back; None if there is a plan that shrinks the context, or nothing to compact."""
    if isinstance(answer, Plan):
        after = request.at(answer).tokens
        if after < request.tokens:
            return None
        return Skip(Outcome.NO_PROGRESS, f"{request.tokens} tokens would become {after}", answer.remarks)
    if answer is None:
        return Skip(Outcome.SUMMARY_FAILED, "the strategy returned no plan")
    return answer if answer.outcome is Outcome.SUMMARY_FAILED else None
