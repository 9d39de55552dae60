"""Fallback policies for a failed summary, and cases that never fall back (P9, G6, L11)."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any, get_args

import anyio
import pytest

from holdfast import Abort, CompactionResult, Outcome, Summary, acompact, compact
from holdfast.context import Plan, Request, Skip
from holdfast.errors import InvalidInput, SummaryFailed
from holdfast.messages import framed_message
from holdfast.models import Failure, Limits, Reply, ScriptedModel
from holdfast.models.calls import ModelCall, Steps
from holdfast.strategies import LAST_RESORTS, KeepLast, LastResort, with_fallback
from holdfast.summaries import AsUser, FreeText
from holdfast.tokens import Usage
from holdfast.triggers import always
from sized import Messages, assistant, user

OVERFLOW = Failure("overflow", "prompt is too long")
DOWN = Failure("transport", "Overloaded (HTTP 529)")


def history() -> Messages:
    return [
        {"role": role, "content": f"{role} {number} " + "speaks of the harbour and its ships " * 12}
        for number in range(12)
        for role in ("user", "assistant")
    ]


def run(strategy: Any, model: Any, messages: Messages | None = None, **more: Any) -> CompactionResult:
    options: dict[str, Any] = {"budget": 1_000, "estimator": "chars/4", "limits": Limits(backoff=0)}
    return compact(messages or history(), strategy=strategy, summarizer=model, **options | more)


def summary(last_resort: Any, **more: Any) -> Summary:
    return Summary(KeepLast(4), FreeText(), AsUser(), last_resort=last_resort, verify=False, **more)


def test_last_resort_accepts_exactly_five_policies() -> None:
    assert tuple(get_args(LastResort)) == LAST_RESORTS == ("unchanged", "truncate", "ledger", "ask", "error")
    with pytest.raises(InvalidInput, match="unchanged, truncate, ledger, ask, error"):
        summary("pray")


def test_s13_unchanged_leaves_the_messages() -> None:
    result = run(summary("unchanged"), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, history())
    assert (result.why, result.fallback) == ("no answer from the model: Overloaded (HTTP 529)", "")


def test_p9_ask_lists_the_choices() -> None:
    result = run(summary("ask"), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, history())
    assert "Overloaded" in result.why
    assert "Choose: compact again" in result.why


@pytest.mark.parametrize(("policy", "by"), [("truncate", "truncation"), ("ledger", "ledger")])
def test_g6_truncate_and_ledger_need_no_model(policy: str, by: str) -> None:
    result = run(summary(policy), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.fallback) == (Outcome.COMPACTED, by)
    assert result.tokens_after <= 500
    assert history()[-2] in result.messages, "the newest user message"
    assert [remark for remark in result.remarks if "Overloaded" in remark and by in remark]
    assert result.checkpoint is not None
    assert result.checkpoint.fallback == by


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_callback_is_called_once_for_any_policy(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Request] = []
    raised = pytest.raises(SummaryFailed, match="Overloaded") if policy == "error" else nullcontext()
    with caplog.at_level(logging.WARNING, "holdfast"), raised:
        run(summary(policy, on_failure=failures.append), ScriptedModel(DOWN, repeat=True))
    assert len(failures) == 1
    assert caplog.text.count("no summary") == 1


def test_callback_that_raises_does_not_fail_the_compaction() -> None:
    """L11, G6: the agent's loop never fails because of compaction."""

    def breaks(request: Request) -> None:
        raise RuntimeError("the callback failed")

    result = run(summary("ledger", on_failure=breaks), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "ledger")


# -- strategies of one's own (behaviour 20) -------------------------------------------------------------------------


def raises(request: Request) -> Steps[Plan | Skip]:
    yield (ModelCall("?"),)
    raise LookupError("no such thing")


def raises_at_once(request: Request) -> Steps[Plan | Skip]:
    raise LookupError("no such thing")
    yield


def gives_up(request: Request) -> Steps[Plan | Skip]:
    yield (ModelCall("?"),)
    return Skip(Outcome.SUMMARY_FAILED, "it returned no summary")


def returns_nothing(request: Request) -> Steps[Any]:
    yield (ModelCall("?"),)


def grows(request: Request) -> Steps[Plan | Skip]:
    yield (ModelCall("?"),)
    return request.plan.archive(4).show([framed_message("word " * 20_000)]).made_by("mine")


OWN = [raises, raises_at_once, gives_up, returns_nothing, grows]


@pytest.mark.parametrize("policy", ["ledger", "truncate"])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_custom_strategy_that_fails_falls_back(own: Any, policy: Any) -> None:
    """(behaviour 20) It raises, returns nothing, or does not shrink the context."""
    result = run(lambda request: with_fallback(own(request), request, policy), ScriptedModel("yes", repeat=True))
    assert result.outcome is Outcome.COMPACTED
    assert result.fallback == {"ledger": "ledger", "truncate": "truncation"}[policy]
    assert result.tokens_after <= 500
    assert result.remarks


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_custom_strategy_that_fails_with_unchanged_leaves_messages(own: Any) -> None:
    """(behaviour 20)"""
    given = history()[:6]
    result = run(
        lambda request: with_fallback(own(request), request, "unchanged"),
        ScriptedModel("yes"),
        given,
        trigger=always,
        budget=10**6,
    )
    assert result.outcome in (Outcome.SUMMARY_FAILED, Outcome.NO_PROGRESS)
    assert result.messages == given


def test_nothing_to_compact_is_not_a_failure() -> None:
    """(behaviour 20)"""
    failures: list[Request] = []
    result = run(summary("ledger", on_failure=failures.append), ScriptedModel("never"), [user(20)], trigger=always)
    assert (result.outcome, result.fallback, failures) == (Outcome.NOTHING_TO_COMPACT, "", [])


def test_summary_that_would_not_shrink_a_context_that_fits_is_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """(behaviour 20, S13) Nothing is wrong: there is nothing to gain."""
    failures: list[Request] = []
    given = [user(20), assistant(20), user(20), assistant(20), user(20), assistant(20)]
    result = run(
        summary("ledger", on_failure=failures.append), ScriptedModel("word " * 60), given, trigger=always, budget=10**6
    )
    assert (result.outcome, result.fallback, failures) == (Outcome.NO_PROGRESS, "", [])
    assert "no summary" not in caplog.text


# -- without a fallback ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ScriptedModel("yes"), None], ids=["with a model", "without"])
@pytest.mark.parametrize(
    ("own", "why"),
    [
        (raises_at_once, "the strategy failed: no such thing"),
        (lambda request: None, "the strategy failed: it returned NoneType: a strategy returns a Plan or a Skip"),
        (
            lambda request: request.plan.archive(99),
            "the strategy failed: The plan refers to messages that do not exist",
        ),
    ],
    ids=["raising", "returning None", "a plan of nothing"],
)
@pytest.mark.parametrize("budget", [10**6, 100], ids=["under the budget", "over it"])
def test_g6_exception_of_a_strategy_is_an_outcome(
    own: Any, why: str, budget: int, model: ScriptedModel | None, caplog: pytest.LogCaptureFixture
) -> None:
    """G6, L11: the agent's loop never fails because of compaction."""
    result = compact(history(), budget=budget, strategy=own, trigger=always, summarizer=model, estimator="chars/4")
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, history())
    assert result.why.startswith(why)
    assert "raised an exception" in caplog.text and "Traceback" in caplog.text


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_abort_never_falls_back(policy: str) -> None:
    """(behaviour 20) Cancellation never causes a fallback."""
    abort, failures = Abort(), list[Request]()

    def stops(call: ModelCall) -> Reply:
        abort()
        return Reply("never read")

    result = run(summary(policy, on_failure=failures.append), ScriptedModel(stops), abort=abort)
    assert (result.outcome, result.fallback, failures) == (Outcome.ABORTED, "", [])
    assert (result.messages, result.checkpoint) == (history(), None)


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_cancelled_task_never_falls_back(policy: str) -> None:
    """(behaviour 20)"""
    failures: list[Request] = []

    async def main() -> bool:
        with anyio.CancelScope() as scope:

            def stops(call: ModelCall) -> Reply:
                scope.cancel()
                return Reply("never read")

            strategy = summary(policy, on_failure=failures.append)
            await acompact(
                history(), budget=1_000, estimator="chars/4", strategy=strategy, summarizer=ScriptedModel(stops)
            )
        return scope.cancelled_caught

    assert anyio.run(main)
    assert failures == []


# -- what is an overflow, and what only sounds like one (behaviour 4) -----------------------------------------------


def test_throttled_summarizer_is_retried_with_same_prompt() -> None:
    """(behaviour 4) HTTP 429 is not an overflow: the input is not reduced."""
    slow = Failure("transport", "Rate limit reached: too many tokens per minute (HTTP 429)", retry_after=0.0)
    model = ScriptedModel([slow, slow, "a summary of all of it"])
    result = run(summary("unchanged"), model)
    assert result.outcome is Outcome.COMPACTED
    assert len({call.prompt for call in model.calls}) == 1


def test_summarizer_usage_above_window_counts_as_overflow() -> None:
    """(behaviour 4) Silent overflow, seen by usage: the provider truncated the prompt without an error."""

    class Small(ScriptedModel):
        name = "openai:gpt-4"  # type: ignore[assignment]  # 8,192 tokens in the catalog

    model = Small([Reply("only of its end", usage=Usage(9_000, 5)), Reply("of all of it", usage=Usage(4_000, 5))])
    result = run(summary("unchanged"), model)
    assert result.outcome is Outcome.COMPACTED
    assert len(model.calls) == 2
    assert "of all of it" in str(result.messages)
