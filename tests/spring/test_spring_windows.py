"""Spring's sliding, turn and token window cases, with its numbers (S5-S10, S14, S16)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from spring_helpers import Scenario, names

from holdfast import Outcome, SlidingWindow, TokenWindow, TurnWindow
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


async def test_s8_sliding_window_snaps_forward_to_a_user_message(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2", "u3", "a3")
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=3))
    assert names(result.kept) == ["u3", "a3"]
    assert result.removed == 4


async def test_s8_synthetic_events_come_first_and_do_not_count(scenario: Scenario) -> None:
    await scenario.append_named("shadow", "summary", synthetic=True)
    await scenario.append_named("msg-1", "msg-2", "msg-3", "msg-4")
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=3))
    assert await scenario.visible() == ["shadow", "summary", "msg-2", "msg-3", "msg-4"]
    assert names(result.archived) == ["msg-1"]
    assert len(result.kept) == 5


async def test_s16_lane_events_count_neither_as_events_nor_as_turns(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1")
    await scenario.append_named("q-sub", "a-sub", lane="sub")
    await scenario.append_named("u2", "a2")
    nothing = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=4))
    assert nothing.outcome is Outcome.NOTHING_TO_COMPACT
    assert len(nothing.kept) == 4
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=2))
    assert names(result.kept) == ["u2", "a2"]
    assert result.removed == 2


async def test_s8_sliding_window_at_limit_changes_nothing(scenario: Scenario) -> None:
    """S1: a result without a change is not written."""
    await scenario.append_named("u1", "a1")
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=2))
    assert result.outcome is Outcome.NOTHING_TO_COMPACT
    assert result.version == 2


async def test_s14_turn_longer_than_window_never_leaves_it_empty(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "a2", "a3", "a4", "a5")
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=3))
    assert await scenario.visible() == ["u1", "a4", "a5"]
    assert names(result.archived) == ["a1", "a2", "a3"]
    again = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=3))
    assert again.outcome is Outcome.NOTHING_TO_COMPACT


async def test_s9_turn_window_archives_whole_first_turn(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1a", "a1b", "u2", "a2", "u3", "a3")
    result = await scenario.service.compact(scenario.id, always, TurnWindow(max_turns=2))
    assert result.removed == 3
    assert await scenario.visible() == ["u2", "a2", "u3", "a3"]


async def test_s9_turn_window_keeps_the_preamble(scenario: Scenario) -> None:
    await scenario.append_named("a0", "u1", "a1", "u2", "a2")
    await scenario.service.compact(scenario.id, always, TurnWindow(max_turns=1))
    assert await scenario.visible() == ["a0", "u2", "a2"]
    await scenario.append_named("u3", "a3")
    await scenario.service.compact(scenario.id, always, TurnWindow(max_turns=1))
    assert await scenario.visible() == ["a0", "u3", "a3"]


async def test_s9_preamble_follows_the_synthetic_events(scenario: Scenario) -> None:
    await scenario.append_named("a0")
    await scenario.append_named("shadow", "summary", synthetic=True)
    await scenario.append_named("u1", "a1", "u2", "a2")
    await scenario.service.compact(scenario.id, always, TurnWindow(max_turns=1))
    assert await scenario.visible() == ["shadow", "summary", "a0", "u2", "a2"]


async def test_s9_turn_window_keeps_all_summary_turns(scenario: Scenario) -> None:
    await scenario.append_named("shadow-1", "summary-1", "shadow-2", "summary-2", synthetic=True)
    await scenario.append_named("u1", "a1", "u2", "a2", "u3", "a3")
    await scenario.service.compact(scenario.id, always, TurnWindow(max_turns=2))
    assert await scenario.visible() == ["shadow-1", "summary-1", "shadow-2", "summary-2", "u2", "a2", "u3", "a3"]


async def test_s10_token_window_of_25_keeps_one_of_two_turns_of_21(scenario: Scenario) -> None:
    for turn in ("1", "2"):
        await scenario.append_text("user", f"u{turn}", f"q{turn}")  # "User: q1" is 8
        await scenario.append_text("assistant", f"a{turn}", f"a{turn}")  # "Assistant: a1" is 13
    result = await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=25))
    assert result.tokens_before == 42
    assert names(result.kept) == ["u2", "a2"]
    assert result.tokens_after == 21


async def test_s10_token_window_stops_at_first_event_that_does_not_fit(scenario: Scenario) -> None:
    await scenario.append_text("user", "u1", "hi")
    await scenario.append_text("assistant", "a1", "x" * 500)
    await scenario.append_text("user", "u2", "ok")
    result = await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=10))
    assert names(result.kept) == ["u2"]
    assert names(result.archived) == ["u1", "a1"]


async def test_s10_synthetic_events_are_deducted_from_the_budget(scenario: Scenario) -> None:
    await scenario.append_named("shadow", synthetic=True)  # "User: shadow" is 12
    await scenario.append_named("u1", "a1", "u2", "a2")  # 21 a turn
    fits = await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=12 + 42))
    assert fits.outcome is Outcome.NOTHING_TO_COMPACT
    await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=12 + 41))
    assert await scenario.visible() == ["shadow", "u2", "a2"]


async def test_s10_token_window_never_starts_at_a_lane_message(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    await scenario.append_named("q-sub", lane="sub")
    await scenario.append_named("u3", "a3")
    result = await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=40))
    assert names(result.kept) == ["u3", "a3"]


async def test_s10_token_window_counts_tool_events(scenario: Scenario) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    await scenario.append_text("user", "u1", "find")
    await scenario.service.append(scenario.id, {"role": "assistant", "content": None, "tool_calls": [call]}, id="a1")
    await scenario.service.append(scenario.id, {"role": "tool", "tool_call_id": "c1", "content": "y" * 90}, id="t1")
    await scenario.append_text("assistant", "a2", "done")
    await scenario.append_text("user", "u2", "thanks")
    result = await scenario.service.compact(scenario.id, always, TokenWindow(max_tokens=60))
    assert names(result.kept) == ["u2"]


async def test_s15_every_window_takes_an_estimator(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2", "u3", "a3")
    result = await scenario.service.compact(
        scenario.id, always, TokenWindow(max_tokens=4, estimator=lambda text: len(text))
    )
    assert names(result.kept) == ["u3", "a3"]


@pytest.mark.parametrize("strategy", [SlidingWindow(3), TurnWindow(2), TokenWindow(90)], ids=lambda s: type(s).__name__)
async def test_s8_synthetic_events_inside_the_kept_window_come_first(
    scenario: Scenario, strategy: SlidingWindow | TurnWindow | TokenWindow
) -> None:
    await scenario.append_named("u1", "a1", "u2")
    await scenario.append_text("assistant", "a2", "a2 " + "x" * 60)
    await scenario.append_named("u3")
    await scenario.append_named("shadow", "summary", synthetic=True)
    await scenario.append_named("a3", "u4")
    result = await scenario.service.compact(scenario.id, always, strategy)
    visible = await scenario.visible()
    assert visible[:2] == ["shadow", "summary"] and visible[-3:] == ["u3", "a3", "u4"]
    assert visible.count("shadow") == visible.count("summary") == 1
    assert {"shadow", "summary"} <= set(names(result.kept)) and names(result.edited) == []
    assert not {"shadow", "summary"} & set(names(result.archived))
    assert await scenario.service.verify(scenario.id) == []
    await scenario.append_named("a4", "u5", "a5")
    await scenario.service.compact(scenario.id, always, SlidingWindow(2))
    assert await scenario.visible() == ["shadow", "summary", "u5", "a5"]
    await scenario.service.undo(scenario.id)
    await scenario.service.undo(scenario.id)
    assert (await scenario.visible())[4:8] == ["u3", "shadow", "summary", "a3"]


@pytest.mark.parametrize(("strategy", "limit"), [(SlidingWindow, 2), (TurnWindow, 1), (TokenWindow, 2)])
async def test_s15_estimator_of_a_window_counts_the_tokens_saved(
    scenario: Scenario, strategy: type[SlidingWindow] | type[TurnWindow] | type[TokenWindow], limit: int
) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    result = await scenario.service.compact(scenario.id, always, strategy(limit, estimator=lambda text: len(text) // 2))
    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_saved == result.removed


def event_size(name: str) -> int:
    return len(f"{'User' if name[0] == 'u' else 'Assistant'}: {name}")


def from_next_turn(events: list[str], cut: int) -> list[str]:
    return next((events[place:] for place in range(cut, len(events)) if events[place][0] == "u"), [])


def last_events(real: list[str], synthetic: list[str], limit: int) -> list[str]:
    return real if len(real) <= limit else from_next_turn(real, len(real) - limit)


def last_turns(real: list[str], synthetic: list[str], limit: int) -> list[str]:
    turns = [place for place, name in enumerate(real) if name[0] == "u"]
    return real if len(turns) <= limit else real[: turns[0]] + real[turns[-limit] :]


def last_tokens(real: list[str], synthetic: list[str], limit: int) -> list[str]:
    room = limit - sum(map(event_size, synthetic))
    cut = next(cut for cut in range(len(real) + 1) if sum(map(event_size, real[cut:])) <= max(0, room))
    return real if cut == 0 else from_next_turn(real, cut)


WINDOWS: dict[str, tuple[type[SlidingWindow | TurnWindow | TokenWindow], Callable[..., list[str]], tuple[int, int]]] = {
    "S8": (SlidingWindow, last_events, (1, 6)),
    "S9": (TurnWindow, last_turns, (1, 4)),
    "S10": (TokenWindow, last_tokens, (30, 160)),
}


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("window", "described", "limits"), WINDOWS.values(), ids=WINDOWS)
async def test_s8_s9_s10_windows_of_random_logs_are_those_described(
    scenario: Scenario,
    window: Callable[[int], SlidingWindow | TurnWindow | TokenWindow],
    described: Callable[..., list[str]],
    limits: tuple[int, int],
    seed: int,
) -> None:
    """Three compactions in a row, with synthetic events anywhere; where nothing would be left, S14 decides."""
    random, real, synthetic = Random(seed), list[str](), list[str]()
    for number in range(3):
        for place in range(random.randint(1, 8)):
            is_synthetic = random.random() < 0.15
            name = f"{random.choice('ua')}{number}{place}{random.choice(['', '', 'x' * 30])}"
            await scenario.append_named(name, synthetic=is_synthetic)
            (synthetic if is_synthetic else real).append(name)
        limit = random.randint(*limits)
        before, kept = await scenario.visible(), described(real, synthetic, limit)
        await scenario.service.compact(scenario.id, always, window(limit))
        if not kept and real:
            return
        assert await scenario.visible() == (before if kept == real else synthetic + kept)
        real = kept
