"""The data a ledger consists of: stored in checkpoints, merged by later rounds.

Sizes are bounded. The bounds take effect only beyond some millions of tokens; then the oldest entries are dropped in
bulk, once a collection has twice its bound, so that reading speed stays constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from heapq import nlargest
from itertools import islice
from typing import TypeVar

import msgspec

from ..messages.json_text import decodable
from .lines import LedgerLine, LineKind
from .names import name_kind


class MentionStats(msgspec.Struct, array_like=True, gc=False):
    """How often and when a name was mentioned, and by whom. Times are extractor ticks; -1 means never."""

    kind: str
    last: int
    mentions: int = 0
    uses: int = 0
    """Number of tool calls whose arguments refer to the name."""
    last_use: int = -1
    assistant_time: int = -1
    user_time: int = -1
    write_time: int = -1
    min_result_chars: int = 0
    """Size of the shortest tool result that contains it, in characters: the cost of retrieving it. 0 if none does."""


class FileRecord(msgspec.Struct, array_like=True, gc=False):
    """Reads, edits and deletion of one file."""

    path: str
    reads: int = 0
    edits: int = 0
    written: bool = False
    """Whether it was written whole, not only edited."""
    place: int = 0
    """Number of the message that last referred to it."""
    time: int = 0
    deleted: bool = False


class CommandRecord(msgspec.Struct, array_like=True, gc=False):
    """A one-line shell command: how often it ran, and whether its last run failed."""

    text: str
    runs: int = 0
    failed: bool = False
    place: int = 0
    time: int = 0
    folder: str = ""
    """The folder that the call named for its last run."""


@decodable
class Ledger(msgspec.Struct, omit_defaults=True):
    """Bounded notes on all archived messages, carried from round to round in the checkpoint."""

    archived: int = 0
    """Number of archived messages; set only when parsed from a note, since a checkpoint stores it itself."""
    round: int = 0
    """Number of compactions so far; set only when parsed from a note."""
    time: int = 0
    offset: int = msgspec.field(default=0, name="depth")
    """Characters read so far."""
    counted: int = 0
    """Number of the last message that a page counts, whether it stayed or not: what it did is in the plan and in the
    counts of the files and commands listed. 0 unless parsed from a page."""
    users: list[LedgerLine] = []
    omitted_users: int = msgspec.field(default=0, name="untold")
    omitted_from: int = msgspec.field(default=0, name="untold_from")
    """Number of user messages no longer carried, and the number of the first of them."""
    closings: list[LedgerLine] = []
    """The assistant's last text before each user message: its conclusions."""
    plan: list[tuple[str, str]] = []
    plan_place: int = 0
    """Number of the message that last changed the plan."""
    plan_from_page: bool = msgspec.field(default=False, name="plan_told")
    """Whether the plan was parsed from a page, where finished steps have lost their position."""
    approved: LedgerLine | None = None
    """The plan that the user approved, until it is done or replaced; not `whole` if only its open items are left."""
    calls: list[LedgerLine] = []
    """Calls since the last user message, other than reads, edits, shell commands and plan updates."""
    omitted_calls: int = msgspec.field(default=0, name="calls_untold")
    """Number of earlier such calls that are not listed."""
    steps: list[LedgerLine] = []
    """The newest replies with calls that other sections do not list: what was said and called, shortened."""
    files: list[FileRecord] = []
    commands: list[CommandRecord] = []
    errors: list[LedgerLine] = []
    attached: list[LedgerLine] = []
    """Images and files attached without a path: their description and message number."""
    lines: list[LedgerLine] = []
    names: dict[str, MentionStats] = {}


MentionIndex = dict[str, MentionStats]


def count_mentions(names: MentionIndex, mentioned: Mapping[str, int], kind: LineKind, time: int, length: int) -> None:
    """Counts the names mentioned in a text of this length; plain words count only in user and assistant text."""
    spoken, found = kind in ("said", "user"), kind in ("file", "output")
    for name, times in mentioned.items():
        seen = names.get(name) or names.setdefault(name, MentionStats(name_kind(name), time))
        if seen.kind == "word" and not spoken:
            continue
        seen.mentions += times
        seen.last = time
        if found:
            if not 0 < seen.min_result_chars < length:
                seen.min_result_chars = length
        elif kind == "wrote":
            seen.write_time = time
        elif kind == "said":
            seen.assistant_time = time
        elif kind == "user":
            seen.user_time = time


def decay(age: float, scale: float) -> float:
    """Hyperbolic decay: 1 at age 0, 1/2 at `scale`; 1 for a note read back that is newer than the clock."""
    return 1 / (1 + age / scale) if age > 0 else 1.0


def count_uses(names: MentionIndex, referred: Iterable[str], time: int) -> None:
    """Counts the names that a tool call refers to."""
    for name in referred:
        seen = names.get(name) or names.setdefault(name, MentionStats(name_kind(name), time))
        if seen.kind == "word":
            continue
        if seen.last_use != time:
            seen.uses += 1
        seen.last_use = seen.last = time


MAX_LINES, MAX_NAMES, MAX_MESSAGES, MAX_SUBJECTS = 60_000, 120_000, 20_000, 20_000
MAX_ATTACHMENTS, MAX_CALLS, MAX_STEPS = 60, 60, 60
MAX_SOURCE_CHARS = 320
"""Length to which a command is cut where it is stored as the source of a line."""
Item = TypeVar("Item")


def exceeds_bound(items: Sized, most: int) -> bool:
    """Whether there is twice too much: then the oldest are dropped."""
    return len(items) > 2 * most


def keep_newest(items: dict[str, Item], most: int) -> dict[str, Item]:
    """Returns the most recently inserted items."""
    return dict(islice(items.items(), max(0, len(items) - most), None)) if exceeds_bound(items, most) else items


def keep_first_and_newest(lines: list[LedgerLine], most: int) -> list[LedgerLine]:
    return [*lines[:1], *lines[1:][-most:]] if exceeds_bound(lines, most) else lines


def keep_used_names(names: dict[str, MentionStats], most: int) -> dict[str, MentionStats]:
    """Returns the names that calls referred to, then the most recently mentioned."""
    if not exceeds_bound(names, most):
        return names
    return dict(nlargest(most, names.items(), key=lambda item: (item[1].uses > 0, item[1].last)))


def take_within(items: Iterable[tuple[str, Item]], room: int) -> list[Item]:
    """Returns items until one does not fit; each is charged for its text."""
    kept = []
    for text, item in items:
        if (room := room - len(text) - 1) < 0:
            break
        kept.append(item)
    return kept
