"""Presets: each known system of compaction by its name, ready to use."""

from __future__ import annotations

import difflib

from ..errors import InvalidInput
from .catalogue import PRESETS
from .preset import Preset

__all__ = ["PRESETS", "Preset", "preset_named"]


def preset_named(name: str | Preset) -> Preset:
    """The preset of this name."""
    if isinstance(name, Preset):
        return name
    wanted = name.strip().lower().replace("-", "_") if isinstance(name, str) else ""
    if wanted in PRESETS:
        return PRESETS[wanted]
    near = difflib.get_close_matches(wanted, PRESETS, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidInput(f"There is no preset {name!r}: {hint}Use one of {', '.join(PRESETS)}.")
