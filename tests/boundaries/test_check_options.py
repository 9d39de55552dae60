"""The names `check` takes, what it makes of broken input, and calls that still wait (H2)."""

from __future__ import annotations

from typing import Any

import pytest
from boundary_wire import HI, PROFILES, Chat, Claude, Gemini, Messages, Responses

from holdfast import check
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.messages import decode_all
from judge import judge

ORPHAN = [Chat.user, Chat.told("ghost")]


@pytest.mark.parametrize(
    ("alias", "profile"),
    [("openai", "openai-chat"), ("chat", "openai-chat"), ("responses", "openai-responses"), ("claude", "anthropic")],
)
def test_a_profile_has_the_names_that_people_use(alias: str, profile: str) -> None:
    messages = ORPHAN if profile == "openai-chat" else [Claude.user, Claude.said]
    assert check(messages, alias) == check(messages, profile)


@pytest.mark.parametrize("profile", ["morse", "", "OpenAI", "common"])
def test_an_unknown_profile_is_an_error_that_lists_the_known_ones(profile: str) -> None:
    with pytest.raises(UnknownFormat, match=r"is not a message format: use one of .*anthropic") as caught:
        check([Chat.user], profile)
    assert isinstance(caught.value, InvalidInput)


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_at_all_has_nothing_to_refuse(profile: str) -> None:
    assert check([], profile) == []


@pytest.mark.parametrize("given", [iter(ORPHAN), tuple(ORPHAN), (message for message in ORPHAN)])
def test_any_iterable_of_messages_will_do(given: Any) -> None:
    assert [problem.rule for problem in check(given, "openai")] == ["orphan-result"]


def test_neutral_messages_are_checked_as_they_are() -> None:
    decoded, _ = decode_all(ORPHAN, "openai-chat")
    assert check(decoded, "openai") == check(ORPHAN, "openai")


def test_the_input_is_left_alone() -> None:
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
def test_what_is_no_message_is_a_problem_not_an_exception(profile: str, item: Any) -> None:
    (problem,) = check([item], profile)
    assert (problem.index, problem.rule) == (0, "malformed")
    assert problem.text.startswith("Message 0 is ")


@pytest.mark.parametrize("profile", ["openai-chat", "anthropic", "gemini"])
def test_a_message_without_a_role_or_parts_is_a_problem(profile: str) -> None:
    """In Responses it would be a reference to an item that the API has stored."""
    assert [problem.rule for problem in check([{"text": "hi"}], profile)] == ["malformed"]


@pytest.mark.parametrize("given", [None, 5, "hello", b"hello", {"role": "user", "content": "hi"}], ids=repr)
def test_what_is_no_list_of_messages_is_a_problem_too(given: Any) -> None:
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
    "text that is no unicode": ("openai-chat", {"role": "user", "content": "\ud800"}),
}


@pytest.mark.parametrize(("profile", "item"), STRANGE.values(), ids=STRANGE)
def test_strange_payloads_never_raise(profile: str, item: Any) -> None:
    first = HI if profile == "gemini" else Chat.user
    assert isinstance(check([first, item], profile), list)


WAITING: dict[str, Messages] = {
    "openai-chat": [Chat.user, Chat.calls("a", "b")],
    "openai-responses": [Responses.user, Responses.call("a"), Responses.call("b")],
    "anthropic": [Claude.user, Claude.calls("a", "b")],
    "gemini": [HI, Gemini.calls("a", "b")],
}
ANSWER: dict[str, Any] = {
    "openai-chat": Chat.told,
    "openai-responses": Responses.told,
    "anthropic": Claude.told,
    "gemini": Gemini.told,
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("answered", "left"), [((), ["a", "b"]), (("a",), ["b"])], ids=["none", "one of two"])
def test_calls_that_wait_are_history_in_progress_but_no_request(
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
def test_an_answered_call_makes_a_request(profile: str) -> None:
    answers = [Gemini.told("a", "b")] if profile == "gemini" else [ANSWER[profile]("a"), ANSWER[profile]("b")]
    assert check([*WAITING[profile], *answers], profile, ready=True) == []
