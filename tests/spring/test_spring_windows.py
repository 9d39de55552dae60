"""Spring's sliding, turn and token window cases, with its numbers (S5-S10, S14, S16)."""

from __future__ import annotations

import pytest
from spring_story import Story, names

from holdfast import Outcome, SlidingWindow, TokenWindow, TurnWindow, always

pytestmark = pytest.mark.anyio


async def test_s8_sliding_window_snaps_forward_to_a_user_message(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2", "u3", "a3")
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=3))
    assert names(result.kept) == ["u3", "a3"]
    assert result.removed == 4


async def test_s8_synthetics_come_first_and_do_not_count(story: Story) -> None:
    await story.tell("shadow", "summary", synthetic=True)
    await story.tell("msg-1", "msg-2", "msg-3", "msg-4")
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=3))
    assert await story.visible() == ["shadow", "summary", "msg-2", "msg-3", "msg-4"]
    assert names(result.archived) == ["msg-1"]
    assert len(result.kept) == 5


async def test_s16_a_lane_counts_neither_as_events_nor_as_turns(story: Story) -> None:
    await story.tell("u1", "a1")
    await story.tell("q-sub", "a-sub", lane="sub")
    await story.tell("u2", "a2")
    nothing = await story.service.compact(story.id, always, SlidingWindow(max_events=4))
    assert nothing.outcome is Outcome.NOTHING_TO_COMPACT
    assert len(nothing.kept) == 4
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=2))
    assert names(result.kept) == ["u2", "a2"]
    assert result.removed == 2


async def test_s8_at_the_limit_nothing_happens(story: Story) -> None:
    await story.tell("u1", "a1")
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=2))
    assert result.outcome is Outcome.NOTHING_TO_COMPACT
    assert result.version == 2


async def test_s14_a_turn_longer_than_the_window_never_leaves_it_empty(story: Story) -> None:
    await story.tell("u1", "a1", "a2", "a3", "a4", "a5")
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=3))
    assert await story.visible() == ["u1", "a4", "a5"]
    assert names(result.archived) == ["a1", "a2", "a3"]
    again = await story.service.compact(story.id, always, SlidingWindow(max_events=3))
    assert again.outcome is Outcome.NOTHING_TO_COMPACT


async def test_s9_a_three_event_first_turn_goes_whole(story: Story) -> None:
    await story.tell("u1", "a1a", "a1b", "u2", "a2", "u3", "a3")
    result = await story.service.compact(story.id, always, TurnWindow(max_turns=2))
    assert result.removed == 3
    assert await story.visible() == ["u2", "a2", "u3", "a3"]


async def test_s9_the_preamble_survives(story: Story) -> None:
    await story.tell("a0", "u1", "a1", "u2", "a2")
    await story.service.compact(story.id, always, TurnWindow(max_turns=1))
    assert await story.visible() == ["a0", "u2", "a2"]
    await story.tell("u3", "a3")
    await story.service.compact(story.id, always, TurnWindow(max_turns=1))
    assert await story.visible() == ["a0", "u3", "a3"]


async def test_s9_two_summary_turns_are_all_kept(story: Story) -> None:
    await story.tell("shadow-1", "summary-1", "shadow-2", "summary-2", synthetic=True)
    await story.tell("u1", "a1", "u2", "a2", "u3", "a3")
    await story.service.compact(story.id, always, TurnWindow(max_turns=2))
    assert await story.visible() == ["shadow-1", "summary-1", "shadow-2", "summary-2", "u2", "a2", "u3", "a3"]


async def test_s10_a_budget_of_25_over_two_turns_of_21(story: Story) -> None:
    for turn in ("1", "2"):
        await story.say("user", f"u{turn}", f"q{turn}")  # "User: q1" is 8
        await story.say("assistant", f"a{turn}", f"a{turn}")  # "Assistant: a1" is 13
    result = await story.service.compact(story.id, always, TokenWindow(max_tokens=25))
    assert result.tokens_before == 42
    assert names(result.kept) == ["u2", "a2"]
    assert result.tokens_after == 21


async def test_s10_stops_at_the_first_that_does_not_fit(story: Story) -> None:
    await story.say("user", "u1", "hi")
    await story.say("assistant", "a1", "x" * 500)
    await story.say("user", "u2", "ok")
    result = await story.service.compact(story.id, always, TokenWindow(max_tokens=10))
    assert names(result.kept) == ["u2"]
    assert names(result.archived) == ["u1", "a1"]


async def test_s10_a_lane_s_user_message_at_the_cut_is_no_place_to_start(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    await story.tell("q-sub", lane="sub")
    await story.tell("u3", "a3")
    result = await story.service.compact(story.id, always, TokenWindow(max_tokens=40))
    assert names(result.kept) == ["u3", "a3"]


async def test_s10_tool_events_count(story: Story) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    await story.say("user", "u1", "find")
    await story.service.append(story.id, {"role": "assistant", "content": None, "tool_calls": [call]}, id="a1")
    await story.service.append(story.id, {"role": "tool", "tool_call_id": "c1", "content": "y" * 90}, id="t1")
    await story.say("assistant", "a2", "done")
    await story.say("user", "u2", "thanks")
    result = await story.service.compact(story.id, always, TokenWindow(max_tokens=60))
    assert names(result.kept) == ["u2"]


async def test_s15_every_window_takes_an_estimator(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2", "u3", "a3")
    result = await story.service.compact(story.id, always, TokenWindow(max_tokens=4, estimator=lambda text: len(text)))
    assert names(result.kept) == ["u3", "a3"]
