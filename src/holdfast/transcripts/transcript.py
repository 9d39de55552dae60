"""`Transcript`: the messages of a session file, the tool's own compactions, and its live context."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Any

from msgspec import Struct

from ..context.events import digest_of
from ..tokens import Usage

Record = dict[str, Any]
"""One JSON object of a session file."""


def count_or_none(value: Any) -> int | None:
    """A non-negative number as an int; None for anything else."""
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def text_or_none(value: Any) -> str | None:
    """A non-empty string; None for anything else."""
    return value if isinstance(value, str) and value else None


class TranscriptEntry(Struct, frozen=True):
    """One message in the provider's wire format."""

    message: dict[str, Any]
    id: str | None = None
    time: str | None = None
    usage: Usage | None = None


class PastCompaction(Struct, frozen=True):
    """A compaction made by the tool itself.

    It happened after ``after`` entries and kept the last ``kept`` of them. ``head`` are the messages that replaced
    the rest, if the file has them. Claude Code's summary is also the entry at ``after``. Clearing old tool results
    is a compaction that keeps the same entries, some of them ``cleared``.
    """

    after: int
    summary: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    trigger: str | None = None
    kept: int = 0
    head: tuple[dict[str, Any], ...] = ()
    cleared: tuple[tuple[int, str], ...] = ()
    """Tool results cleared from here on: the index of the entry, and the call id."""


class Transcript(Struct, frozen=True):
    """A session file as messages."""

    kind: str
    format: str | None
    entries: tuple[TranscriptEntry, ...]
    compactions: tuple[PastCompaction, ...] = ()
    system: Any = None
    tools: Any = None
    model: str | None = None
    id: str | None = None
    warnings: tuple[str, ...] = ()
    folder: str | None = None
    """The folder that the tool worked in."""
    title: str | None = None
    """The title that the tool gave the session."""
    window: int | None = None
    """The context window that the tool recorded, as far as it uses it."""
    whole_window: int | None = None
    """The whole window, of which `window` is a share."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of all entries."""
        return [entry.message for entry in self.entries]


class TranscriptWarnings:
    """Counts what a reader or writer skipped or changed, by kind, in order of first occurrence."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def count(self, thing: str, rest: str, n: int = 1) -> None:
        """Adds ``n`` to a line such as "3 records of type 'x' left out"; the plural of ``thing`` takes an s."""
        if n:
            self._counts[thing, rest] = self._counts.get((thing, rest), 0) + n

    def lines(self) -> tuple[str, ...]:
        return tuple(f"{n} {thing}{'' if n == 1 else 's'} {rest}" for (thing, rest), n in self._counts.items())


CLEARED_RESULT = "[Old tool result content cleared]"
"""OpenCode's placeholder for a cleared tool result."""


class LiveContext(Struct, frozen=True):
    """The context that the tool would send next: the head of its last compaction, and the entries from ``first`` on."""

    head: list[Record]
    first: int
    live: list[Record]
    numbers: list[int]
    """Event numbers of the head and the live entries, as from `entry_numbers`."""

    @property
    def messages(self) -> list[Record]:
        """The messages that the tool would send next: the head, then the live entries."""
        return self.head + self.live


def live_context(transcript: Transcript) -> LiveContext:
    """Returns the context that the tool would send next."""
    done, numbers = effective_compactions(transcript), entry_numbers(transcript)
    if not done:
        return LiveContext([], 0, transcript.messages, numbers)
    last = done[-1]
    first = last.after - last.kept
    live = transcript.messages[first:]
    calls: defaultdict[int, set[str]] = defaultdict(set)
    for index, call in last.cleared:
        calls[index].add(call)
    for index in calls:
        if index >= first:
            live[index - first] = _clear_results(live[index - first], calls[index])
    head = compaction_head(transcript, last)
    archived = {
        digest_of(entry.message): number for entry, number in zip(transcript.entries[:first], numbers, strict=False)
    }
    own = last.after + len(_separate_compactions(transcript))
    shown_again = [archived.get(digest_of(message), own) for message in head]
    return LiveContext(head, first, live, shown_again + numbers[first:])


def entry_numbers(transcript: Transcript) -> list[int]:
    """The event number of each entry after an import, where compactions are events too."""
    separate = _separate_compactions(transcript)
    return [index + 1 + bisect_right(separate, index) for index in range(len(transcript.entries))]


def summary_is_entry(transcript: Transcript, past: PastCompaction) -> bool:
    """Is the summary one of the entries? Claude Code's is."""
    return transcript.kind == "claude-code" and past.summary is not None


def _separate_compactions(transcript: Transcript) -> list[int]:
    """Entry indexes of the compactions whose summary is not an entry."""
    return [past.after for past in effective_compactions(transcript) if not summary_is_entry(transcript, past)]


def effective_compactions(transcript: Transcript) -> list[PastCompaction]:
    """The compactions that left a context; one interrupted by a crash has no summary and nothing after it."""
    pasts = transcript.compactions
    ends = [*(past.after for past in pasts[1:]), len(transcript.entries)]
    return [
        past
        for past, end in zip(pasts, ends, strict=False)
        if compaction_head(transcript, past) or past.kept or past.after < end
    ]


def compaction_head(transcript: Transcript, past: PastCompaction) -> list[Record]:
    """The messages that a compaction put first; empty for Claude Code, whose summary is an entry."""
    if past.head or past.summary is None or transcript.kind == "claude-code":
        return list(past.head)
    return [{"role": "user", "content": past.summary}]


def _clear_results(message: Record, calls: set[str]) -> Record:
    blocks = [
        block | {"content": CLEARED_RESULT} if block.get("tool_use_id") in calls else block
        for block in message["content"]
    ]
    return message | {"content": blocks}
