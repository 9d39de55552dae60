"""What to do where a model wrote no summary: nothing, a plain truncation, the ledger, or ask the person (P9, G6, L11).

An abort never comes here: it closes the work, and nothing is tried instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from ..calls import Steps
from ..outcome import Outcome
from ..view import Plan, Request, Skip, follow
from .keep_ledger import KeepLedger
from .truncation import Truncate

log = logging.getLogger("holdfast")

LastResort = Literal["unchanged", "truncate", "ledger", "ask"]
LAST_RESORTS: tuple[str, ...] = get_args(LastResort)
_ASK = "compact again, compact without a model, or go on as it is"


def or_else(
    work: Steps[Plan | Skip],
    request: Request,
    last_resort: LastResort,
    max_tokens: int | None = None,
    on_failure: Callable[[Request], object] | None = None,
) -> Steps[Plan | Skip]:
    """The work's plan; where its summary failed or it broke, what the policy says instead."""
    try:
        answer = yield from work
    except Exception as problem:
        log.exception("a strategy broke")
        answer = Skip(Outcome.SUMMARY_FAILED, f"the strategy broke: {type(problem).__name__}: {problem}")
    failed = _failed(answer, request)
    if failed is None:
        return answer
    answer = failed
    if request.asks:
        log.warning("no summary of %s: %s", request.session_id or "the messages", answer.why)
    if on_failure is not None:
        try:
            on_failure(request)
        except Exception:
            log.exception("the callback broke that was to hear of it")
    limit = request.target if request.target is not None else request.budget
    enough = answer.outcome is Outcome.NO_PROGRESS and limit is not None and request.tokens <= limit
    if last_resort == "unchanged" or enough:
        return answer
    if last_resort == "ask":
        return msgspec.structs.replace(answer, why=f"{answer.why}. It is for you to decide: {_ASK}.")
    instead = KeepLedger(max_tokens) if last_resort == "ledger" else Truncate(max_tokens=max_tokens)
    plan = instead(request)
    if isinstance(plan, Skip):
        return answer
    remark = f"no summary ({answer.why}): {plan.by} instead"
    return msgspec.structs.replace(plan, fallback=plan.by, remarks=(*plan.remarks, remark))


def _failed(answer: Plan | Skip | None, request: Request) -> Skip | None:
    """Why this answer will not do; None if it will, or if there was nothing to do."""
    if isinstance(answer, Plan):
        after = follow(request, answer).tokens
        if after < request.tokens:
            return None
        return Skip(Outcome.NO_PROGRESS, f"{request.tokens} tokens would become {after}", answer.remarks)
    if answer is None:
        return Skip(Outcome.SUMMARY_FAILED, "the strategy came to nothing")
    return answer if answer.outcome is Outcome.SUMMARY_FAILED else None
