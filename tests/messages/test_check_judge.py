"""H2: `check` agrees with the independent judge, on random histories and on every small one.

Where they differ, `check` is the stricter one: it also requires what every cut relies on. Those rules are
listed here with their reasons, and no others may differ. (Only the judge checks fields inside a payload,
which compaction passes through unchanged.)
"""

from __future__ import annotations

from itertools import product

import pytest
from boundary_wire import HI, PROFILES, SMALL, Chat, Claude, Gemini, Messages, Responses
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import check, compact
from judge import judge

thorough = settings(max_examples=min(150, settings().max_examples))

STRICTER: dict[str, dict[str, str]] = {
    "openai-chat": {},
    "openai-responses": {
        "unanswered-call": "the API takes an output anywhere behind its call; a cut needs it right behind",
        "orphan-result": "the other half of the same",
        "reasoning-alone": "the API pairs reasoning by id, and with the vendor's summary; a cut by place alone",
    },
    "anthropic": {
        "empty": "the API lets the very last message, the assistant's, be empty; newer models refuse it there",
    },
    "gemini": {},
    "ai-sdk": {},
}


def differ(messages: Messages, profile: str, ready: bool) -> str:
    """Returns how `check` and the judge differ beyond the listed rules; empty if they agree."""
    rules = {problem.rule for problem in check(messages, profile, ready=ready)}
    complaints = judge(messages, profile, pending_ok=not ready)
    if complaints and not rules:
        return f"check accepts, the judge says: {complaints}"
    if rules and not complaints and not rules <= STRICTER[profile].keys():
        return f"the judge accepts, check says: {rules}"
    return ""


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), broken=st.booleans(), ready=st.booleans())
@thorough
def test_h2_check_agrees_with_judge_on_random_histories(
    profile: str, data: st.DataObject, broken: bool, ready: bool
) -> None:
    messages = data.draw(histories.wire(profile, broken=broken))
    assert differ(messages, profile, ready) == ""


def test_h2_check_agrees_with_judge_that_empty_list_is_no_content() -> None:
    messages: Messages = [{"type": "message", "role": "user", "content": []}]
    messages.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "ok"}]})
    assert differ(messages, "openai-responses", ready=False) == ""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("ready", [False, True], ids=["history", "request"])
@pytest.mark.parametrize("profile", PROFILES)
def test_h2_check_agrees_with_judge_on_all_short_histories(profile: str, ready: bool) -> None:
    small = (list(some) for length in (1, 2, 3, 4) for some in product(SMALL[profile], repeat=length))
    assert [(messages, why) for messages in small if (why := differ(messages, profile, ready))] == []


@pytest.mark.parametrize(
    ("profile", "rule", "messages"),
    [
        pytest.param(
            "openai-responses",
            "unanswered-call",
            [Responses.call("a"), Responses.user, Responses.results("a")],
            id="responses: a late output",
        ),
        pytest.param(
            "openai-responses",
            "reasoning-alone",
            [Responses.user, Responses.thought(None), Responses.user],
            id="responses: reasoning without an id",
        ),
        pytest.param(
            "openai-responses",
            "reasoning-alone",
            [Responses.thought(), Responses.summary],
            id="responses: reasoning before the vendor's summary",
        ),
        pytest.param("anthropic", "empty", [Claude.user, Claude.by_model()], id="anthropic: empty and last"),
    ],
)
def test_check_listed_difference_to_judge_is_real(profile: str, rule: str, messages: Messages) -> None:
    assert judge(messages, profile) == []
    assert rule in {problem.rule for problem in check(messages, profile)}
    assert rule in STRICTER[profile]


@pytest.mark.parametrize(
    ("profile", "messages"),
    [
        pytest.param("openai-chat", [Chat.user, {"role": "assistant", "content": ""}], id="chat: ''"),
        pytest.param("openai-responses", [{"role": "assistant", "content": ""}], id="responses: ''"),
        pytest.param("gemini", [HI, Gemini.calls("1", "2"), Gemini.results("2", "1")], id="gemini: any order with ids"),
    ],
)
def test_repair_leaves_accepted_history_unchanged(profile: str, messages: Messages) -> None:
    assert judge(messages, profile) == []
    assert check(messages, profile) == []
    assert compact(messages, budget=10**6, format=profile).messages == messages
