"""What a person has settled, as typed values, with the place that each came from."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..presets import KEEP, RESERVE


class Compaction(Struct, frozen=True):
    """When a session is compacted by itself, and what stays (P2)."""

    enabled: bool = True
    reserve_tokens: int = RESERVE
    keep_recent_tokens: int = KEEP


class Hooks(Struct, frozen=True):
    """Shell commands to run around a compaction (G7)."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    session_start: tuple[str, ...] = ()


class Settings(Struct, frozen=True, kw_only=True):
    """All settings. Where nothing was said, the default stands."""

    model: str | None = None
    summarizer: str | None = None
    """None: the model that answers writes summaries too."""
    preset: str = "holdfast"
    window: int | None = None
    """None: as the catalog says."""
    store: str
    compaction: Compaction = Compaction()
    hooks: Hooks = Hooks()
    origins: dict[str, str] = {}
    """For each key: `default`, the path of a file, the name of a variable, or `flag`."""
    notes: tuple[str, ...] = ()
    """What was left out, and why: a person should be told."""

    def value(self, key: str) -> Any:
        """The value under a dotted key."""
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        return value
