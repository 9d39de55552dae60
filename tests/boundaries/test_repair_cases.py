"""H2: what `repair` makes of histories that arrive broken, payload for payload."""

from __future__ import annotations

from typing import Any

import pytest
from boundary_wire import HI, PROFILES, YES, Chat, Claude, Gemini, Messages, Responses, mended

from holdfast import check
from holdfast.boundaries import repair
from holdfast.messages import CONTINUE, OPENING, decode_all, encode_all, profile_for
from holdfast.view import INTERRUPTED
from judge import judge

ERROR = f"[tool error] {INTERRUPTED}"
calls, told, user, said = Chat.calls, Chat.told, Chat.user, Chat.said
CHAT: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([user, told("ghost"), said], [user, said]),
    "of two results the first stays": (
        [user, calls("a"), told("a", "one"), told("a", "two"), said],
        [user, calls("a"), told("a", "one"), said],
    ),
    "a late result moves right behind its call": (
        [user, calls("a"), {"role": "user", "content": "well?"}, told("a")],
        [user, calls("a"), told("a"), {"role": "user", "content": "well?"}],
    ),
    "an early result does too": ([user, told("a"), calls("a"), said], [user, calls("a"), told("a"), said]),
    "an unanswered call in the middle is answered": (
        [user, calls("a"), user],
        [user, calls("a"), told("a", ERROR), user],
    ),
    "so is one of two, in call order": (
        [user, calls("a", "b"), told("b"), user],
        [user, calls("a", "b"), told("a", ERROR), told("b"), user],
    ),
    "a call at the end still waits": ([told("ghost"), user, calls("a")], [user, calls("a")]),
    "crossed results find their calls": (
        [user, calls("a"), calls("b"), told("b", "B"), told("a", "A")],
        [user, calls("a"), told("a", "A"), calls("b"), told("b", "B")],
    ),
    "an empty message goes": ([{"role": "assistant", "content": None}, user], [user]),
}
call, output, thought = Responses.call, Responses.told, Responses.thought
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
    "a thought told twice is told once": (
        [thought(), call("a"), output("a"), thought(), call("b"), output("b")],
        [thought(), call("a"), output("a"), call("b"), output("b")],
    ),
    "a thought that led to nothing goes": ([user, thought(), user], [user, user]),
}
by_user, by_model, use, result = Claude.by_user, Claude.by_model, Claude.use, Claude.result
STOPPED = result("a", INTERRUPTED, is_error=True)
CLAUDE: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([user, Claude.told("ghost"), said], [user, said]),
    "results come before words": (
        [user, Claude.calls("a"), by_user(Claude.text, result("a"))],
        [user, Claude.calls("a"), Claude.told("a"), {"role": "user", "content": "and?"}],
    ),
    "a result behind words joins the others": (
        [user, Claude.calls("a", "b"), by_user(result("a"), Claude.text), Claude.told("b")],
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
        [user, Claude.calls("a"), Claude.told("a"), Claude.calls("a"), Claude.told("a")],
        [user, Claude.calls("a"), Claude.told("a"), Claude.calls("a-2"), Claude.told("a-2")],
    ),
    "a blank text goes": ([by_user({"type": "text", "text": " "}, Claude.text)], [{"role": "user", "content": "and?"}]),
    "a system message that may not stand there is the user's": (
        [user, Claude.system, user],
        [user, {"role": "user", "content": "be brief"}, user],
    ),
    "a signed summary that is not first says its words": (
        [user, by_model(Claude.summary)],
        [user, {"role": "assistant", "content": "so far"}],
    ),
}
STOP = {"functionResponse": {"id": "1", "name": "read", "response": {"error": INTERRUPTED}}}
GEMINI: dict[str, tuple[Messages, Messages]] = {
    "an orphan goes": ([HI, Gemini.told("9")], [HI]),
    "responses over two turns are put in one": (
        [HI, Gemini.calls("1", "2"), Gemini.told("1"), Gemini.told("2")],
        [HI, Gemini.calls("1", "2"), Gemini.told("1", "2")],
    ),
    "responses with ids may stand in any order": (
        [HI, Gemini.calls("1", "2"), Gemini.told("2", "1")],
        [HI, Gemini.calls("1", "2"), Gemini.told("2", "1")],
    ),
    "an unanswered call in the middle is answered": (
        [HI, Gemini.calls("1"), HI],
        [HI, Gemini.calls("1"), Gemini.by_user(STOP), HI],
    ),
    "a call behind the model's words gets the user's turn in between": (
        [HI, YES, Gemini.calls("1"), Gemini.told("1")],
        [HI, YES, *encode_all([CONTINUE], "gemini"), Gemini.calls("1"), Gemini.told("1")],
    ),
}
CASES = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": CLAUDE, "gemini": GEMINI}


@pytest.mark.parametrize(
    ("profile", "given", "expected"),
    [pytest.param(p, *case, id=f"{p}: {name}") for p, cases in CASES.items() for name, case in cases.items()],
)
def test_h2_a_broken_history_is_mended(profile: str, given: Messages, expected: Messages) -> None:
    repaired = mended(given, profile)
    assert repaired == expected
    assert check(repaired, profile) == []
    assert judge(repaired, profile) == []


FIRST: dict[str, Any] = {"anthropic": said, "gemini": YES}


@pytest.mark.parametrize("profile", FIRST)
def test_a_leading_assistant_gets_a_user_before_it_where_the_format_wants_one(profile: str) -> None:
    assert mended([FIRST[profile]], profile) == [*encode_all([OPENING], profile), FIRST[profile]]


@pytest.mark.parametrize("profile", ["openai-chat", "openai-responses"])
def test_a_leading_assistant_stays_where_the_format_lets_it(profile: str) -> None:
    assert mended([said, user], profile) == [said, user]


def test_a_summary_of_the_vendor_may_lead() -> None:
    messages = [by_model(Claude.summary), said]
    assert mended(messages, "anthropic") == messages


LEADING = by_model(Claude.thought(), Claude.text)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([LEADING, user], id="the head was cut off"),
        pytest.param([user, LEADING, user, Claude.system, user, LEADING], id="a system message moved"),
        pytest.param([user, LEADING, by_model(Claude.summary), LEADING], id="a summary became words"),
    ],
)
def test_behind_any_change_no_signed_thinking_is_left(given: Messages) -> None:
    """A4: thinking is bound to all that stands before it."""
    assert "thinking" not in repr(mended(given, "anthropic"))


EMPTY: dict[str, Messages] = {
    "openai-chat": [told("ghost")],
    "openai-responses": [thought()],
    "anthropic": [by_model()],
    "gemini": [Gemini.by_model()],
}


@pytest.mark.parametrize("profile", PROFILES)
def test_where_nothing_is_left_something_is_still_there_to_send(profile: str) -> None:
    assert mended(EMPTY[profile], profile) == encode_all([OPENING], profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_stays_nothing(profile: str) -> None:
    assert repair([], profile_for(profile)) == []


def test_untouched_messages_stay_the_very_objects_they_were() -> None:
    decoded, _ = decode_all([user, calls("a"), told("a"), told("ghost"), said], "openai-chat")
    repaired = repair(decoded, profile_for("openai-chat"))
    assert [id(message) for message in repaired] == [id(decoded[place]) for place in (0, 1, 2, 4)]
