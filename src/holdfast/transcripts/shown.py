"""What a tool would send next: what its last compaction left, and all that came since."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from msgspec import Struct

from ..events import digest_of
from .transcript import PastCompaction, Record, Transcript

CLEARED = "[Old tool result content cleared]"
"""OpenCode's words for a result that it took out."""


class InView(Struct, frozen=True):
    """A context as the tool has it: what stands first, and the entries from ``first`` on."""

    head: list[Record]
    first: int
    live: list[Record]
    numbers: list[int]
    """Those of the head and of the entries, as `numbers_of` has them."""

    @property
    def messages(self) -> list[Record]:
        return self.head + self.live


def in_view(transcript: Transcript) -> InView:
    done, numbers = in_force(transcript), numbers_of(transcript)
    if not done:
        return InView([], 0, transcript.messages, numbers)
    last = done[-1]
    first = last.after - last.kept
    live = transcript.messages[first:]
    calls: defaultdict[int, set[str]] = defaultdict(set)
    for place, call in last.cleared:
        calls[place].add(call)
    for place in calls:
        if place >= first:
            live[place - first] = _cleared(live[place - first], calls[place])
    head = head_of(transcript, last)
    said = {
        digest_of(entry.message): number for entry, number in zip(transcript.entries[:first], numbers, strict=False)
    }
    own = last.after + len(_apart(transcript))
    shown_again = [said.get(digest_of(message), own) for message in head]
    return InView(head, first, live, shown_again + numbers[first:])


def numbers_of(transcript: Transcript) -> list[int]:
    """The number of each entry in a log of ours, where a compaction is an event too."""
    apart = _apart(transcript)
    return [place + 1 + bisect_right(apart, place) for place in range(len(transcript.entries))]


def is_entry(transcript: Transcript, past: PastCompaction) -> bool:
    """Does the compaction stand among the entries? Claude Code's summary does."""
    return transcript.kind == "claude-code" and past.summary is not None


def _apart(transcript: Transcript) -> list[int]:
    """Before which entries the other compactions stand."""
    return [past.after for past in in_force(transcript) if not is_entry(transcript, past)]


def in_force(transcript: Transcript) -> list[PastCompaction]:
    """The compactions that left something to send: one that a crash cut short has neither summary nor successor."""
    pasts = transcript.compactions
    ends = [*(past.after for past in pasts[1:]), len(transcript.entries)]
    return [
        past
        for past, end in zip(pasts, ends, strict=False)
        if head_of(transcript, past) or past.kept or past.after < end
    ]


def head_of(transcript: Transcript, past: PastCompaction) -> list[Record]:
    """What the tool showed first. Claude Code's summary is an entry of its own; pi's is in its record alone."""
    if past.head or past.summary is None or transcript.kind == "claude-code":
        return list(past.head)
    return [{"role": "user", "content": past.summary}]


def _cleared(message: Record, calls: set[str]) -> Record:
    blocks = [
        block | {"content": CLEARED} if block.get("tool_use_id") in calls else block for block in message["content"]
    ]
    return message | {"content": blocks}
