"""What a person sees first: how full a session is, when it compacts next, and what the last compaction did."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import msgspec

from ..compaction.size import Size
from ..context.events import Event, EventKind, SessionRecord
from ..errors import HoldfastError
from ..io.text import first_line, printable
from ..sessions import SessionService
from ..sessions.history import FOLDER, TITLE, first_user_line, last_used, tool_of
from ..stores import Lease, Slice
from .addresses import session_path

_MAX_TITLE = 200
_KEPT_OVERVIEWS = 2_000
_SOON = 0.8
"""Share of the size at which it compacts above which a session compacts soon."""
_DEFAULT_WINDOW = 200_000
State = Literal["fine", "soon", "over", "unreadable"]


class CompactionSummary(msgspec.Struct, frozen=True):
    """A compaction in a few numbers."""

    seq: int
    id: str
    time: str
    before: int
    after: int
    archived: int
    strategy: str

    @property
    def sentence(self) -> str:
        archived = "1 message" if self.archived == 1 else f"{self.archived:,} messages"
        by = self.strategy or "a strategy of the application"
        return f"by {by} archived {archived}: {short(self.before)} → {short(self.after)}."


class Overview(msgspec.Struct, frozen=True):
    """State of one session."""

    id: str
    path: str
    title: str
    owner: str
    model: str
    folder: str
    tool: str
    """The tool that it was imported from."""
    parent: str | None
    parent_seq: int
    version: int
    last_used: str
    state: State
    fullness: float = 0.0
    """Used share of the size at which it compacts; above 1 if that is due."""
    headline: str = ""
    """The state in words."""
    size: Size | None = None
    """None if the session cannot be read."""
    used: str = "0%"
    """Share of the bar that is filled."""
    mark: str = "0%"
    """Place on the bar at which it compacts."""
    last: CompactionSummary | None = None
    """The checkpoint in force."""
    last_sentence: str = "Nothing is archived: the model sees every message."
    undone: CompactionSummary | None = None
    """The compaction that the newest mark stepped back over: a redo brings it back."""
    compacting: bool = False
    """Whether a worker, an application or this server compacts it now."""


class OverviewReader:
    """Reads overviews; one is kept until its session's version changes."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions
        self._known: OrderedDict[str, tuple[int, Overview]] = OrderedDict()

    async def read(self, record: SessionRecord) -> Overview:
        """Reads the live window of a session; constant work for its history."""
        version, known = self._known.get(record.id, (-1, None))
        if known is None or version != record.version:
            known = await _read(self._sessions, record)
            self._known[record.id] = record.version, known
            if len(self._known) > _KEPT_OVERVIEWS:
                self._known.popitem(last=False)
        if not await _is_leased(self._sessions, record.id):
            return known
        return msgspec.structs.replace(known, compacting=True, headline=f"{known.headline}; being compacted now")

    async def try_read(self, record: SessionRecord) -> Overview:
        """Returns the overview of a session; one that cannot be read has the reason as its title."""
        try:
            return await self.read(record)
        except HoldfastError as problem:
            title = printable(f"{record.id}: {problem}")[:_MAX_TITLE]
            return _bare(record, title, record.created, "unreadable")


async def _read(sessions: SessionService, record: SessionRecord) -> Overview:
    size = await sessions.size(record.id)
    last, undone = await _compactions(sessions, record)
    used, mark = _bar(size)
    one = _bare(record, await read_title(sessions, record), await last_used(sessions.store, record), state_of(size))
    return msgspec.structs.replace(
        one,
        fullness=fullness(size),
        headline=describe_size(size),
        size=size,
        used=used,
        mark=mark,
        last=last,
        last_sentence=one.last_sentence if last is None else last.sentence,
        undone=undone,
    )


def _bare(record: SessionRecord, title: str, used: str, state: State) -> Overview:
    return Overview(
        record.id,
        session_path(record.id),
        title,
        record.owner or "",
        record.model or "",
        printable(str(record.metadata.get(FOLDER) or "")),
        printable(tool_of(record)),
        record.parent,
        record.parent_seq,
        record.version,
        used,
        state,
    )


# -- the state in words ------------------------------------------------------------------------------


def short(tokens: int) -> str:
    """Returns a count for people: 940, 4.1k, 41k, 1.2M."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1000:.1f}k" if tokens < 9_950 else f"{tokens / 1000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"


def _due_at(size: Size) -> int | None:
    """Returns the size at which something has to happen: the threshold, or where no reply fits any more."""
    return min((limit for limit in (size.threshold, size.limit) if limit is not None), default=None)


def fullness(size: Size) -> float:
    return size.tokens / max(1, _due_at(size) or size.window or _DEFAULT_WINDOW)


def state_of(size: Size) -> State:
    used = fullness(size)
    return "fine" if used < _SOON else "soon" if used < 1 else "over"


def describe_size(size: Size) -> str:
    """Returns size, window and what is due, as one sentence without its end."""
    of = f" of {size.window:,}" if size.window else ""
    basis = "" if size.basis == "estimated" and not size.tokens else f", {size.basis}"
    window = f", window {size.window_basis}" if size.window and size.window_basis != "catalog" else ""
    times = {0: "never compacted", 1: "compacted once", 2: "compacted twice"}
    return (
        f"{size.tokens:,}{of} tokens{basis}{window}; {times.get(size.round, f'compacted {size.round:,} times')}; "
        f"{_what_is_due(size)}"
    )


def _what_is_due(size: Size) -> str:
    if size.limit is not None and size.tokens > size.limit:
        return f"{short(size.tokens - size.limit)} over what leaves room for a reply: compact it"
    if size.threshold is None:
        return "its policy does not count tokens"
    if size.tokens >= size.threshold:
        return f"{short(size.tokens - size.threshold)} over {short(size.threshold)}, where its policy compacts"
    return f"compacts in {short(size.threshold - size.tokens)}, at {short(size.threshold)}"


def _bar(size: Size) -> tuple[str, str]:
    whole = max(size.window or _due_at(size) or _DEFAULT_WINDOW, size.tokens, 1)
    mark = size.threshold if size.threshold is not None else size.limit
    return f"{100 * size.tokens / whole:.2f}%", "100%" if mark is None else f"{min(100.0, 100 * mark / whole):.2f}%"


# -- reads -------------------------------------------------------------------------------------------


async def _is_leased(sessions: SessionService, session_id: str) -> bool:
    store = sessions.store
    return isinstance(store, Lease) and await store.held(session_id, "compaction") is not None


async def read_title(sessions: SessionService, record: SessionRecord) -> str:
    given = record.metadata.get(TITLE)
    title = first_line(given) if isinstance(given, str) else await first_user_line(sessions.store, record.id)
    return printable(title)[:_MAX_TITLE] or record.id


async def _compactions(
    sessions: SessionService, record: SessionRecord
) -> tuple[CompactionSummary | None, CompactionSummary | None]:
    """Returns the checkpoint in force, and the one that the newest mark stepped back over."""
    tip = record.lanes.get("")
    marks = await sessions.store.read(
        record.id, Slice(kinds=(EventKind.COMPACTION, EventKind.UNDO), limit=1, newest=True)
    )
    undone = marks[0].epoch if marks and marks[0].kind == EventKind.UNDO else None
    ids = {id for id in (undone, None if tip is None else tip.epoch) if id is not None}
    if not ids:
        return None, None
    found = {
        event.id: _summary(event)
        for event in await sessions.store.read(record.id, Slice(any_lane=True, ids=tuple(ids)))
    }
    last, back = found.get((tip.epoch if tip else None) or ""), found.get(undone or "")
    return last, None if back is None or (last is not None and last.seq >= back.seq) else back


def _summary(event: Event) -> CompactionSummary:
    body = event.body
    return CompactionSummary(
        event.seq,
        event.id,
        event.time,
        body.get("tokens_before", 0),
        body.get("tokens_after", 0),
        sum(run["count"] for run in body.get("archived", ())),
        body.get("strategy") or "",
    )
