"""What every reader gives back: one thread of messages, and what the file says about it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

Record = dict[str, Any]
"""One line of a session file, as it stands there."""


def whole(value: Any) -> int | None:
    """A number of tokens, or nothing when the file holds something else there."""
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def text(value: Any) -> str | None:
    """A text that says something, or nothing."""
    return value if isinstance(value, str) and value else None


class Usage(Struct, frozen=True):
    """Tokens as the provider counted them; ``input`` leaves out what came from the cache (P3)."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """The size of the context right after the reply."""
        return self.input + self.output + self.cache_read + self.cache_write


class Entry(Struct, frozen=True):
    """One message of the thread, as it could be sent to the provider."""

    message: dict[str, Any]
    id: str | None = None
    time: str | None = None
    usage: Usage | None = None


class PastCompaction(Struct, frozen=True):
    """A compaction that the tool did itself (P6).

    ``after`` entries came before it, and the last ``kept`` of those stayed visible. ``head`` is what the tool
    showed in place of the rest, where the file says so. Claude Code's summary is also the entry at ``after``.
    Clearing old tool results is a compaction that shows the same entries as before, some of them ``cleared``.
    """

    after: int
    summary: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    trigger: str | None = None
    kept: int = 0
    head: tuple[dict[str, Any], ...] = ()
    cleared: tuple[tuple[int, str], ...] = ()
    """Results that are shown as cleared from here on: the place of their entry, and the call."""


class Transcript(Struct, frozen=True):
    """A session file, read."""

    kind: str
    format: str | None
    entries: tuple[Entry, ...]
    compactions: tuple[PastCompaction, ...] = ()
    system: Any = None
    tools: Any = None
    model: str | None = None
    id: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [entry.message for entry in self.entries]
