"""The two presets whose document has a reserve and a part to keep take both as numbers (P2, P8)."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.presets import PRESETS, SIZED, holdfast_preset, pi_preset, preset_named
from holdfast.strategies import KeepRecent, Summary


@pytest.mark.parametrize("name", SIZED)
def test_the_defaults_are_the_documents(name: str) -> None:
    assert SIZED[name]().figures == PRESETS[name].figures
    assert preset_named(name) is PRESETS[name]


@pytest.mark.parametrize("name", SIZED)
def test_both_numbers_reach_what_they_are_about(name: str) -> None:
    preset = preset_named(name, reserve=2_000, keep=700)
    assert isinstance(preset.strategy, Summary) and isinstance(preset.strategy.keep, KeepRecent)
    assert preset.strategy.keep.keep_tokens == 700
    limit = preset.trigger_in(100_000).threshold.tokens(100_000)  # type: ignore[attr-defined]
    assert limit == {"holdfast": int(0.85 * 98_000), "pi": 98_000}[name]
    assert "2,000" in preset.figures["compacts"] and "700" in preset.figures["keeps"]


def test_one_of_them_alone_leaves_the_other(name: str = "pi") -> None:
    assert preset_named(name, reserve=5_000).figures["keeps"] == PRESETS[name].figures["keeps"]
    assert preset_named(name, keep=5_000).figures["compacts"] == PRESETS[name].figures["compacts"]


@pytest.mark.parametrize("name", sorted(set(PRESETS) - set(SIZED)))
def test_the_others_have_numbers_of_their_own(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"The preset '{name}' has numbers of its own"):
        preset_named(name, keep=5)


def test_a_preset_that_somebody_made_is_not_made_over() -> None:
    with pytest.raises(InvalidInput, match="numbers of its own"):
        preset_named(pi_preset(keep=9), keep=5)


@pytest.mark.parametrize("make", [holdfast_preset, pi_preset])
def test_senseless_numbers_are_refused(make: type) -> None:
    for numbers in ((0, 5), (5, 0), (-1, 5)):
        with pytest.raises(InvalidLimit):
            make(*numbers)
