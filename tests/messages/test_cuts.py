"""Legal cut points: never inside a batch of calls and results, before their system message, or after reasoning.

u is the user's message, s a system message, a assistant text, c one call, C two calls at once,
r reasoning that is an item of its own, t a tool's result.
"""

from __future__ import annotations

import pytest
from boundary_wire import PROFILES, Chat
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    cut_at_or_after,
    cut_at_or_before,
    decode_all,
    encode_all,
    find_problems,
    is_legal_cut,
    normalize_for_wire,
    open_tool_loop_start,
    repair,
    repair_messages,
    rules_for,
    user,
)
from judge import bound_reasoning, judge

WORDS = Message("system", (Text("be brief"),))


def messages_of(story: str) -> list[Message]:
    """Returns messages for a story in letters; results answer the oldest calls first."""
    messages: list[Message] = []
    waiting: list[str] = []
    for place, letter in enumerate(story.split()):
        if letter in "cC":
            names = [f"{letter}{place}-{number}" for number in range(2 if letter == "C" else 1)]
            waiting += names
            messages.append(Message("assistant", tuple(ToolCall(name, "read", {}) for name in names)))
        elif letter == "t":
            messages.append(Message("tool", (ToolResult(waiting.pop(0), (Text("done"),)),)))
        elif letter == "r":
            messages.append(Message("assistant", (Reasoning("hm", encrypted="gA"),)))
        else:
            messages.append({"u": user("hi"), "a": assistant("hello"), "s": WORDS}[letter])
    return messages


CUTS: dict[str, tuple[str, str]] = {
    "turns": ("u a u a", "01234"),
    "a call and its result": ("u c t a", "0134"),
    "parallel calls in one message": ("u C t t a", "0145"),
    "parallel calls as items": ("u c c t t a", "0156"),
    "reasoning, call, output": ("u r c t a", "0145"),
    "two thoughts, then a call": ("u r r c t", "015"),
    "a thought, then words": ("u r a u", "0134"),
    "a thought between two calls": ("u c r c t t", "016"),
    "words, then a call": ("u a c t", "0124"),
    "a call, then words, then its output": ("u c a t a", "0145"),
    "a chain of calls": ("u c t c t a", "01356"),
    "a call that waits": ("u c", "012"),
    "one of two that waits": ("u C t", "013"),
    "a system message in between": ("s u a s u", "012345"),
    "a system message behind the user's": ("u s a u s", "0235"),
    "a system message behind results": ("u c t s a", "0145"),
    "words in a row": ("u a a a", "01234"),
    "nothing": ("", "0"),
}


@pytest.mark.parametrize(("story", "places"), CUTS.values(), ids=CUTS)
def test_is_legal_cut_at_exactly_these_positions(story: str, places: str) -> None:
    messages = messages_of(story)
    assert [cut for cut in range(len(messages) + 1) if is_legal_cut(messages, cut)] == list(map(int, places))


def test_is_legal_cut_before_first_and_after_last_message() -> None:
    messages = messages_of("u c t")
    assert all(is_legal_cut(messages, cut) for cut in (-1, 0, 3, 4))


@pytest.mark.parametrize(("story", "places"), CUTS.values(), ids=CUTS)
def test_cut_at_or_after_and_before_move_to_nearest_legal_cut(story: str, places: str) -> None:
    messages, allowed = messages_of(story), list(map(int, places))
    for cut in range(len(messages) + 1):
        assert cut_at_or_after(messages, cut) == min(place for place in allowed if place >= cut)
        assert cut_at_or_before(messages, cut) == max(place for place in allowed if place <= cut)


def test_is_legal_cut_after_repair_keeps_late_result_with_call() -> None:
    late = [Chat.user, Chat.calls("a"), Chat.user, Chat.results("a"), Chat.reply]
    messages, _ = decode_all(repair(late, "openai-chat"), "openai-chat")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert [cut for cut in range(6) if is_legal_cut(messages, cut)] == [0, 1, 3, 4, 5]


UNFINISHED: dict[str, tuple[str, int]] = {
    "nothing": ("", 0),
    "the user spoke last": ("u a u", 3),
    "the assistant spoke last": ("u c t a", 4),
    "a call waits": ("u c", 1),
    "one of two calls waits": ("u C t", 1),
    "results that nobody answered": ("u c t", 1),
    "results of parallel items": ("u c c t t", 1),
    "only the newest round of a chain": ("u c t c t", 3),
    "with the thought that led to it": ("u r c t", 1),
    "words before the call are not part of it": ("u a c t", 2),
    "no user at all": ("c t", 0),
    "a system message behind the results": ("u c t c t s", 3),
    "a system message behind the user's": ("u a u s", 4),
    "system messages alone": ("s s", 2),
}


@pytest.mark.parametrize(("story", "start"), UNFINISHED.values(), ids=UNFINISHED)
def test_open_tool_loop_start_is_found(story: str, start: int) -> None:
    assert open_tool_loop_start(messages_of(story)) == start


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=min(50, settings().max_examples))
def test_h2_legal_cut_of_repaired_history_leaves_valid_history(profile: str, data: st.DataObject) -> None:
    rules = rules_for(profile)
    messages = repair_messages(decode_all(data.draw(histories.wire(profile, broken=True)), profile)[0], rules)
    whole = encode_all(messages, profile)
    for cut in range(len(messages)):
        if is_legal_cut(messages, cut):
            left = normalize_for_wire(messages[cut:], rules)
            assert find_problems(left, rules) == []
            rest = encode_all(left, profile)
            assert judge(rest, profile) == []
            if profile == "openai-responses":
                assert bound_reasoning(whole, rest) == []


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=min(50, settings().max_examples))
def test_illegal_cut_separates_pair_or_reasoning(profile: str, data: st.DataObject) -> None:
    rules = rules_for(profile)
    messages = repair_messages(decode_all(data.draw(histories.wire(profile)), profile)[0], rules)
    for cut in range(len(messages)):
        if not is_legal_cut(messages, cut):
            before, after = messages[:cut], messages[cut:]
            open_calls = {c.id for m in before for c in m.calls} - {r.call_id for m in before for r in m.results}
            thought = any(isinstance(part, Reasoning) for part in before[-1].parts)
            belongs = after[0].role == "system" and before[-1].role in ("user", "tool")
            assert open_calls or thought or belongs or after[0].role == "tool"
