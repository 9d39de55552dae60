"""Properties of every strategy on random histories in every wire format (H1, H2, S14)."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_table import (
    CHARS,
    LIMITED,
    PROFILES,
    STRATEGIES,
    WINDOWS,
    Messages,
    repaired,
    size_of,
    smallest,
    tokens_of,
)

import histories
from holdfast import Outcome, check, compact
from holdfast.triggers import always
from judge import bound_reasoning, bound_thinking, judge
from judge.unread import newest_part, unread_results

EXAMPLES = min(130, settings().max_examples)
thorough = settings(max_examples=130 if EXAMPLES > 60 else EXAMPLES)


@pytest.mark.sampled
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", STRATEGIES)
@given(data=st.data(), share=st.floats(0.05, 0.95), broken=st.booleans())
@thorough
def test_result_is_valid_smaller_and_fits(name: str, profile: str, data: Any, share: float, broken: bool) -> None:
    given_messages: Messages = data.draw(histories.wire(profile, broken=broken))
    untouched = copy.deepcopy(given_messages)
    repaired_messages = repaired(given_messages, profile)
    before = tokens_of(repaired_messages, profile)
    size = size_of(given_messages, profile, share)
    limit = size.tokens
    options: dict[str, Any] = {"budget": max(1, before), "target": limit, "estimator": CHARS, "format": profile}
    result = compact(given_messages, strategy=STRATEGIES[name](size), trigger=always, **options)

    assert given_messages == untouched
    assert check(result.messages, profile) == []
    assert judge(result.messages, profile) == []
    if profile == "anthropic" and not judge(given_messages, profile):
        assert bound_thinking(given_messages, result.messages) == []
    if profile == "openai-responses":
        assert bound_reasoning(repaired_messages, result.messages) == []
    assert bool(result.messages) == bool(repaired_messages)
    after = tokens_of(result.messages, profile)
    assert after <= before
    assert after <= result.tokens_after <= before
    if name in LIMITED and result.outcome is not Outcome.NOTHING_TO_COMPACT:
        unread = newest_part(repaired_messages, profile) if unread_results(repaired_messages, profile) else []
        lift = tokens_of(unread, profile)  # what was asked for takes no room from the target (H10)
        assert after <= max(limit + lift, smallest(given_messages, profile))
    if result.outcome is not Outcome.COMPACTED:
        assert result.archived == [] or result.outcome is Outcome.CANNOT_FIT
    again = compact(given_messages, strategy=STRATEGIES[name](size), trigger=always, **options)
    assert again.messages == result.messages
    assert len(result.archived) == result.removed
    assert len(result.kept) + result.removed == len(given_messages)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), share=st.floats(0.1, 0.9))
@thorough
def test_window_applied_again_changes_nothing(name: str, profile: str, data: Any, share: float) -> None:
    messages: Messages = data.draw(histories.wire(profile))
    size = size_of(messages, profile, share)
    options: dict[str, Any] = {"budget": 10**9, "estimator": CHARS, "format": profile, "trigger": always}
    first = compact(messages, strategy=STRATEGIES[name](size), **options)
    second = compact(first.messages, strategy=STRATEGIES[name](size), **options)
    assert second.messages == first.messages
    third = compact(messages, strategy=STRATEGIES[name](size), previous=first.checkpoint, **options)
    assert third.messages == first.messages


@pytest.mark.sampled(8)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["default", "truncate", "tokens", "prune+tokens"])
def test_compaction_succeeds_where_possible(name: str, profile: str) -> None:
    outcomes: Counter[Outcome] = Counter()

    @given(messages=histories.wire(profile, broken=True), share=st.floats(0.1, 0.9))
    @thorough
    def tally(messages: Messages, share: float) -> None:
        size = size_of(messages, profile, share)
        before = tokens_of(repaired(messages, profile), profile)
        if smallest(messages, profile) <= size.tokens < before:
            options: dict[str, Any] = {"budget": size.tokens, "target": size.tokens, "estimator": CHARS}
            outcomes[compact(messages, strategy=STRATEGIES[name](size), format=profile, **options).outcome] += 1

    tally()
    assert outcomes[Outcome.COMPACTED] >= 0.95 * outcomes.total() > 0, outcomes
