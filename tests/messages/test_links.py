"""Links: units of messages that belong together on the wire, and the cuts between them.

u is the user's message, s a system message, a assistant text, c one call, C two calls at once,
r reasoning that is an item of its own, t a tool's result.
"""

from __future__ import annotations

import pytest
from boundary_wire import HI, PROFILES, YES, Chat, Claude, Responses
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from edge_stories import STORIES, Approval, Program, Story, by_model, called_by, reference, server_result, server_use
from holdfast import check
from holdfast.messages import (
    Links,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    decode_all,
    encode_all,
    find_problems,
    normalize_for_wire,
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


def legal_cuts(messages: list[Message]) -> list[int]:
    return list(filter(Links(messages).is_legal_cut, range(len(messages) + 1)))


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
    assert legal_cuts(messages_of(story)) == list(map(int, places))


def test_is_legal_cut_before_first_and_after_last_message() -> None:
    assert all(map(Links(messages_of("u c t")).is_legal_cut, (-1, 0, 3, 4)))


@pytest.mark.parametrize(("story", "places"), CUTS.values(), ids=CUTS)
def test_cut_at_or_after_and_before_move_to_nearest_legal_cut(story: str, places: str) -> None:
    links, allowed = Links(messages_of(story)), list(map(int, places))
    for cut in range(links.count + 1):
        assert links.cut_at_or_after(cut) == min(place for place in allowed if place >= cut)
        assert links.cut_at_or_before(cut) == max(place for place in allowed if place <= cut)


def test_is_legal_cut_after_repair_keeps_late_result_with_call() -> None:
    late = [Chat.user, Chat.calls("a"), Chat.user, Chat.results("a"), Chat.reply]
    messages, _ = decode_all(repair(late, "openai-chat"), "openai-chat")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert legal_cuts(messages) == [0, 1, 3, 4, 5]


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
    assert Links(messages_of(story)).open_tool_loop_start == start


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=min(50, settings().max_examples))
def test_h2_legal_cut_of_repaired_history_leaves_valid_history(profile: str, data: st.DataObject) -> None:
    rules = rules_for(profile)
    messages = repair_messages(decode_all(data.draw(histories.wire(profile, broken=True)), profile)[0], rules)
    whole = encode_all(messages, profile)
    for cut in Links(messages).starts:
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
    for cut in {*range(len(messages))} - {*Links(messages).starts}:
        before, after = messages[:cut], messages[cut:]
        open_calls = {c.id for m in before for c in m.calls} - {r.call_id for m in before for r in m.results}
        thought = any(isinstance(part, Reasoning) for part in before[-1].parts)
        belongs = after[0].role == "system" and before[-1].role in ("user", "tool")
        assert open_calls or thought or belongs or after[0].role == "tool"


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_units_of_story_start_exactly_there(story: Story) -> None:
    messages, _ = decode_all(story.messages, story.profile)
    assert Links(messages).starts == story.starts
    assert check(story.messages, story.profile) == []
    assert judge(story.messages, story.profile) == []


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_part_of_story_from_legal_cut_on_is_valid(story: Story) -> None:
    messages, _ = decode_all(story.messages, story.profile)
    rules = rules_for(story.profile)
    for start in story.starts:
        left = encode_all(normalize_for_wire(messages[start:], rules), story.profile)
        assert check(left, story.profile) == []
        assert judge(left, story.profile) == []


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_links_of_one_message_after_the_other_are_those_of_the_whole(story: Story) -> None:
    messages, _ = decode_all(story.messages, story.profile)
    links = Links()
    for count, message in enumerate(messages, 1):
        links.add(message)
        whole = Links(messages[:count])
        assert (links.starts, links.open_tool_loop_start) == (whole.starts, whole.open_tool_loop_start)


def test_copy_of_links_does_not_see_later_messages() -> None:
    messages, _ = decode_all(STORIES["a program with its calls"].messages, "openai-responses")
    links = Links(messages[:5])
    copy = links.copy()
    links.extend(messages[5:])
    assert (copy.count, copy.starts) == (5, [0, 1])
    copy.extend(messages[5:])
    assert copy.starts == links.starts


ASK, ASKED = Responses.user, Claude.user
OPEN_LOOPS: dict[str, tuple[str, list[dict[str, object]], int]] = {
    "a program whose call is answered": (
        "openai-responses",
        [ASK, Program.start, Program.call("a"), Program.output("a")],
        1,
    ),
    "a program that calls again": (
        "openai-responses",
        [
            ASK,
            Program.thought,
            Program.start,
            Program.call("a"),
            Program.output("a"),
            Program.call("b"),
            Program.output("b"),
        ],
        1,
    ),
    "a program that is done": ("openai-responses", STORIES["a program with its calls"].messages[:-1], 11),
    "an approval to be given": ("openai-responses", [ASK, Approval.request], 1),
    "an approval given": ("openai-responses", [ASK, Approval.request, Approval.response], 1),
    "a reference to a call": ("openai-responses", [ASK, reference("fc_1")], 1),
    "the output of a reference": ("openai-responses", [ASK, reference("fc_1"), Responses.results("a")], 1),
    "code whose call is answered": (
        "anthropic",
        [ASKED, by_model(server_use("s"), called_by("a", "s")), Claude.results("a")],
        1,
    ),
    "a paused turn": ("anthropic", [ASKED, by_model(server_use("w", "web_search"))], 1),
    "a search that is done": (
        "anthropic",
        [ASKED, by_model(server_use("w", "web_search"), server_result("w", "web_search"))],
        2,
    ),
    "words": ("gemini", [HI, YES], 2),
}


@pytest.mark.parametrize(("profile", "given_messages", "start"), OPEN_LOOPS.values(), ids=OPEN_LOOPS)
def test_open_tool_loop_of_provider_starts_at_its_unit(
    profile: str, given_messages: list[dict[str, object]], start: int
) -> None:
    assert Links(decode_all(given_messages, profile)[0]).open_tool_loop_start == start


def test_links_of_ten_thousand_messages_read_each_once() -> None:
    """The work for each message does not grow with the number of open edges, nor of units."""
    calls = [by_model(server_use(f"s{n}"), called_by(f"a{n}", f"s{n}")) for n in range(2_000)]
    messages, _ = decode_all(
        [ASKED, *calls, ASKED, *[by_model(server_result(f"s{n}")) for n in range(2_000)]], "anthropic"
    )
    assert Links(messages).starts == [0, 1]
