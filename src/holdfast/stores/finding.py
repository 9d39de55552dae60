"""One thing that was looked at, and whether it is as it should be."""

from __future__ import annotations

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `holdfast doctor`."""

    name: str
    state: Literal["ok", "warning", "problem"]
    said: str
    advice: str | None = None
    """What to do about it."""
