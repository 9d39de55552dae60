"""Options of `check`: format names, malformed input, pending calls (H2)."""

from __future__ import annotations

from typing import Any

import pytest
from boundary_wire import HI, PROFILES, AiSdk, Chat, Claude, Gemini, Messages, Responses

from holdfast import check, repair
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.messages import decode_all
from judge import judge

ORPHAN = [Chat.user, Chat.results("ghost")]


@pytest.mark.parametrize(
    ("alias", "profile"),
    [("openai", "openai-chat"), ("chat", "openai-chat"), ("responses", "openai-responses"), ("claude", "anthropic")],
)
def test_check_format_accepts_aliases(alias: str, profile: str) -> None:
    messages = ORPHAN if profile == "openai-chat" else [Claude.user, Claude.reply]
    assert check(messages, alias) == check(messages, profile)


def test_check_and_repair_detect_the_format() -> None:
    """As `compact` does."""
    for messages, format in ((ORPHAN, "openai-chat"), ([Claude.user, Claude.reply, Claude.reply], "anthropic")):
        assert check(messages) == check(messages, format)
        assert repair(messages) == repair(messages, format)
    assert check(ORPHAN) and not check(repair(ORPHAN))
    assert [problem.rule for problem in check([{"role": "lighthouse", "content": "?"}])] == ["malformed"]


@pytest.mark.parametrize("profile", ["morse", "", "OpenAI", "common"])
def test_check_unknown_format_error_lists_known_formats(profile: str) -> None:
    with pytest.raises(UnknownFormat, match=r"is not a message format: use one of .*anthropic") as caught:
        check([Chat.user], profile)
    assert isinstance(caught.value, InvalidInput)


@pytest.mark.parametrize("profile", PROFILES)
def test_check_empty_list_is_valid(profile: str) -> None:
    assert check([], profile) == []


@pytest.mark.parametrize("given", [iter(ORPHAN), tuple(ORPHAN), (message for message in ORPHAN)])
def test_check_accepts_any_iterable(given: Any) -> None:
    assert [problem.rule for problem in check(given, "openai")] == ["orphan-result"]


def test_check_accepts_neutral_messages() -> None:
    decoded, _ = decode_all(ORPHAN, "openai-chat")
    assert check(decoded, "openai") == check(ORPHAN, "openai")


def test_check_does_not_change_input() -> None:
    messages = [Claude.user, Claude.calls("a"), Claude.by_user(Claude.text, Claude.result("a"))]
    before = repr(messages)
    check(messages, "anthropic")
    assert repr(messages) == before


NOT_MESSAGES: dict[str, Any] = {
    "a number": 42,
    "nothing": None,
    "a text": "hello",
    "a role that is a list": {"role": ["user"], "content": "hi"},
    "an unknown role": {"role": "wizard", "content": "hi", "parts": []},
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("item", NOT_MESSAGES.values(), ids=NOT_MESSAGES)
def test_check_invalid_message_is_problem_not_exception(profile: str, item: Any) -> None:
    (problem,) = check([item], profile)
    assert (problem.index, problem.rule) == (0, "malformed")
    assert problem.text.startswith("Message 0 is ")


@pytest.mark.parametrize("profile", ["openai-chat", "anthropic", "gemini", "ai-sdk"])
def test_check_message_without_role_or_parts_is_problem(profile: str) -> None:
    """In Responses it would be a reference to a stored item."""
    assert [problem.rule for problem in check([{"text": "hi"}], profile)] == ["malformed"]


@pytest.mark.parametrize("given", [None, 5, "hello", b"hello", {"role": "user", "content": "hi"}], ids=repr)
def test_check_not_a_list_is_problem(given: Any) -> None:
    (problem,) = check(given, "openai")
    assert problem.rule == "malformed"
    assert problem.text == f"Messages must be a list of messages, not {type(given).__name__}."


STRANGE: dict[str, tuple[str, Any]] = {
    "content is a number": ("openai-chat", {"role": "user", "content": 42}),
    "content holds nothing": ("openai-chat", {"role": "user", "content": [None]}),
    "tool_calls is a text": ("openai-chat", {"role": "assistant", "tool_calls": "x"}),
    "a call is nothing": ("openai-chat", {"role": "assistant", "content": None, "tool_calls": [None]}),
    "a call id is a list": ("openai-chat", {"role": "assistant", "tool_calls": [{"id": ["x"]}]}),
    "an item id is a list": ("openai-responses", {"type": "message", "id": ["x"], "role": "user", "content": "x"}),
    "an item type is a number": ("openai-responses", {"type": 7}),
    "a summary holds nothing": ("openai-responses", {"type": "reasoning", "summary": [None]}),
    "a block type is a list": ("anthropic", {"role": "user", "content": [{"type": ["text"]}]}),
    "a result names a list": ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": []}]}),
    "a signature is a number": ("anthropic", {"role": "assistant", "content": [{"type": "thinking", "signature": 4}]}),
    "parts is nothing": ("gemini", {"role": "user", "parts": None}),
    "a part is nothing": ("gemini", {"role": "user", "parts": [None]}),
    "a call is a number": ("gemini", {"role": "model", "parts": [{"functionCall": 5}]}),
    "a part without a type": ("ai-sdk", {"role": "user", "content": [{"text": "hi"}]}),
    "a part is a text": ("ai-sdk", {"role": "user", "content": ["hi"]}),
    "an output is nothing": ("ai-sdk", {"role": "tool", "content": [{"type": "tool-result", "output": None}]}),
    "an output's value is nothing": (
        "ai-sdk",
        {"role": "tool", "content": [{"type": "tool-result", "output": {"type": "content", "value": [None]}}]},
    ),
    "calls beside the content are nothing": ("ai-sdk", {"role": "assistant", "content": "", "toolCalls": [None]}),
    "text that is no unicode": ("openai-chat", {"role": "user", "content": "\ud800"}),
}


@pytest.mark.parametrize(("profile", "item"), STRANGE.values(), ids=STRANGE)
def test_check_random_payload_never_raises(profile: str, item: Any) -> None:
    first = HI if profile == "gemini" else Chat.user
    assert isinstance(check([first, item], profile), list)


WAITING: dict[str, Messages] = {
    "openai-chat": [Chat.user, Chat.calls("a", "b")],
    "openai-responses": [Responses.user, Responses.call("a"), Responses.call("b")],
    "anthropic": [Claude.user, Claude.calls("a", "b")],
    "gemini": [HI, Gemini.calls("a", "b")],
    "ai-sdk": [AiSdk.user, AiSdk.calls("a", "b")],
}
ANSWER: dict[str, Any] = {
    "openai-chat": Chat.results,
    "openai-responses": Responses.results,
    "anthropic": Claude.results,
    "gemini": Gemini.results,
    "ai-sdk": AiSdk.results,
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("answered", "left"), [((), ["a", "b"]), (("a",), ["b"])], ids=["none", "one of two"])
def test_check_pending_calls_are_problem_only_if_ready(
    profile: str, answered: tuple[str, ...], left: list[str]
) -> None:
    messages = [*WAITING[profile], *map(ANSWER[profile], answered)]
    assert check(messages, profile) == []
    assert judge(messages, profile) == []
    problems = check(messages, profile, ready=True)
    assert [problem.rule for problem in problems] == ["unanswered-call"] * len(left)
    assert [problem.text.split("'")[1] for problem in problems] == left
    assert judge(messages, profile, pending_ok=False) != []


@pytest.mark.parametrize("profile", PROFILES)
def test_check_answered_call_is_ready(profile: str) -> None:
    answers = [Gemini.results("a", "b")] if profile == "gemini" else [ANSWER[profile]("a"), ANSWER[profile]("b")]
    assert check([*WAITING[profile], *answers], profile, ready=True) == []
