"""After a compaction the next step does not need another (behaviours 14, 21): each preset, in small windows too."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast import CompactionResult, Outcome, always
from holdfast.cli import main
from holdfast.errors import InvalidLimit
from holdfast.presets import PRESETS, preset_named

Json = dict[str, Any]
WINDOWS = (8_192, 32_000, 128_000)
automatic = pytest.mark.parametrize("name", [name for name in PRESETS if name != "amp"])
each_window = pytest.mark.parametrize("window", WINDOWS)


def step(number: int) -> list[Json]:
    """A turn whose call fails: there is much that must not be lost, so that summaries become as long as they may."""
    function = {"name": "run", "arguments": json.dumps({"command": f"dredge --berth {number}"})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    sounded = "\n".join(f"sounding {place} of berth {number}: {place * number} cm" for place in range(12))
    failed = f"{sounded}\nError: /harbor/{number}.csv: E{number} is silted."
    return [
        {"role": "user", "content": f"Never dredge berth {number} below {number * 7} cm. Edit /harbor/{number}.csv."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": failed},
        {"role": "assistant", "content": f"Berth {number} is still to be done."},
    ]


def wordy(prompt: str) -> str:
    """A summary in the shape that is asked for, about as long as it may be."""
    allowed = re.findall(r"at most ([\d,]+) tokens", prompt)
    tokens = int(allowed[-1].replace(",", "")) if allowed else 4_000
    lines = [f"- Berth {number} was sounded." for number in range(tokens // 10)]
    told = "\n".join(lines)
    if "### Completed Work" in prompt:
        return f"### Key Technical Decisions\n{told}\n\n### Pending Work\n- [ ] The other berths."
    return json.dumps({"summary": told, "state_delta": {}}) if "state_delta" in prompt else told


@cache
def over_the_threshold(name: str, window: int) -> CompactionResult:
    """What a conversation is compacted to that has just become long enough for it."""
    steps = 8 if name == "spring" else window // 600
    while (result := compacted(name, window, steps)).outcome is Outcome.NOT_NEEDED:
        steps += max(1, steps // 10)
    return result


def compacted(name: str, window: int, steps: int) -> CompactionResult:
    said = [message for number in range(steps) for message in step(number)]
    return PRESETS[name].compact(said, window, summarizer=wordy)


@each_window
@automatic
def test_the_step_after_a_compaction_needs_no_other(name: str, window: int) -> None:
    result = over_the_threshold(name, window)
    assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "")
    told = [*result.messages, *step(10_000)]
    after = PRESETS[name].compact(told, window, summarizer=wordy, previous=result.checkpoint)
    assert after.outcome is Outcome.NOT_NEEDED, f"{result.tokens_after} tokens were too many"


@each_window
@automatic
def test_what_is_compacted_to_is_well_below_what_is_compacted_at(name: str, window: int) -> None:
    result = over_the_threshold(name, window)
    assert 0 < PRESETS[name].target_in(window) <= min(window / 2, 0.8 * result.tokens_before)


@pytest.mark.parametrize("name", PRESETS)
def test_the_smallest_window_has_a_target_too(name: str) -> None:
    assert PRESETS[name].target_in(1) == 1


def test_springs_summary_leaves_room_below_its_4_000_tokens() -> None:
    """Half of a window of 128,000 would let it have more than what fires the trigger."""
    assert PRESETS["spring"].target_in(128_000) == 3_000


def test_an_absolute_limit_holds_in_the_largest_window() -> None:
    """P21: 244,000 of a million."""
    assert PRESETS["codex"].target_in(1_000_000) == 183_000


def test_a_target_or_a_budget_of_ones_own_wins() -> None:
    said = [message for number in range(100) for message in step(number)]
    spring = preset_named("spring")
    sizes = [
        spring.compact(said, trigger=always, summarizer=wordy, target=target).tokens_after
        for target in (None, 3_000, 8_000)
    ]
    assert sizes[0] == sizes[1] < 3_000 < sizes[2]
    assert (
        preset_named("claude_code").compact(said, trigger=always, summarizer=wordy, budget=5_000).tokens_after < 2_500
    )
    with pytest.raises(InvalidLimit, match="target=6000 is above budget=5000"):
        spring.compact(said, 5_000, target=6_000)


def test_the_command_line_tells_the_presets_target() -> None:
    told = CliRunner().invoke(main, ["compact", "example", "--preset", "spring", "--json"])
    assert json.loads(told.stdout)["target"] == 3_000
