"""After a compaction the next step does not compact again (behaviours 14, 21): each preset, also in small windows."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast import CompactionResult, MemoryStore, Outcome, SessionService, compact
from holdfast.cli import main
from holdfast.compaction.presets import PRESETS, preset
from holdfast.errors import InvalidLimit
from holdfast.models import ScriptedModel
from holdfast.triggers import always

Json = dict[str, Any]
WINDOWS = (8_192, 32_000, 128_000)
automatic = pytest.mark.parametrize("name", [name for name in PRESETS if name != "amp"])
each_window = pytest.mark.parametrize("window", WINDOWS)


def step(number: int) -> list[Json]:
    """A turn with a failing call and many facts to keep, so that summaries reach their maximum length."""
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


def summarize_at_length(prompt: str) -> str:
    """Returns a summary in the requested format, about as long as allowed."""
    allowed = re.findall(r"at most ([\d,]+) tokens", prompt)
    tokens = int(allowed[-1].replace(",", "")) if allowed else 4_000
    lines = [f"- Berth {number} was sounded." for number in range(tokens // 10)]
    text = "\n".join(lines)
    if "### Completed Work" in prompt:
        return f"### Key Technical Decisions\n{text}\n\n### Pending Work\n- [ ] The other berths."
    return json.dumps({"summary": text, "state_delta": {}}) if "state_delta" in prompt else text


@cache
def over_the_threshold(name: str, window: int) -> CompactionResult:
    """Compacts a conversation that has just exceeded the threshold."""
    steps = 8 if name == "spring" else window // 600
    while (result := compacted(name, window, steps)).outcome is Outcome.NOT_NEEDED:
        steps += max(1, steps // 10)
    return result


def compacted(name: str, window: int, steps: int) -> CompactionResult:
    messages = [message for number in range(steps) for message in step(number)]
    return compact(messages, preset=name, window=window, summarizer=summarize_at_length)


@pytest.mark.sampled(12)
@each_window
@automatic
def test_step_after_a_compaction_does_not_compact(name: str, window: int) -> None:
    result = over_the_threshold(name, window)
    assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "")
    extended = [*result.messages, *step(10_000)]
    after = compact(extended, preset=name, window=window, summarizer=summarize_at_length, previous=result.checkpoint)
    assert after.outcome is Outcome.NOT_NEEDED, f"{result.tokens_after} tokens are over the threshold"


@pytest.mark.sampled(12)
@each_window
@automatic
def test_target_is_well_below_the_threshold(name: str, window: int) -> None:
    result = over_the_threshold(name, window)
    assert 0 < preset(name).bounds(window, 0).target <= min(window / 2, 0.8 * result.tokens_before)


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000, 64_000, 128_000, 200_000, 1_000_000])
def test_own_preset_frees_a_third_of_its_threshold(window: int) -> None:
    """Behaviour 14: in a small window, where the reserve takes a quarter, half of the window would be near it."""
    threshold = 0.85 * (window - min(16_384, window // 4))
    assert preset("holdfast").bounds(window, 0).target <= 2 / 3 * threshold
    assert preset("holdfast").bounds(window, 0).target >= 0.6 * min(threshold, window / 2)


@pytest.mark.parametrize("name", PRESETS)
def test_smallest_window_has_a_target(name: str) -> None:
    assert preset(name).bounds(1, 0).target == 1


def test_spring_target_is_below_its_4_000_tokens() -> None:
    """Half of a window of 128,000 would exceed the trigger's threshold; a third of it is freed (H12)."""
    assert preset("spring").bounds(128_000, 0).target == 2_667


def test_codex_target_respects_the_absolute_limit() -> None:
    """P21, H12: a third of 244,000 is freed."""
    assert preset("codex").bounds(1_000_000, 0).target == 162_667


def test_explicit_target_or_budget_takes_precedence() -> None:
    messages = [message for number in range(100) for message in step(number)]
    sizes = [
        compact(messages, preset="spring", trigger=always, summarizer=summarize_at_length, target=target).tokens_after
        for target in (None, 2_667, 8_000)
    ]
    assert sizes[0] == sizes[1] < 2_667 < sizes[2]
    options = {"trigger": always, "summarizer": summarize_at_length}
    assert compact(messages, preset="claude_code", budget=5_000, **options).tokens_after < 2_500
    with pytest.raises(InvalidLimit, match="target=6000 is above window=5000"):
        compact(messages, preset="spring", window=5_000, target=6_000)


def test_cli_reports_the_target_of_the_preset() -> None:
    result = CliRunner().invoke(main, ["compact", "example", "--preset", "spring", "--json"])
    assert 2_667 <= json.loads(result.stdout)["target"] < 4_000, "above its system prompt, below the threshold"


@pytest.mark.anyio
@pytest.mark.parametrize(("tokens", "rolled_up"), [(75_000, []), (85_000, ["rollup"])])
async def test_w7_workstream_rolls_a_summary_up_above_80_000_tokens(tokens: int, rolled_up: list[str]) -> None:
    """Three chunks of the transcript, each building on the summary so far."""
    texts = (f"KEY FACTS:{' the harbour was dredged' * (size // 8)}" for size in (36_000, 70_000, tokens))
    summaries = [json.dumps({"summary": text, "state_delta": {}}) for text in texts]
    model = ScriptedModel([*summaries, "KEY FACTS: the harbour was dredged"])
    async with SessionService(MemoryStore(), preset="workstream", summarizer=model) as service:
        await service.create(id="s", format="openai-chat")
        for number in range(44):
            text = f"{number} " + ("y" * 9_000 if number < 38 else "ok")
            await service.append("s", {"role": "assistant" if number % 2 else "user", "content": text})
        result = await service.compact("s", always)
    assert (result.outcome, result.why) == (Outcome.COMPACTED, "")
    assert [call.purpose for call in model.calls] == ["summary", "summary", "summary", *rolled_up]
