"""Presets: each known system of compaction by its name, ready to use."""

from __future__ import annotations

import difflib

from ..errors import InvalidInput
from .catalogue import PRESETS
from .preset import Preset
from .sized import KEEP, RESERVE, SIZED, holdfast_preset, pi_preset

__all__ = ["KEEP", "PRESETS", "RESERVE", "SIZED", "Preset", "holdfast_preset", "pi_preset", "preset_named"]


def preset_named(name: str | Preset, reserve: int | None = None, keep: int | None = None) -> Preset:
    """The preset of this name; `reserve` and `keep` are for those whose document has these two numbers (P2)."""
    if reserve is not None or keep is not None:
        return _sized(preset_named(name), reserve, keep)
    if isinstance(name, Preset):
        return name
    wanted = name.strip().lower().replace("-", "_") if isinstance(name, str) else ""
    if wanted in PRESETS:
        return PRESETS[wanted]
    near = difflib.get_close_matches(wanted, PRESETS, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidInput(f"There is no preset {name!r}: {hint}Use one of {', '.join(PRESETS)}.")


def _sized(preset: Preset, reserve: int | None, keep: int | None) -> Preset:
    if PRESETS.get(preset.name) is not preset or preset.name not in SIZED:
        raise InvalidInput(
            f"The preset {preset.name!r} has numbers of its own: leave out reserve and keep, or use one of "
            f"{', '.join(SIZED)}."
        )
    return SIZED[preset.name](RESERVE if reserve is None else reserve, KEEP if keep is None else keep)
