"""Every number that a document names is an argument of its preset (H7, P2, P8, P21, L2, W1, G2)."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from holdfast import preset
from holdfast.compaction.presets import PRESETS, takes_sizes
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.strategies import KeepRecent, KeepTrail, Summary

CHANGED: dict[str, dict[str, Any]] = {
    "holdfast": {"percent": 0.7, "reserve": 2_000, "keep": 700},
    "spring": {"turns": 7, "tokens": 900, "keep": 4, "overlap": 1},
    "pi": {"reserve": 2_000, "keep": 700, "summary_share": 0.5},
    "claude_code": {"percent": 0.9},
    "claude_code_ts": {"percent": 0.9, "keep": 0.3},
    "codex": {"limit": 90_000, "percent": 0.9, "keep": 700, "attempts": 2},
    "opencode": {"output": 9_000, "protect": 800, "minimum": 70},
    "amp": {},
    "layer": {
        "system_reserve": 100,
        "output_reserve": 200,
        "safety": 300,
        "percent": 0.5,
        "keep": 4,
        "summary_tokens": 77,
        "max_summary_tokens": 99,
        "temperature": 0.7,
    },
    "workstream": {
        "percent": 0.6,
        "output_reserve": 1_000,
        "safety": 500,
        "keep": 4,
        "attempts": 3,
        "backoff": 1.0,
        "deadline": 60.0,
    },
    "goat": {"utilization": 0.5, "output": 3_000, "keep": 0.2},
}
"""Another value for each argument of each preset."""


def test_every_argument_is_changed_below() -> None:
    assert {name: list(numbers) for name, numbers in CHANGED.items()} == {
        name: list(inspect.signature(build).parameters) for name, build in PRESETS.items()
    }


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [(name, argument, value) for name, numbers in CHANGED.items() for argument, value in numbers.items()],
)
def test_h7_each_number_of_a_document_is_an_argument(name: str, argument: str, value: Any) -> None:
    policy = preset(name, **{argument: value})
    assert (policy.name, policy.arguments) == (name, {argument: value})
    usual = preset(name)
    assert _numbers(policy) != _numbers(usual)


def _numbers(policy: Any) -> Any:
    """Everything of a policy that decides: its bounds in two windows, trigger, strategy, limits and reply."""
    from holdfast.strategies.parameters import describe_parameters

    bounds = [policy.bounds(window, 1_000) for window in (50_000, 128_000, 200_000)]
    return bounds, describe_parameters(policy.trigger), _deep(policy.strategy), policy.limits, policy.reply


def _deep(value: Any) -> Any:
    fields = getattr(value, "__struct_fields__", None) or list(getattr(value, "__dict__", {}))
    return {name: _deep(getattr(value, name)) for name in fields} if fields else _list_or_value(value)


def _list_or_value(value: Any) -> Any:
    return [_deep(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", list(filter(takes_sizes, PRESETS)))
def test_reserve_and_keep_reach_threshold_and_strategy(name: str) -> None:
    policy = preset(name, reserve=2_000, keep=700)
    assert isinstance(policy.strategy, Summary) and isinstance(policy.strategy.keep, KeepRecent | KeepTrail)
    assert policy.strategy.keep.keep_tokens == 700
    limit = policy.bounds(100_000, 0).threshold
    assert limit == {"holdfast": int(0.85 * 98_000), "pi": 98_000}[name]
    assert "2,000" in policy.figures["compacts"] and "700" in policy.figures["keeps"]


def test_l2_layer_reserves_move_its_threshold() -> None:
    assert preset("layer").bounds(128_000, 0).threshold == 93_600
    assert preset("layer", system_reserve=12_000).bounds(128_000, 0).threshold == 85_600


def test_p21_codex_takes_a_limit_by_model() -> None:
    assert preset("codex", limit=150_000).bounds(272_000, 0).threshold == 150_000
    assert preset("codex", limit=500_000).bounds(272_000, 0).threshold == 258_400


def test_unknown_argument_is_one_line_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="The preset 'goat' has no 'keeps': it takes utilization, output, keep"):
        preset("goat", keeps=5)
    with pytest.raises(InvalidInput, match="has no 'keep': it has no numbers to change"):
        preset("amp", keep=5)


@pytest.mark.parametrize("name", list(filter(takes_sizes, PRESETS)))
def test_invalid_sizes_are_rejected(name: str) -> None:
    for reserve, keep in ((0, 5), (5, 0), (-1, 5)):
        with pytest.raises(InvalidLimit):
            preset(name, reserve=reserve, keep=keep)
