"""Read events as text of bounded size: as much as fits, and the reference to continue from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from ..context.events import Event, EventKind, SessionRecord, lane_key, try_message_in
from ..context.references import parse_reference, parse_seq, reference
from ..errors import AmbiguousReference, InvalidInput, InvalidLimit, UnknownEvent
from ..messages import to_json
from ..sessions.restore import event_line, quote_message
from ..stores import Log, Search, Slice
from ..stores.append import NO_TIP
from ..stores.search import CALL_LOOKBACK, find_called_tool
from ..summaries import replace_surrogates
from ..tokens import Estimator, count_tokens


def event_heading(event: Event, *, archived: bool = False) -> str:
    """The event's reference, role and time, and whether it is archived."""
    message = try_message_in(event) if event.kind == EventKind.MESSAGE else None
    role = "restored copy" if "source" in event.body else message.role if message else event.kind
    return event_line(event, role) + (", archived" if archived else "")


def event_text(event: Event, tools: Sequence[str] = ()) -> str:
    """The content of an event of any kind as text."""
    body = event.body
    match event.kind:
        case EventKind.MESSAGE:
            message = try_message_in(event)
            return to_json(body) if message is None else quote_message(message, tools)
        case EventKind.COMPACTION:
            return "\n".join(_compaction_lines(body))
        case EventKind.UNDO:
            back = body.get("to")
            return f"back to the checkpoint {back}" if back else "back to the log as it was before any compaction"
        case EventKind.PIN:
            return f"{'pinned' if body.get('pinned', True) else 'no longer pinned'}: event {body.get('event')}"
        case EventKind.REDACTION:
            return f"the content of event {body.get('event')} was removed by its owner"
        case _:
            return to_json(body)


def _compaction_lines(body: dict[str, Any]) -> Iterator[str]:
    runs = [run for run in body.get("archived") or () if isinstance(run, dict)]
    count = sum(run.get("count") or 0 for run in runs)
    sizes = f"{body.get('tokens_before', 0):,} → {body.get('tokens_after', 0):,} tokens"
    yield f"{count:,} events archived, {sizes}, by {body.get('strategy') or 'an unnamed strategy'}"
    if summary := body.get("summary"):
        yield str(summary)
    for item in body.get("head") or ():
        if isinstance(item, dict) and not item.get("ref") and isinstance(message := item.get("message"), dict):
            for part in message.get("parts") or ():
                if isinstance(part, dict) and part.get("text"):
                    yield str(part["text"])


def hit_line(heading: str, snippet: str, *, session_id: str | None) -> str:
    """One line of a list of hits: session, heading, snippet."""
    return f"{session_id + ' ' if session_id else ''}{heading}: {snippet}"


def short_heading(event: Event, role: str | None, tools: Sequence[str], *, archived: bool) -> str:
    """The heading of a search hit: reference, role, tools and time."""
    tool_names = f" {'/'.join(tools)}" if tools else ""
    when = f", {event.time[:16].replace('T', ' ')}" if event.time else ""
    return f"{reference(event)} {role or event.kind}{tool_names}{when}{', archived' if archived else ''}"


MAX_CANDIDATES = 3
"""Events listed in the error about an ambiguous reference."""
_MIN_ID_DIGITS = 8
"""From this length on, digits that are no number of an event may begin an id: some digests begin so."""


class ReferencedEvents(msgspec.Struct, frozen=True):
    """A range of events of a session, starting at a character of the first."""

    first: Event
    last: Event
    offset: int = 0


async def resolve_reference(store: Log, record: SessionRecord, written: str) -> ReferencedEvents:
    """Resolves a reference. A complete event id takes precedence over the other notations."""
    bare = replace_surrogates(written).strip() if isinstance(written, str) else ""
    if bare and not bare.startswith("#") and (exact := await _by_id(store, record, bare)):
        return ReferencedEvents(exact, exact)
    span = parse_reference(bare or written)
    if bare.startswith("#") and parse_seq(bare) is None and (exact := await _by_id(store, record, bare[1:])):
        return ReferencedEvents(exact, exact)
    first = await _resolve_event(store, record, span.first)
    last = first if span.last is None else await _resolve_event(store, record, span.last)
    if last.seq < first.seq:
        raise InvalidInput(f"{written!r} ends before it begins: write {reference(last)}-{reference(first)}.")
    return ReferencedEvents(first, last, span.offset)


async def _resolve_event(store: Log, record: SessionRecord, name: str) -> Event:
    """One event by number, id, or unique id prefix."""
    seq = parse_seq(name)
    if seq and (found := await store.read(record.id, Slice(any_lane=True, after=seq - 1, until=seq))):
        return found[0]
    if seq is not None and len(name) < _MIN_ID_DIGITS:
        has = f"it has #1 to #{record.version}" if record.version else "it has no events yet"
        raise UnknownEvent(f"#{name}", record.id, has)
    if exact := await _by_id(store, record, name):
        return exact
    ids = await store.ids(record.id, name, MAX_CANDIDATES + 1) if isinstance(store, Search) else []
    events = await store.read(record.id, Slice(any_lane=True, ids=tuple(ids))) if ids else []
    if not events:
        raise UnknownEvent(name, record.id, "no event id starts with it; use a number as in #1, or search for it")
    if len(events) > 1:
        raise AmbiguousReference(name, record.id, [reference(event) for event in events[:MAX_CANDIDATES]])
    return events[0]


async def _by_id(store: Log, record: SessionRecord, name: str) -> Event | None:
    found = await store.read(record.id, Slice(any_lane=True, ids=(name,)))
    return found[0] if found else None


MIN_PASSAGE_TOKENS = 64
"""The smallest `max_tokens` of a passage: a heading and a line."""
READ_BATCH = 20
TokenCounter = Callable[[str], int]


class Passage(msgspec.Struct, frozen=True):
    """Text of one or more events, within a token limit."""

    text: str
    events: tuple[Event, ...]
    """The events in the text; the last one may be truncated."""
    next: str | None = None
    """The reference to continue from; None if nothing was truncated."""
    tokens: int = 0


class PassageReader:
    """Reads events of one session as text of bounded size."""

    def __init__(self, store: Log, record: SessionRecord, shown: frozenset[str], estimator: Estimator) -> None:
        self._store = store
        self._record = record
        self._shown = shown
        self._count: TokenCounter = partial(count_tokens, estimator)

    async def read(self, place: ReferencedEvents, max_tokens: int) -> Passage:
        """Reads the range in batches until `max_tokens` are used."""
        if max_tokens < MIN_PASSAGE_TOKENS:
            raise InvalidLimit(f"max_tokens must be at least {MIN_PASSAGE_TOKENS}, not {max_tokens}.")
        pieces: list[str] = []
        events: list[Event] = []
        left, offset, after = max_tokens, place.offset, place.first.seq - 1
        while after < place.last.seq:
            which = Slice(any_lane=True, after=after, until=place.last.seq, limit=READ_BATCH)
            for event in await self._store.read(self._record.id, which):
                body = await self._content(event)
                piece, done = self._piece(event, body, offset, left, first=not pieces)
                if piece:
                    pieces.append(piece)
                    events.append(event)
                    left -= self._count(f"\n\n{piece}")
                if done < len(body) or not piece:
                    return self._passage(pieces, events, _continuation(event, done, place.last))
                offset, after = 0, event.seq
        return self._passage(pieces, events, None)

    def _passage(self, pieces: list[str], events: list[Event], more: str | None) -> Passage:
        text = "\n\n".join(pieces)
        return Passage(text, tuple(events), more, self._count(text))

    def _piece(self, event: Event, body: str, offset: int, left: int, *, first: bool) -> tuple[str, int]:
        """As much of an event as fits into `left` tokens, and the character where it ends."""
        offset = min(offset, len(body))
        head = event_heading(event, archived=self._archived(event))
        head += f", from character {offset:,}" if offset else ""
        whole = f"{head}\n{body[offset:]}"
        if self._count(f"\n\n{whole}") <= left:
            return whole, len(body)
        room = left - self._count(f"\n\n{head}, cut\n")
        if room < MIN_PASSAGE_TOKENS // 4 and not first:
            return "", offset
        part = truncate_to_tokens(body[offset:], max(1, room), self._count)
        return f"{head}, cut\n{part}", offset + len(part)

    def _archived(self, event: Event) -> bool:
        start = self._record.lanes.get(lane_key(event.lane), NO_TIP).start
        return event.kind == EventKind.MESSAGE and event.seq <= start and event.id not in self._shown

    async def _content(self, event: Event) -> str:
        message = try_message_in(event) if event.kind == EventKind.MESSAGE else None
        unnamed = [result for result in message.results if not result.name] if message else []
        if not message or not unnamed:
            return event_text(event)
        which = Slice(any_lane=True, until=event.seq - 1, limit=CALL_LOOKBACK, newest=True)
        earlier = (await self._store.read(self._record.id, which))[::-1]
        return event_text(
            event, [result.name or find_called_tool(earlier, result.call_id) or "" for result in message.results]
        )


def _continuation(event: Event, offset: int, last: Event) -> str:
    """The reference from a character of this event to the end of the last one."""
    start = f"{reference(event)}@{offset}" if offset else reference(event)
    return start if event.seq == last.seq else f"{start}-{reference(last)}"


def truncate_to_tokens(text: str, limit: int, count: TokenCounter) -> str:
    """The longest prefix of at most `limit` tokens, cut after a line or a word if possible."""
    size = 4 * limit
    while size < len(text) and count(text[:size]) <= limit:
        size *= 2
    low, high = 1, min(size, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle - 1)
    for blank in "\n ":
        nice = text.rfind(blank, 3 * low // 4, low) + 1
        if nice and low < len(text):
            return text[:nice]
    return text[:low]


def elide_middle(text: str, most: int, count: TokenCounter) -> str:
    """The text in at most `most` tokens, with its middle replaced by an ellipsis."""
    if count(text) <= most:
        return text
    size = len(truncate_to_tokens(text, most // 2, count))
    while size > 1 and count(_ends(text, size)) > most:
        size = 3 * size // 4
    return _ends(text, size)


def _ends(text: str, size: int) -> str:
    return f"{text[:size]}…{text[-size:]}"
