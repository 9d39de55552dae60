"""Decisions: when nothing happens, which plans are refused, and the outcome of an accepted one (S1, H2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast import KeepLedger, Outcome, TokenWindow
from holdfast.compaction import Decision, validate_plan
from holdfast.messages import Message, framed_message
from holdfast.strategies import as_strategy
from holdfast.types import Plan, Request, Skip, Strategy
from sized import Messages, assistant, calls, request_for, result, user

TALK: Messages = [user(100), assistant(100)] * 5
TASK = as_strategy(lambda request: Skip(Outcome.NOTHING_TO_COMPACT))
NOTE = framed_message("Earlier, the depths were read.")


def decide(
    answer: Skip | Callable[[Plan], Plan],
    messages: Messages = TALK,
    min_saving: float = 0.0,
    strategy: Strategy = TASK,
    **options: Any,
) -> Decision:
    """Validates a skip, or what a strategy makes of the context as it is."""
    request = request_for(messages, **options)
    planned = answer if isinstance(answer, Skip) else answer(request.plan)
    return validate_plan(request, strategy, planned, min_saving=min_saving)


def archive(before: int, *notes: Message, name: str = "", **changes: Any) -> Callable[[Plan], Plan]:
    """Archives, shows notes if there are any, and changes fields of the plan."""

    def make(plan: Plan) -> Plan:
        summary = changes.pop("summary", None)
        plan = plan.archive(before)
        plan = plan.show(notes, summary) if notes else plan
        return msgspec.structs.replace(plan.made_by(name) if name else plan, **changes)

    return make


def outcome(decision: Decision) -> tuple[Outcome, int, bool]:
    return decision.outcome, decision.tokens_after, decision.plan is not None


# -- skips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Outcome.NOTHING_TO_COMPACT, Outcome.SUMMARY_FAILED, Outcome.NO_PROGRESS])
def test_skip_under_the_budget_keeps_its_outcome_and_reason(kind: Outcome) -> None:
    decision = decide(Skip(kind, "because", ("a remark",)), budget=2_000)
    assert outcome(decision) == (kind, 1_000, False)
    assert (decision.why, decision.remarks) == ("because", ("a remark",))


def test_skip_without_progress_over_the_budget_cannot_fit() -> None:
    assert decide(Skip(Outcome.NO_PROGRESS), budget=500).outcome is Outcome.CANNOT_FIT


def test_skip_with_nothing_to_compact_over_the_budget_falls_back_to_a_token_window() -> None:
    decision = decide(Skip(Outcome.NOTHING_TO_COMPACT), budget=500)
    assert outcome(decision) == (Outcome.COMPACTED, 400, True)


def test_failed_summary_over_the_budget_is_not_replaced() -> None:
    assert outcome(decide(Skip(Outcome.SUMMARY_FAILED), budget=500)) == (Outcome.SUMMARY_FAILED, 1_000, False)


# -- plans ----------------------------------------------------------------------------------------------


def test_plan_that_archives_is_accepted() -> None:
    decision = decide(archive(4))
    assert outcome(decision) == (Outcome.COMPACTED, 600, True)
    assert decision.plan is not None and decision.plan.archived == (0, 1, 2, 3)


def test_plan_that_changes_nothing_makes_no_progress() -> None:
    assert outcome(decide(archive(0))) == (Outcome.NO_PROGRESS, 1_000, False)


def test_plan_with_notes_larger_than_what_they_replace_is_refused() -> None:
    assert outcome(decide(archive(2, framed_message("word " * 2_000)))) == (Outcome.NO_PROGRESS, 1_000, False)


@pytest.mark.parametrize(("saving", "accepted"), [(0.2, True), (0.21, False)])
def test_plan_must_save_the_smallest_saving(saving: float, accepted: bool) -> None:
    assert (decide(archive(2), min_saving=saving).plan is not None) is accepted


def test_plan_over_the_budget_that_fits_is_accepted_however_little_it_saves() -> None:
    assert outcome(decide(archive(2), min_saving=0.5, budget=950)) == (Outcome.COMPACTED, 800, True)
    assert outcome(decide(archive(2), min_saving=0.5, budget=1_000)) == (Outcome.NO_PROGRESS, 1_000, False)


def test_plan_that_helps_but_does_not_fit_is_followed_by_what_makes_it_fit() -> None:
    """Results of an unfinished tool loop may not be archived, but shortened."""
    batch: Messages = [user(100), assistant(100), user(50), calls("a", "b"), result("a", 300), result("b", 900)]
    decision = decide(archive(2, name="mine"), batch, min_saving=0.9, budget=500)
    assert decision.outcome is Outcome.COMPACTED
    assert decision.tokens_after <= 500
    assert decision.plan is not None and decision.plan.strategy == "mine+shortened results"
    assert len(decision.plan.messages) == 4


def test_plan_that_parts_a_call_from_its_result_is_refused() -> None:
    broken: Messages = [user(100), calls("a"), result("a", 100), assistant(50), user(50)]
    decision = decide(archive(2), broken)
    assert (decision.outcome, decision.plan) == (Outcome.NO_PROGRESS, None)
    assert "the result would be invalid" in decision.why


def test_plan_over_the_budget_is_followed_by_a_token_window() -> None:
    decision = decide(archive(2, name="mine"), budget=500)
    assert outcome(decision) == (Outcome.COMPACTED, 400, True)
    assert decision.plan is not None and decision.plan.strategy == "mine+token window"


def test_target_of_the_strategy_limits_a_request_without_a_budget() -> None:
    strategy: Strategy = TokenWindow(300)
    decision = decide(archive(2), strategy=strategy)
    assert outcome(decision) == (Outcome.COMPACTED, 200, True)


def test_target_of_the_strategy_is_reached_below_the_budget_too() -> None:
    assert outcome(decide(archive(2), strategy=TokenWindow(300), budget=900)) == (Outcome.COMPACTED, 200, True)


def test_plan_leaves_room_for_what_is_appended_before_the_next_compaction() -> None:
    request = request_for(TALK, budget=900)
    request.gap = 300
    decision = validate_plan(request, TASK, archive(2)(request.plan))
    assert outcome(decision) == (Outcome.COMPACTED, 600, True)


def test_target_of_the_plan_precedes_the_target_of_the_strategy() -> None:
    decision = decide(archive(2, target=800), strategy=TokenWindow(1), budget=900)
    assert decision.tokens_after == 800


def test_newest_user_message_larger_than_the_budget_cannot_fit() -> None:
    huge: Messages = [user(100), assistant(100), user(900)]
    decision = decide(archive(2), huge, budget=500)
    assert outcome(decision) == (Outcome.CANNOT_FIT, 900, True)
    assert "900 tokens, over the limit of 500" in decision.why


def test_notes_are_dropped_where_they_do_not_fit() -> None:
    tight: Messages = [user(100), assistant(100), user(490)]
    decision = decide(archive(2, NOTE), tight, budget=500)
    assert outcome(decision) == (Outcome.COMPACTED, 490, True)


def test_summary_is_kept_where_dropping_it_would_not_reach_the_target() -> None:
    tight: Messages = [user(100), assistant(100), user(400)]
    decision = decide(archive(2, NOTE, summary="the depths were read", target=300), tight, budget=500)
    assert decision.plan is not None and [shown.message for shown in decision.plan.head][:1] == [NOTE]


PAGE = framed_message(
    "[Notes on the earlier conversation: 2 messages are no longer shown.]\n\n## Task [1]\nSound the basin.\n\n"
    "## Later user messages\n[2] Never use feet. It rains.\n\n## Relevant excerpts\n" + "the tide rose again\n" * 60
)


def test_h10_page_gives_way_to_an_unread_result_but_for_task_and_rules() -> None:
    loop: Messages = [user(50), assistant(50), user(50), calls("b"), result("b", 300)]
    decision = decide(archive(2, PAGE), loop, budget=450, target=100)
    assert decision.plan is not None and decision.tokens_after <= 450
    page, *_, last = decision.plan.messages
    assert "Sound the basin." in page.text and "[2] Never use feet." in page.text
    assert "tide" not in page.text and "rains" not in page.text
    assert last.results[0].text == loop[4]["content"]


def test_h10_unread_result_is_shortened_no_further_than_the_limit_requires() -> None:
    loop: Messages = [user(50), calls("b"), result("b", 900)]
    decision = decide(archive(0), loop, budget=500, target=100)
    assert 480 <= decision.tokens_after <= 500


def test_remarks_of_the_plan_reach_the_decision() -> None:
    assert decide(archive(2, remarks=("restored a fact",))).remarks == ("restored a fact",)


# -- strategies as protocol -------------------------------------------------------------------------------


def test_as_strategy_wraps_a_function_without_limits_of_its_own() -> None:
    def plan(request: Request) -> Plan:
        return request.plan.archive(2)

    strategy = as_strategy(plan)
    assert isinstance(strategy, Strategy)
    assert (strategy.target, strategy.min_saving) == (None, 0.0)
    planned = strategy(request_for(TALK))
    assert isinstance(planned, Plan) and planned.cut == 2


def test_as_strategy_returns_a_strategy_unchanged() -> None:
    ledger = KeepLedger(max_tokens=500)
    assert as_strategy(ledger) is ledger
    assert ledger.target == 500


def test_as_strategy_keeps_the_one_limit_that_a_callable_has() -> None:
    class OnlyTarget:
        target = 300

        def __call__(self, request: Request) -> Plan:
            return request.plan.archive(2)

    assert (as_strategy(OnlyTarget()).target, as_strategy(OnlyTarget()).min_saving) == (300, 0.0)
