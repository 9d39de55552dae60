"""Summaries of random histories in every wire format: results are valid and no tool pair is split (H2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_table import PROFILES, Messages, repaired, tokens_of

import histories
from holdfast import Outcome, Pipeline, PruneToolResults, StructuredSummary, Summary, check, compact
from holdfast.errors import CheckpointMismatch
from holdfast.models import ModelCall, ScriptedModel
from holdfast.strategies import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepRecent,
    KeepUserMessages,
    RecursiveSummary,
    StateSummary,
)
from holdfast.summaries import AsExchange, AsUser, FreeText, as_assistant
from holdfast.triggers import always
from judge import bound_reasoning, bound_thinking, judge

if TYPE_CHECKING:
    from holdfast.types import Strategy

STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "recursive": lambda n: RecursiveSummary(n + 1, n),
    "structured": lambda n: StructuredSummary(KeepRecent(50 * n + 1)),
    "layer": lambda n: StructuredSummary(KeepLast(n + 1), shown_as=as_assistant, last_resort="unchanged"),
    "state": lambda n: StateSummary(n + 1),
    "pi": lambda n: Summary(KeepRecent(50 * n + 1, fresh_only=True), FreeText(), AsUser(), last_resort="ask"),
    "whole": lambda n: Summary(KeepNothing(), FreeText(), AsUser()),
    "users": lambda n: Summary(KeepUserMessages(50 * n + 1), FreeText(), AsUser()),
    "goat": lambda n: Summary(KeepFraction(0.4), FreeText(), AsExchange(), last_resort="truncate"),
    "opencode": lambda n: Pipeline(
        PruneToolResults(50 * n, 0), Summary(KeepNothing(), FreeText(), as_assistant, name="whole")
    ),
}
EXAMPLES = settings(max_examples=min(20, settings().max_examples))


def answer(call: ModelCall) -> str:
    call.prompt.encode()
    if "### Completed Work" in call.prompt:
        return "### Completed Work\n- None\n\n### Current State\n- Working on: the log\n"
    if "state_delta" in call.prompt:
        return json.dumps({"summary": "KEY FACTS\nthey looked at the log", "state_delta": {"tasks": ["look again"]}})
    return "They looked at the log."


@pytest.mark.sampled
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", STRATEGIES)
@given(data=st.data(), keep=st.integers(0, 4), broken=st.booleans())
@EXAMPLES
def test_summary_leaves_a_context_that_the_provider_accepts(
    name: str, profile: str, data: Any, keep: int, broken: bool
) -> None:
    """(behaviour 10) Two rounds with parallel batches, loops with reasoning, late duplicates and orphans."""
    history: Messages = data.draw(histories.wire(profile, broken=broken))
    options: dict[str, Any] = {
        "budget": 10**6,
        "estimator": "chars/4",
        "format": profile,
        "trigger": always,
        "min_saving": 0.0,
        "strategy": STRATEGIES[name](keep),
        "summarizer": ScriptedModel(answer, repeat=True),
    }
    stop = data.draw(st.integers(1, len(history)))
    while stop < len(history) and check(history[:stop], profile, ready=True):
        stop += 1
    first = compact(history[:stop], **options)
    accepted(history[:stop], first.messages, profile)
    assert len(first.kept) + len(first.archived) == stop
    given, more = first.messages + history[stop:], {"previous": first.checkpoint, **options}
    try:
        second = compact(given, **more)
    except CheckpointMismatch:
        assert broken, "only if later messages are repaired together with earlier ones"
        return
    accepted(given, second.messages, profile)
    if first.checkpoint is not None and not broken:
        assert compact(history, **more).messages == second.messages


def accepted(before: Messages, after: Messages, profile: str) -> None:
    assert check(after, profile) == []
    assert judge(after, profile) == []
    whole = repaired(before, profile)
    assert bool(after) == bool(whole)
    assert tokens_of(after, profile) <= tokens_of(whole, profile)
    if profile == "anthropic" and not judge(before, profile):
        assert bound_thinking(before, after) == []
    if profile == "openai-responses":
        assert bound_reasoning(whole, after) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STRATEGIES)
def test_long_history_is_compacted_by_every_strategy(name: str) -> None:
    """Guards the test above, which would pass if nothing were ever compacted."""
    outcomes: list[Outcome] = []

    @given(data=st.data(), profile=st.sampled_from(PROFILES))
    @settings(max_examples=60, derandomize=True)
    def tally(data: Any, profile: str) -> None:
        messages: Messages = data.draw(histories.wire(profile))
        if tokens_of(messages, profile) < 2_000 or sum(message.get("role") == "user" for message in messages) < 3:
            return
        options: dict[str, Any] = {"estimator": "chars/4", "trigger": always, "format": profile, "budget": 10**6}
        model = ScriptedModel(answer, repeat=True)
        outcomes.append(compact(messages, strategy=STRATEGIES[name](1), summarizer=model, **options).outcome)

    tally()
    assert Outcome.COMPACTED in outcomes
