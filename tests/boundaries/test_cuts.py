"""Where a context may be cut: never inside a batch of calls, its results and what is said to them, or behind a thought.

u is the user's message, s a system message, a the assistant's words, c one call, C two calls at once,
r reasoning that is an item of its own, t a tool's result.
"""

from __future__ import annotations

import pytest
from boundary_wire import PROFILES, Chat, mended
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.boundaries import cut_at_or_after, cut_at_or_before, find_problems, legal, repair, unfinished
from holdfast.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    arrange,
    assistant,
    decode_all,
    encode_all,
    profile_for,
    user,
)
from judge import bound_reasoning, judge

WORDS = Message("system", (Text("be brief"),))


def told(story: str) -> list[Message]:
    """Messages for a story in letters; results answer the calls before them, oldest first."""
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
def test_a_cut_is_legal_in_these_places_and_no_others(story: str, places: str) -> None:
    messages = told(story)
    assert [cut for cut in range(len(messages) + 1) if legal(messages, cut)] == list(map(int, places))


def test_before_the_first_and_behind_the_last_message_any_cut_is_legal() -> None:
    messages = told("u c t")
    assert all(legal(messages, cut) for cut in (-1, 0, 3, 4))


@pytest.mark.parametrize(("story", "places"), CUTS.values(), ids=CUTS)
def test_an_illegal_cut_moves_to_the_next_legal_place_either_way(story: str, places: str) -> None:
    messages, allowed = told(story), list(map(int, places))
    for cut in range(len(messages) + 1):
        assert cut_at_or_after(messages, cut) == min(place for place in allowed if place >= cut)
        assert cut_at_or_before(messages, cut) == max(place for place in allowed if place <= cut)


def test_a_late_result_belongs_to_its_call_once_it_is_mended() -> None:
    late = [Chat.user, Chat.calls("a"), Chat.user, Chat.told("a"), Chat.said]
    messages, _ = decode_all(mended(late, "openai-chat"), "openai-chat")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert [cut for cut in range(6) if legal(messages, cut)] == [0, 1, 3, 4, 5]


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
def test_the_loop_that_the_model_has_not_answered_starts_here(story: str, start: int) -> None:
    assert unfinished(told(story)) == start


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=min(50, settings().max_examples))
def test_h2_every_legal_cut_of_a_mended_history_leaves_a_valid_one(profile: str, data: st.DataObject) -> None:
    rules = profile_for(profile)
    messages = repair(decode_all(data.draw(histories.wire(profile, broken=True)), profile)[0], rules)
    whole = encode_all(messages, profile)
    for cut in range(len(messages)):
        if legal(messages, cut):
            left = arrange(messages[cut:], rules)
            assert find_problems(left, rules) == []
            rest = encode_all(left, profile)
            assert judge(rest, profile) == []
            if profile == "openai-responses":
                assert bound_reasoning(whole, rest) == []


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=min(50, settings().max_examples))
def test_an_illegal_cut_would_part_what_belongs_together(profile: str, data: st.DataObject) -> None:
    rules = profile_for(profile)
    messages = repair(decode_all(data.draw(histories.wire(profile)), profile)[0], rules)
    for cut in range(len(messages)):
        if not legal(messages, cut):
            before, after = messages[:cut], messages[cut:]
            open_calls = {c.id for m in before for c in m.calls} - {r.call_id for m in before for r in m.results}
            thought = any(isinstance(part, Reasoning) for part in before[-1].parts)
            belongs = after[0].role == "system" and before[-1].role in ("user", "tool")
            assert open_calls or thought or belongs or after[0].role == "tool"
