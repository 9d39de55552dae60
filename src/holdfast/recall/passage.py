"""Reading events within a bound: as much as fits, and where to go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from ..errors import InvalidLimit
from ..events import Event, Kind, SessionRecord, root_key
from ..references import reference
from ..stores import Log, Slice
from ..stores.admission import NO_TIP
from ..stores.said import message_of
from ..stores.sieve import LOOK_BACK, tool_of
from ..tokens import Estimator, tokens_in
from .rendering import content, heading
from .resolve import Place

SMALLEST = 64
"""Tokens that a passage may have, at least: a heading and a line."""
BATCH = 20

Count = Callable[[str], int]


class Passage(msgspec.Struct, frozen=True):
    """What was read."""

    text: str
    events: tuple[Event, ...]
    """The events that it holds, the last of them perhaps not to its end."""
    next: str | None = None
    """The reference to go on with; None where this is all."""
    tokens: int = 0


class Reader:
    """Reads events of one session as text of a bounded size."""

    def __init__(self, store: Log, record: SessionRecord, shown: frozenset[str], estimator: Estimator) -> None:
        self._store = store
        self._record = record
        self._shown = shown
        self._count: Count = partial(tokens_in, estimator)

    async def read(self, place: Place, max_tokens: int) -> Passage:
        if max_tokens < SMALLEST:
            raise InvalidLimit(f"max_tokens must be at least {SMALLEST}, not {max_tokens}.")
        pieces: list[str] = []
        events: list[Event] = []
        left, offset, after = max_tokens, place.offset, place.first.seq - 1
        while after < place.last.seq:
            which = Slice(any_lane=True, after=after, until=place.last.seq, limit=BATCH)
            for event in await self._store.read(self._record.id, which):
                body = await self._content(event)
                piece, done = self._piece(event, body, offset, left, first=not pieces)
                if piece:
                    pieces.append(piece)
                    events.append(event)
                    left -= self._count(f"\n\n{piece}")
                if done < len(body) or not piece:
                    return self._passage(pieces, events, _rest(event, done, place.last))
                offset, after = 0, event.seq
        return self._passage(pieces, events, None)

    def _passage(self, pieces: list[str], events: list[Event], more: str | None) -> Passage:
        text = "\n\n".join(pieces)
        return Passage(text, tuple(events), more, self._count(text))

    def _piece(self, event: Event, body: str, offset: int, left: int, *, first: bool) -> tuple[str, int]:
        """As much of an event as there is room for, and how far into it that goes."""
        offset = min(offset, len(body))
        head = heading(event, archived=self._archived(event))
        head += f", from character {offset:,}" if offset else ""
        whole = f"{head}\n{body[offset:]}"
        if self._count(f"\n\n{whole}") <= left:
            return whole, len(body)
        room = left - self._count(f"\n\n{head}, cut\n")
        if room < SMALLEST // 4 and not first:
            return "", offset
        part = fitting(body[offset:], max(1, room), self._count)
        return f"{head}, cut\n{part}", offset + len(part)

    def _archived(self, event: Event) -> bool:
        start = self._record.lanes.get(root_key(event.lane), NO_TIP).start
        return event.kind == Kind.MESSAGE and event.seq <= start and event.id not in self._shown

    async def _content(self, event: Event) -> str:
        message = message_of(event) if event.kind == Kind.MESSAGE else None
        unnamed = [result for result in message.results if not result.name] if message else []
        if not message or not unnamed:
            return content(event)
        which = Slice(any_lane=True, until=event.seq - 1, limit=LOOK_BACK, newest=True)
        earlier = (await self._store.read(self._record.id, which))[::-1]
        return content(event, [result.name or tool_of(earlier, result.call_id) or "" for result in message.results])


def _rest(event: Event, offset: int, last: Event) -> str:
    """The reference to what comes after a character of this event, up to the last."""
    start = f"{reference(event)}@{offset}" if offset else reference(event)
    return start if event.seq == last.seq else f"{start}-{reference(last)}"


def fitting(text: str, limit: int, count: Count) -> str:
    """About the longest beginning of a text with at most so many tokens, cut after a line or a word if it can be."""
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


def shortened(text: str, most: int, count: Count) -> str:
    """A text with at most so many tokens: its middle is left out."""
    if count(text) <= most:
        return text
    size = len(fitting(text, most // 2, count))
    while size > 1 and count(_ends(text, size)) > most:
        size = 3 * size // 4
    return _ends(text, size)


def _ends(text: str, size: int) -> str:
    return f"{text[:size]}…{text[-size:]}"
