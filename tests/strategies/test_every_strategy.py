"""What holds for every strategy, on random histories in every wire format (H1, H2, S14)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import (
    KeepFraction,
    KeepLast,
    Outcome,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    TurnWindow,
    always,
    check,
    compact,
)
from holdfast.boundaries import repair
from holdfast.messages import decode_all, encode_all, profile_for
from holdfast.tokens import estimator_for
from judge import bound_reasoning, bound_thinking, judge

PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini")
CHARS = estimator_for("chars/4")
Messages = list[dict[str, Any]]

STRATEGIES: dict[str, Any] = {
    "default": lambda n: None,
    "truncate": lambda n: Truncate(max_tokens=n),
    "sliding": lambda n: SlidingWindow(max(1, n // 60)),
    "turns": lambda n: TurnWindow(max(1, n // 400)),
    "tokens": lambda n: TokenWindow(n),
    "last": lambda n: KeepLast(max(1, n // 60)),
    "fraction": lambda n: KeepFraction(0.4),
    "prune": lambda n: PruneToolResults(protect=n // 2, minimum=0),
    "prune+tokens": lambda n: Pipeline(PruneToolResults(protect=n // 4, minimum=0), TokenWindow(n)),
}
LIMITED = ("default", "truncate", "tokens", "prune+tokens")

EXAMPLES = min(130, settings().max_examples)
thorough = settings(max_examples=130 if EXAMPLES > 60 else EXAMPLES)


def tokens_of(messages: Messages, profile: str) -> int:
    return sum(map(CHARS.measure, decode_all(messages, profile)[0]))


def repaired(messages: Messages, profile: str) -> Messages:
    return encode_all(repair(decode_all(messages, profile)[0], profile_for(profile)), profile)


def smallest(messages: Messages, profile: str) -> int:
    """System messages, the newest user message and its unfinished tool loop: what must be possible."""
    whole = compact(messages, budget=1, strategy=TokenWindow(1), estimator=CHARS, format=profile, trigger=always)
    return tokens_of(whole.messages, profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", STRATEGIES)
@given(data=st.data(), share=st.floats(0.05, 0.95), broken=st.booleans())
@thorough
def test_the_result_is_valid_smaller_and_fits(name: str, profile: str, data: Any, share: float, broken: bool) -> None:
    given_messages: Messages = data.draw(histories.wire(profile, broken=broken))
    untouched = copy.deepcopy(given_messages)
    mended = repaired(given_messages, profile)
    before = tokens_of(mended, profile)
    limit = max(1, int(before * share))
    options: dict[str, Any] = {"budget": max(1, before), "target": limit, "estimator": CHARS, "format": profile}
    strategy = STRATEGIES[name](limit)
    result = compact(given_messages, strategy=strategy, trigger=always, **options)

    assert given_messages == untouched
    assert check(result.messages, profile) == []
    assert judge(result.messages, profile) == []
    if profile == "anthropic" and not judge(given_messages, profile):
        assert bound_thinking(given_messages, result.messages) == []
    if profile == "openai-responses":
        assert bound_reasoning(mended, result.messages) == []
    assert bool(result.messages) == bool(mended)
    after = tokens_of(result.messages, profile)
    assert after <= before
    assert after <= result.tokens_after <= before
    if name in LIMITED and result.outcome is not Outcome.NOTHING_TO_COMPACT:
        assert after <= max(limit, smallest(given_messages, profile))
    if result.outcome is not Outcome.COMPACTED:
        assert result.archived == [] or result.outcome is Outcome.CANNOT_FIT
    again = compact(given_messages, strategy=STRATEGIES[name](limit), trigger=always, **options)
    assert again.messages == result.messages
    assert len(result.archived) == result.removed
    assert len(result.kept) + result.removed == len(given_messages)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["sliding", "turns", "tokens", "last"])
@given(data=st.data(), share=st.floats(0.1, 0.9))
@thorough
def test_a_window_applied_again_changes_nothing(name: str, profile: str, data: Any, share: float) -> None:
    messages: Messages = data.draw(histories.wire(profile))
    limit = max(1, int(tokens_of(messages, profile) * share))
    options: dict[str, Any] = {"budget": 10**9, "estimator": CHARS, "format": profile, "trigger": always}
    first = compact(messages, strategy=STRATEGIES[name](limit), **options)
    second = compact(first.messages, strategy=STRATEGIES[name](limit), **options)
    assert second.messages == first.messages
    third = compact(messages, strategy=STRATEGIES[name](limit), previous=first.checkpoint, **options)
    assert third.messages == first.messages
