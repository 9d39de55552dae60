"""System prompt and tools that take two thirds of a small window: compactions keep their distance (H12, H7)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from holdfast import Keeper, Policy, SlidingWindow, preset
from holdfast.compaction.presets import PRESETS
from holdfast.hooks.events import CompactionCompleted
from holdfast.models import ScriptedModel
from holdfast.tokens.budget import Tokens
from sized import assistant, letters, user

pytestmark = pytest.mark.anyio
WINDOW, SYSTEM, STEP = 12_000, 8_000, 60
REQUESTS = 60
automatic = [name for name in PRESETS if name not in ("amp", "spring")]


async def compactions(policy: Policy, requests: int = REQUESTS, size: int = STEP) -> tuple[list[int], Any]:
    """Runs an agent whose every request appends a question and a reply; returns the requests that were compacted."""
    done: list[int] = []
    number = 0

    def note(event: Any) -> None:
        if isinstance(event, CompactionCompleted):
            done.append(number)

    model = ScriptedModel("They looked after the piers.", repeat=True)
    keeper = Keeper(
        preset=policy.changed(estimator="chars/4"),
        window=WINDOW,
        system=letters(SYSTEM),
        format="openai-chat",
        summarizer=model,
        listen=note,
    )
    history: list[Any] = []
    for number in range(1, requests + 1):
        history.append(user(size, f"Sound berth {number}."))
        context = await keeper.prepare_step(history)
        assert context.tokens <= WINDOW
        history.append(assistant(size))
    return done, keeper


@pytest.mark.parametrize("name", automatic)
async def test_h12_compacts_at_most_as_often_as_the_gap_says(name: str) -> None:
    policy = preset(name).changed(estimator="chars/4", window=WINDOW)
    bounds = policy.bounds(None, SYSTEM)
    assert bounds.threshold is not None
    done, _ = await compactions(policy)
    between = max(1, bounds.gap // (2 * STEP))
    distances = [later - earlier for earlier, later in pairwise(done)]
    assert all(distance >= between for distance in distances), (distances, between)
    assert len(done) <= 1 + REQUESTS // between


async def test_h12_gap_holds_back_a_trigger_that_always_fires() -> None:
    """What must stay is over the threshold: without the gap, each request would be compacted in vain."""
    policy = Policy(name="narrow", threshold=Tokens(SYSTEM + 500), strategy=SlidingWindow(8), estimator="chars/4")
    bounds = policy.changed(window=WINDOW).bounds(None, SYSTEM)
    done, keeper = await compactions(policy)
    assert bounds.gap > 4 * STEP
    assert 1 <= len(done) <= 1 + REQUESTS * 2 * STEP // bounds.gap
    held = await keeper.sessions.compact(keeper.session_id)
    assert held.outcome in ("not_needed", "compacted", "nothing_to_compact", "no_progress")


async def test_h12_automatic_compaction_that_frees_less_than_a_third_says_so() -> None:
    _, keeper = await compactions(preset("holdfast"), requests=3, size=700)
    session = keeper.session_id
    policy = Policy(name="little", threshold=Tokens(SYSTEM + 3_000), strategy=SlidingWindow(40), estimator="chars/4")
    for number in range(20):
        await keeper.sessions.append(session, [user(140, f"Berth {number}?"), assistant(140)])
    result = await keeper.sessions.compact(session, preset=policy.changed(window=WINDOW, gap=0.01))
    if result.outcome == "compacted" and result.tokens_after > SYSTEM + 2_000:
        assert any("tokens are free up to the threshold" in remark for remark in result.remarks)
