"""H2: `check` reports what each provider would reject, in agreement with the independent judge."""

from __future__ import annotations

import pytest
from boundary_wire import Messages
from check_cases_ai_sdk import AI_SDK_BAD, AI_SDK_GOOD
from check_cases_blocks import CLAUDE_BAD, CLAUDE_GOOD, GEMINI_BAD, GEMINI_GOOD
from check_cases_openai import CHAT_BAD, CHAT_GOOD, RESPONSES_BAD, RESPONSES_GOOD, Found

from holdfast import check
from judge import judge

GOOD = {
    "openai-chat": CHAT_GOOD,
    "openai-responses": RESPONSES_GOOD,
    "anthropic": CLAUDE_GOOD,
    "gemini": GEMINI_GOOD,
    "ai-sdk": AI_SDK_GOOD,
}
BAD = {
    "openai-chat": CHAT_BAD,
    "openai-responses": RESPONSES_BAD,
    "anthropic": CLAUDE_BAD,
    "gemini": GEMINI_BAD,
    "ai-sdk": AI_SDK_BAD,
}
good = [pytest.param(p, case, id=f"{p}: {name}") for p, cases in GOOD.items() for name, case in cases.items()]
bad = [pytest.param(p, *case, id=f"{p}: {name}") for p, cases in BAD.items() for name, case in cases.items()]


@pytest.mark.parametrize(("profile", "messages"), good)
def test_h2_check_valid_history_has_no_problems(profile: str, messages: Messages) -> None:
    assert check(messages, profile) == []


@pytest.mark.parametrize(("profile", "messages", "found", "words"), bad)
def test_h2_check_invalid_history_names_rules(profile: str, messages: Messages, found: Found, words: str) -> None:
    assert [(problem.index, problem.rule) for problem in check(messages, profile)] == found


@pytest.mark.parametrize(("profile", "messages", "found", "words"), bad)
def test_h2_problem_text_names_ids(profile: str, messages: Messages, found: Found, words: str) -> None:
    assert words in "; ".join(map(str, check(messages, profile)))


@pytest.mark.parametrize(("profile", "messages"), good)
def test_h2_judge_accepts_history_that_check_accepts(profile: str, messages: Messages) -> None:
    assert judge(messages, profile) == []


@pytest.mark.parametrize(("profile", "messages", "found", "words"), bad)
def test_h2_judge_rejects_history_that_check_rejects(
    profile: str, messages: Messages, found: Found, words: str
) -> None:
    assert judge(messages, profile) != []


def test_problem_text_names_message_index() -> None:
    (problem,) = check(CHAT_BAD["a result without a call"][0], "openai-chat")
    assert str(problem) == "message 1: a result for 'ghost' follows no such call"
