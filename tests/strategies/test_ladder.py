"""What happens where a summary does not come about: each policy, and what is never a reason for one (P9, G6, L11)."""

from __future__ import annotations

import logging
from typing import Any, get_args

import anyio
import pytest

from holdfast import (
    Abort,
    AsUser,
    CompactionResult,
    Failure,
    FreeText,
    InvalidInput,
    KeepLast,
    Limits,
    Outcome,
    Reply,
    ScriptedModel,
    Summary,
    Usage,
    acompact,
    always,
    compact,
)
from holdfast.calls import ModelCall, Steps
from holdfast.messages import framed
from holdfast.strategies import LAST_RESORTS, LastResort, or_else
from holdfast.view import Plan, Request, Skip
from sized import Messages, user

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


def test_there_are_four_policies_and_no_others() -> None:
    assert tuple(get_args(LastResort)) == LAST_RESORTS == ("unchanged", "truncate", "ledger", "ask")
    with pytest.raises(InvalidInput, match="unchanged, truncate, ledger, ask"):
        summary("pray")


def test_s13_unchanged() -> None:
    result = run(summary("unchanged"), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, history())
    assert (result.why, result.fallback) == ("transport: Overloaded (HTTP 529)", "")


def test_p9_ask_says_what_can_be_done() -> None:
    result = run(summary("ask"), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, history())
    assert "Overloaded" in result.why
    assert "for you to decide" in result.why


@pytest.mark.parametrize(("policy", "by"), [("truncate", "truncation"), ("ledger", "ledger")])
def test_g6_a_way_out_that_needs_no_model(policy: str, by: str) -> None:
    result = run(summary(policy), ScriptedModel(DOWN, repeat=True))
    assert (result.outcome, result.fallback) == (Outcome.COMPACTED, by)
    assert result.tokens_after <= 500
    assert history()[-2] in result.messages, "the newest of what the user said"
    assert [remark for remark in result.remarks if "Overloaded" in remark and by in remark]
    assert result.checkpoint is not None
    assert result.checkpoint.fallback == by


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_the_callback_hears_of_it_once_whatever_the_policy(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Request] = []
    with caplog.at_level(logging.WARNING, "holdfast"):
        run(summary(policy, on_failure=heard.append), ScriptedModel(DOWN, repeat=True))
    assert len(heard) == 1
    assert caplog.text.count("no summary") == 1


def test_a_callback_that_breaks_does_not_break_the_compaction() -> None:
    """L11, G6: the agent's loop never fails because of compaction."""

    def breaks(request: Request) -> None:
        raise RuntimeError("the telephone is out of order")

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
    return Skip(Outcome.SUMMARY_FAILED, "it came to nothing")


def returns_nothing(request: Request) -> Steps[Any]:
    yield (ModelCall("?"),)


def grows(request: Request) -> Steps[Plan | Skip]:
    yield (ModelCall("?"),)
    return Plan(4, notes=(framed("word " * 20_000),), by="mine")


OWN = [raises, raises_at_once, gives_up, returns_nothing, grows]


@pytest.mark.parametrize("policy", ["ledger", "truncate"])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_a_strategy_of_ones_own_that_fails_falls_back(own: Any, policy: Any) -> None:
    """(behaviour 20) It throws, comes to nothing, or does not shrink what it was to shrink."""
    result = run(lambda request: or_else(own(request), request, policy), ScriptedModel("yes", repeat=True))
    assert result.outcome is Outcome.COMPACTED
    assert result.fallback == {"ledger": "ledger", "truncate": "truncation"}[policy]
    assert result.tokens_after <= 500
    assert result.remarks


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_a_strategy_of_ones_own_that_fails_leaves_everything_where_that_is_the_policy(own: Any) -> None:
    """(behaviour 20)"""
    given = history()[:6]
    result = run(
        lambda request: or_else(own(request), request, "unchanged"),
        ScriptedModel("yes"),
        given,
        trigger=always,
        budget=10**6,
    )
    assert result.outcome in (Outcome.SUMMARY_FAILED, Outcome.NO_PROGRESS)
    assert result.messages == given


def test_nothing_to_compact_is_no_failure() -> None:
    """(behaviour 20)"""
    heard: list[Request] = []
    result = run(summary("ledger", on_failure=heard.append), ScriptedModel("never"), [user(20)], trigger=always)
    assert (result.outcome, result.fallback, heard) == (Outcome.NOTHING_TO_COMPACT, "", [])


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_an_abort_falls_back_on_nothing(policy: str) -> None:
    """(behaviour 20: cancellation is no reason for a fallback)"""
    abort, heard = Abort(), list[Request]()

    def stops(call: ModelCall) -> Reply:
        abort()
        return Reply("never read")

    result = run(summary(policy, on_failure=heard.append), ScriptedModel(stops), abort=abort)
    assert (result.outcome, result.fallback, heard) == (Outcome.ABORTED, "", [])
    assert (result.messages, result.checkpoint) == (history(), None)


@pytest.mark.parametrize("policy", LAST_RESORTS)
def test_a_cancelled_task_falls_back_on_nothing(policy: str) -> None:
    """(behaviour 20)"""
    heard: list[Request] = []

    async def main() -> bool:
        with anyio.CancelScope() as scope:

            def stops(call: ModelCall) -> Reply:
                scope.cancel()
                return Reply("never read")

            strategy = summary(policy, on_failure=heard.append)
            await acompact(
                history(), budget=1_000, estimator="chars/4", strategy=strategy, summarizer=ScriptedModel(stops)
            )
        return scope.cancelled_caught

    assert anyio.run(main)
    assert heard == []


# -- what is an overflow, and what only sounds like one (behaviour 4) -----------------------------------------------


def test_a_throttled_summariser_is_asked_the_same_again() -> None:
    """(behaviour 4) 429 is not overflow: nothing is left out for it."""
    slow = Failure("transport", "Rate limit reached: too many tokens per minute (HTTP 429)", retry_after=0.0)
    model = ScriptedModel([slow, slow, "a summary of all of it"])
    result = run(summary("unchanged"), model)
    assert result.outcome is Outcome.COMPACTED
    assert len({call.prompt for call in model.calls}) == 1


def test_a_summariser_that_read_more_than_its_window_has_not_read_it_all() -> None:
    """(behaviour 4: silent overflow by usage) It answers as if nothing were wrong, from what was left of the prompt."""

    class Small(ScriptedModel):
        name = "openai:gpt-4"  # type: ignore[assignment]  # 8,192 tokens in the catalog

    model = Small([Reply("only of its end", usage=Usage(9_000, 5)), Reply("of all of it", usage=Usage(4_000, 5))])
    result = run(summary("unchanged"), model)
    assert result.outcome is Outcome.COMPACTED
    assert len(model.calls) == 2
    assert "of all of it" in str(result.messages)
