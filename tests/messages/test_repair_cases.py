"""H2: `repair` of broken histories, payload for payload."""

from __future__ import annotations

from typing import Any

import pytest
from boundary_wire import HI, PROFILES, YES, AiSdk, Chat, Claude, Gemini, Messages, Responses
from openai.types.chat import ChatCompletionMessage

from holdfast import check, repair
from holdfast.context import INTERRUPTED_TEXT
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.messages import CONTINUE, OPENING, Message, Text, decode_all, encode_all, repair_messages, rules_for
from judge import judge

ERROR = f"[tool error] {INTERRUPTED_TEXT}"
calls, results, user, reply = Chat.calls, Chat.results, Chat.user, Chat.reply
CHAT: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([user, results("ghost"), reply], [user, reply]),
    "of two results the first stays": (
        [user, calls("a"), results("a", "one"), results("a", "two"), reply],
        [user, calls("a"), results("a", "one"), reply],
    ),
    "a late result moves right behind its call": (
        [user, calls("a"), {"role": "user", "content": "well?"}, results("a")],
        [user, calls("a"), results("a"), {"role": "user", "content": "well?"}],
    ),
    "an early result does too": ([user, results("a"), calls("a"), reply], [user, calls("a"), results("a"), reply]),
    "an unanswered call in the middle is answered": (
        [user, calls("a"), user],
        [user, calls("a"), results("a", ERROR), user],
    ),
    "so is one of two, in call order": (
        [user, calls("a", "b"), results("b"), user],
        [user, calls("a", "b"), results("a", ERROR), results("b"), user],
    ),
    "a call at the end still waits": ([results("ghost"), user, calls("a")], [user, calls("a")]),
    "crossed results find their calls": (
        [user, calls("a"), calls("b"), results("b", "B"), results("a", "A")],
        [user, calls("a"), results("a", "A"), calls("b"), results("b", "B")],
    ),
    "an empty message goes": ([{"role": "assistant", "content": None}, user], [user]),
}
call, output, thought = Responses.call, Responses.results, Responses.thought


def compacted(content: str) -> dict[str, Any]:
    return {"type": "compaction", "id": "cmp_1", "encrypted_content": content}


RESPONSES: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([user, output("z")], [user]),
    "a late output moves right behind its call": (
        [call("a", id="fc_1"), user, output("a")],
        [call("a", id="fc_1"), output("a"), user],
    ),
    "an unanswered call in the middle is answered": (
        [user, thought(), call("a", id="fc_1"), user],
        [user, thought(), call("a", id="fc_1"), output("a", ERROR), user],
    ),
    "a call id used again gets one of its own": (
        [call("a"), output("a", "one"), call("a"), output("a", "two")],
        [call("a"), output("a", "one"), call("a-2"), output("a-2", "two")],
    ),
    "an item id used again goes": (
        [call("a", id="fc_1"), call("b", id="fc_1"), output("a"), output("b")],
        [call("a", id="fc_1"), call("b"), output("a"), output("b")],
    ),
    "an opaque item sent twice is sent once; another with its id loses the id": (
        [user, compacted("x"), compacted("x"), compacted("y")],
        [user, compacted("x"), {"type": "compaction", "encrypted_content": "y"}],
    ),
    "repeated reasoning is sent once": (
        [thought(), call("a"), output("a"), thought(), call("b"), output("b")],
        [thought(), call("a"), output("a"), call("b"), output("b")],
    ),
    "a thought that led to nothing goes": ([user, thought(), user], [user, user]),
}
by_user, by_model, use, result = Claude.by_user, Claude.by_model, Claude.use, Claude.result
STOPPED = result("a", INTERRUPTED_TEXT, is_error=True)
CLAUDE: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([user, Claude.results("ghost"), reply], [user, reply]),
    "results come before words": (
        [user, Claude.calls("a"), by_user(Claude.text, result("a"))],
        [user, Claude.calls("a"), Claude.results("a"), by_user(Claude.text)],
    ),
    "a result behind words joins the others": (
        [user, Claude.calls("a", "b"), by_user(result("a"), Claude.text), Claude.results("b")],
        [user, Claude.calls("a", "b"), by_user(result("a"), result("b"), Claude.text)],
    ),
    "what words left unanswered is answered": (
        [user, Claude.calls("b", "a"), by_user(result("b"), Claude.text)],
        [user, Claude.calls("b", "a"), by_user(result("b"), STOPPED, Claude.text)],
    ),
    "an unanswered call is answered, and no signature stays that would not verify": (
        [user, by_model(Claude.thought(), use("a")), user],
        [user, Claude.calls("a"), by_user(STOPPED), user],
    ),
    "a call id used again gets one of its own": (
        [user, Claude.calls("a"), Claude.results("a"), Claude.calls("a"), Claude.results("a")],
        [user, Claude.calls("a"), Claude.results("a"), Claude.calls("a-2"), Claude.results("a-2")],
    ),
    "a blank text goes": ([by_user({"type": "text", "text": " "}, Claude.text)], [by_user(Claude.text)]),
    "a misplaced system message becomes a user message": (
        [user, Claude.system, user],
        [user, {"role": "user", "content": "be brief"}, user],
    ),
    "a signed summary that is not first becomes text": (
        [user, by_model(Claude.summary)],
        [user, by_model({"type": "text", "text": "so far"})],
    ),
}
STOP = {"functionResponse": {"id": "1", "name": "read", "response": {"error": INTERRUPTED_TEXT}}}
GEMINI: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([HI, Gemini.results("9")], [HI]),
    "responses over two turns are put in one": (
        [HI, Gemini.calls("1", "2"), Gemini.results("1"), Gemini.results("2")],
        [HI, Gemini.calls("1", "2"), Gemini.results("1", "2")],
    ),
    "responses with ids may be in any order": (
        [HI, Gemini.calls("1", "2"), Gemini.results("2", "1")],
        [HI, Gemini.calls("1", "2"), Gemini.results("2", "1")],
    ),
    "an unanswered call in the middle is answered": (
        [HI, Gemini.calls("1"), HI],
        [HI, Gemini.calls("1"), Gemini.by_user(STOP), HI],
    ),
    "a call behind the model's words gets the user's turn in between": (
        [HI, YES, Gemini.calls("1"), Gemini.results("1")],
        [HI, YES, *encode_all([CONTINUE], "gemini"), Gemini.calls("1"), Gemini.results("1")],
    ),
}
CASES = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": CLAUDE, "gemini": GEMINI}


@pytest.mark.parametrize(
    ("profile", "given", "expected"),
    [pytest.param(p, *case, id=f"{p}: {name}") for p, cases in CASES.items() for name, case in cases.items()],
)
def test_h2_repair_invalid_history_gives_expected_messages(profile: str, given: Messages, expected: Messages) -> None:
    repaired = repair(given, profile)
    assert repaired == expected
    assert check(repaired, profile) == []
    assert judge(repaired, profile) == []


FIRST: dict[str, Any] = {"anthropic": reply, "gemini": YES}


@pytest.mark.parametrize("profile", FIRST)
def test_repair_leading_assistant_gets_user_message_if_required(profile: str) -> None:
    assert repair([FIRST[profile]], profile) == [*encode_all([OPENING], profile), FIRST[profile]]


@pytest.mark.parametrize("profile", ["openai-chat", "openai-responses"])
def test_repair_leading_assistant_stays_if_allowed(profile: str) -> None:
    assert repair([reply, user], profile) == [reply, user]


def test_repair_leading_vendor_summary_stays() -> None:
    messages = [by_model(Claude.summary), reply]
    assert repair(messages, "anthropic") == messages


LEADING = by_model(Claude.thought(), Claude.text)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([LEADING, user], id="the head was cut off"),
        pytest.param([user, LEADING, user, Claude.system, user, LEADING], id="a system message moved"),
        pytest.param([user, LEADING, by_model(Claude.summary), LEADING], id="a summary became words"),
    ],
)
def test_repair_change_drops_signed_reasoning(given: Messages) -> None:
    """The signature of thinking covers everything before it."""
    assert "thinking" not in repr(repair(given, "anthropic"))


EMPTY: dict[str, Messages] = {
    "openai-chat": [results("ghost")],
    "openai-responses": [thought()],
    "anthropic": [by_model()],
    "gemini": [Gemini.by_model()],
    "ai-sdk": [AiSdk.results("ghost")],
}


@pytest.mark.parametrize("profile", PROFILES)
def test_repair_with_nothing_left_gives_opening_message(profile: str) -> None:
    assert repair(EMPTY[profile], profile) == encode_all([OPENING], profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_repair_empty_list_stays_empty(profile: str) -> None:
    assert repair([], profile) == []


def test_repair_valid_messages_are_same_objects() -> None:
    decoded, _ = decode_all([user, calls("a"), results("a"), results("ghost"), reply], "openai-chat")
    repaired = repair_messages(decoded, rules_for("openai-chat"))
    assert [id(message) for message in repaired] == [id(decoded[place]) for place in (0, 1, 2, 4)]


def test_h2_repair_takes_messages_as_check_does() -> None:
    """Dicts, SDK objects and holdfast messages, and every name of a format."""
    message = ChatCompletionMessage.model_validate({"role": "assistant", "content": "hello"})
    given = [user, results("ghost"), message, Message("user", (Text("hi"),))]
    assert check(given, "openai") != []
    assert repair(given, "openai") == [user, reply, user]
    assert given[1] == results("ghost"), "the list that was passed does not change"


@pytest.mark.parametrize("profile", PROFILES)
def test_h2_repair_rejects_what_is_no_message(profile: str) -> None:
    with pytest.raises(InvalidInput):
        repair([{"role": "narrator", "content": "hi"}], profile)
    with pytest.raises(UnknownFormat, match="is not a message format"):
        repair([], f"{profile}-2")
