"""The presets with a reserve and a kept part accept both as numbers (P2, P8)."""

from __future__ import annotations

import pytest

from holdfast.compaction.presets import PRESETS, SIZED_PRESETS, holdfast_preset, pi_preset, preset_named
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.strategies import KeepRecent, KeepTrail, Summary


@pytest.mark.parametrize("name", SIZED_PRESETS)
def test_default_sizes_equal_the_preset(name: str) -> None:
    assert SIZED_PRESETS[name]().figures == PRESETS[name].figures
    assert preset_named(name) is PRESETS[name]


@pytest.mark.parametrize("name", SIZED_PRESETS)
def test_reserve_and_keep_reach_trigger_and_strategy(name: str) -> None:
    preset = preset_named(name, reserve=2_000, keep=700)
    assert isinstance(preset.strategy, Summary) and isinstance(preset.strategy.keep, KeepRecent | KeepTrail)
    assert preset.strategy.keep.keep_tokens == 700
    limit = preset.trigger_in(100_000).threshold.tokens(100_000)  # type: ignore[attr-defined]
    assert limit == {"holdfast": int(0.85 * 98_000), "pi": 98_000}[name]
    assert "2,000" in preset.figures["compacts"] and "700" in preset.figures["keeps"]


def test_one_size_alone_keeps_the_other(name: str = "pi") -> None:
    assert preset_named(name, reserve=5_000).figures["keeps"] == PRESETS[name].figures["keeps"]
    assert preset_named(name, keep=5_000).figures["compacts"] == PRESETS[name].figures["compacts"]


@pytest.mark.parametrize("name", sorted(set(PRESETS) - set(SIZED_PRESETS)))
def test_presets_with_fixed_sizes_reject_sizes(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"The preset '{name}' has fixed sizes"):
        preset_named(name, keep=5)


def test_custom_preset_rejects_sizes() -> None:
    with pytest.raises(InvalidInput, match="has fixed sizes"):
        preset_named(pi_preset(keep=9), keep=5)


@pytest.mark.parametrize("make", [holdfast_preset, pi_preset])
def test_invalid_sizes_are_rejected(make: type) -> None:
    for numbers in ((0, 5), (5, 0), (-1, 5)):
        with pytest.raises(InvalidLimit):
            make(*numbers)
