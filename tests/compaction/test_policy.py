"""The policy: every default of a compaction is resolved in one place (H7, H12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import KeepLedger, MemoryStore, Outcome, Policy, SessionService, SlidingWindow, compact, preset
from holdfast.compaction import CompactionRun, read_policy, resolve
from holdfast.compaction.presets import PRESETS
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.strategies.parameters import describe_parameters
from holdfast.tokens.budget import Tokens
from holdfast.triggers import OverThreshold, TokenCount, always, never
from holdfast.types import Plan, Request, Skip
from sized import assistant, request_for, user

TALK = [user(500), assistant(500)] * 10
DOCUMENTED = {"layer": (128_000, 93_600), "workstream": (200_000, 140_000), "pi": (200_000, 183_616)}


# -- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "window", "threshold"), [(name, *found) for name, found in DOCUMENTED.items()])
@pytest.mark.parametrize("overhead", [0, 30_000, 60_000])
def test_h12_documented_threshold_stays_while_overhead_takes_less_than_two_thirds(
    name: str, window: int, threshold: int, overhead: int
) -> None:
    assert preset(name).bounds(window, overhead).threshold == threshold


def test_h12_threshold_is_lifted_above_a_large_overhead_without_a_jump() -> None:
    layer, before = preset("layer"), 93_600
    for overhead in range(62_000, 128_000, 100):
        bounds = layer.bounds(128_000, overhead)
        assert bounds.threshold is not None and bounds.limit == 124_000
        assert 0 <= bounds.threshold - before <= 101
        assert bounds.threshold == min(124_000, max(93_600, overhead + 31_200))
        before = bounds.threshold


def test_g1_goat_threshold_contains_the_overhead_and_is_not_lifted() -> None:
    for overhead in (0, 50_000, 150_000):
        room = 200_000 - 16_384 - overhead
        assert preset("goat").bounds(200_000, overhead).threshold == overhead + int(0.8 * room)


@given(
    name=st.sampled_from(sorted(PRESETS)),
    window=st.integers(1, 2_000_000),
    overhead=st.integers(0, 2_500_000),
)
def test_h7_bounds_are_ordered_in_every_window(name: str, window: int, overhead: int) -> None:
    bounds = preset(name).bounds(window, overhead)
    assert bounds.limit is not None and bounds.threshold is not None and bounds.target is not None
    assert 1 <= bounds.target <= bounds.threshold <= max(1, bounds.limit) <= window
    room = max(0, bounds.threshold - overhead)
    assert bounds.gap == int(room / 3)
    if overhead + room // 4 <= bounds.threshold - room // 3:
        assert bounds.target <= bounds.threshold - int(room / 3), "a third of the room is freed"


def test_h12_target_frees_a_third_of_the_threshold_where_half_of_the_window_is_more() -> None:
    assert preset("layer").bounds(128_000, 0).target == 93_600 * 2 // 3


@pytest.mark.anyio
async def test_h12_next_automatic_compaction_comes_after_the_gap() -> None:
    """What must stay is over the threshold, so that the trigger fires at each step."""
    policy = Policy(name="narrow", window=10_000, threshold=Tokens(900), strategy=SlidingWindow(4), estimator="chars/4")
    await (service := SessionService(MemoryStore(), estimator="chars/4")).create(id="s", format="openai-chat")
    await service.append("s", [*TALK, user(1_000)])
    assert (await service.compact("s", preset=policy)).outcome is Outcome.COMPACTED
    await service.append("s", assistant(299))
    held = await service.compact("s", preset=policy)
    assert (held.outcome, held.bounds.gap) == (Outcome.NOT_NEEDED, 300)
    assert held.why == "299 tokens were appended since the last compaction: the next comes after 300"
    assert (await service.compact("s", always, preset=policy)).why != held.why
    await service.append("s", user(2))
    assert (await service.compact("s", preset=policy)).outcome is not Outcome.NOT_NEEDED


def test_h7_budget_is_limit_and_threshold_and_half_of_it_the_target() -> None:
    assert resolve(budget=1_000).bounds(None, 0)[1:4] == (1_000, 1_000, 500)
    assert resolve(budget=1_000, target=900).bounds(None, 0).target == 900
    assert resolve(budget=1).bounds(None, 0).target == 1


def test_h7_target_of_a_budget_lies_above_a_large_system_prompt() -> None:
    """Half of it could not be reached: a quarter of what is left is for messages."""
    assert resolve(budget=1_000).bounds(None, 900).target == 925


def test_h7_strategy_given_by_hand_has_its_own_limit_as_target() -> None:
    assert resolve(budget=100_000, strategy=KeepLedger(9_000)).bounds(None, 0).target == 9_000
    result = compact(TALK, budget=4_000, strategy="ledger:900", estimator="chars/4")
    assert result.bounds.target == 900 >= result.tokens_after


# -- resolving --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "fires"), [(9_999, True), (10_000, False)])
def test_budget_is_the_trigger_unless_there_is_another(budget: int, fires: bool) -> None:
    run = CompactionRun(request_for(TALK).view, resolve(budget=budget))
    assert (run.not_triggered() is None) is fires
    assert CompactionRun(request_for(TALK).view, resolve(budget=1, trigger=never)).not_triggered() is not None


@pytest.mark.parametrize("trigger", [4_000, "always", TokenCount])
def test_trigger_that_cannot_be_asked_is_one_clear_line(trigger: Any) -> None:
    with pytest.raises(InvalidInput, match="A trigger is a callable from a request to a bool"):
        resolve(budget=10, trigger=trigger)


def test_target_above_budget_or_window_is_one_clear_line() -> None:
    with pytest.raises(InvalidLimit, match="target=6 is above budget=5: choose a target below the budget"):
        resolve(budget=5, target=6)
    with pytest.raises(InvalidLimit, match="target=6 is above window=5: choose a target below the window"):
        resolve("layer", window=5, target=6)


def test_list_without_budget_or_preset_is_one_clear_line() -> None:
    with pytest.raises(InvalidLimit, match="pass budget=, or preset= and window="):
        compact(TALK)


def test_h7_result_says_by_what_it_was_made() -> None:
    result = compact(TALK, preset="layer", window=8_000, summarizer=lambda text: "Summary.", target=2_000)
    assert result.policy["name"] == "layer"
    assert result.policy["changes"] | {"summarizer": ""} == {"window": 8_000, "target": 2_000, "summarizer": ""}
    assert result.bounds.target == 2_000 and result.bounds.window == 8_000


# -- stored -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_h7_stored_policy_is_read_back(name: str) -> None:
    policy = preset(name).changed(window=50_000, target=9_000, min_saving=0.2, gap=0.5, strategy=SlidingWindow(4))
    again = read_policy(policy.stored())
    assert again.stored() == policy.stored() and again.missing == ()
    assert again.bounds(None, 1_000) == policy.bounds(None, 1_000)
    assert describe_parameters(again.strategy) == describe_parameters(policy.strategy)


def test_h7_arguments_of_a_preset_are_stored() -> None:
    policy = preset("layer", system_reserve=12_000, keep=4)
    assert policy.stored() == {"name": "layer", "arguments": {"system_reserve": 12_000, "keep": 4}, "changes": {}}
    assert read_policy(policy.stored()).stored() == policy.stored()


def test_h7_objects_of_another_process_are_named_and_the_presets_own_stand_in() -> None:
    def my_strategy(request: Request) -> Plan | Skip:
        return Skip(Outcome.NOTHING_TO_COMPACT)

    stored = preset("layer").changed(strategy=my_strategy, trigger=lambda request: False, window=9_000).stored()
    policy = read_policy(stored)
    assert set(policy.missing) == {"strategy FunctionStrategy", "trigger <lambda>"}
    assert policy.window == 9_000 and policy.trigger == preset("layer").trigger
    own = Policy(name="harbour", threshold=Tokens(5), strategy=SlidingWindow(2))
    assert read_policy(own.stored()).missing == ("preset harbour",)
    assert read_policy(own.stored()).name == "holdfast"


@pytest.mark.anyio
async def test_h7_missing_objects_are_remarks_of_the_result() -> None:
    store = MemoryStore()
    application = SessionService(store, estimator="chars/4", preset=Policy(name="harbour", trigger=always))
    await application.create(id="s")
    await application.append("s", TALK)
    result = await SessionService(store, estimator="chars/4", window=8_000).compact("s")
    assert result.outcome is Outcome.COMPACTED
    assert any("preset harbour" in remark for remark in result.remarks)


def test_own_trigger_is_the_policys_and_a_given_one_is_not() -> None:
    assert preset("layer").is_automatic and resolve(budget=5).is_automatic
    assert not resolve("layer", trigger=TokenCount(5)).is_automatic
    assert preset("layer").trigger == OverThreshold(inclusive=True, least_messages=12)


@pytest.mark.parametrize("trigger", [never, always, TokenCount(4_000), OverThreshold(inclusive=True)])
def test_h7_triggers_of_the_library_are_built_again(trigger: Any) -> None:
    again = read_policy(resolve("layer", trigger=trigger).stored())
    assert again.missing == () and describe_parameters(again.trigger) == describe_parameters(trigger)
