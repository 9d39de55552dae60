"""Searches logs for what a redaction should have removed: events as they are stored, session records, and media."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import anyio.to_thread
import msgspec

from ..context.events import Event, SessionRecord
from ..errors import UnknownSession
from ..stores import Log, Slice
from .text_scrubber import TextFinder, TextScrubber

PAGE_EVENTS = 200
"""Events in memory at once."""
MAX_TRACES = 100
"""Places that a report names."""
Family = dict[str, SessionRecord]
"""Sessions that share events, by id."""


async def read_pages(
    store: Log, record: SessionRecord, after: int = 0, kinds: tuple[str, ...] = ()
) -> AsyncIterator[list[Event]]:
    """Yields the session's own events after a seq, up to the record's version, page by page."""
    after = max(after, record.parent_seq)
    while after < record.version:
        which = Slice(any_lane=True, after=after, until=record.version, kinds=kinds, limit=PAGE_EVENTS)
        if not (page := await store.read(record.id, which)):
            return
        yield page
        after = page[-1].seq


async def find_traces(store: Log, family: Family, finder: TextFinder, *, media: bool = False) -> list[str]:
    """Reads these sessions again, as they are now; returns where something is found, for people."""
    found: list[str] = []
    for session_id in family:
        try:
            record = await store.session(session_id)
        except UnknownSession:
            continue
        if path := _path_in(msgspec.to_builtins(record), finder):
            found.append(f"the record of session {record.id}, in {path}")
        async for page in read_pages(store, record):
            found += await anyio.to_thread.run_sync(_traces_in, record.id, page, finder)
            for event in page if media else ():
                for digest in event.body.get("media", ()):
                    data = (await store.media(record.id, [digest])).get(digest, "")
                    if await anyio.to_thread.run_sync(_is_in_media, data, finder):
                        found.append(f"an attachment of event #{event.seq} of session {record.id}: redact the event")
    named = [finder(text) if isinstance(finder, TextScrubber) else text for text in found[:MAX_TRACES]]
    return [*named, f"{len(found) - MAX_TRACES:,} more places"] if len(found) > MAX_TRACES else named


def _traces_in(session_id: str, page: Sequence[Event], finder: TextFinder) -> list[str]:
    return [
        f"event #{event.seq} of session {session_id}, in {_path_in(msgspec.to_builtins(event), finder) or 'its data'}"
        for event in page
        if finder.finds(msgspec.json.encode(event).decode())
    ]


def _path_in(value: Any, finder: TextFinder) -> str:
    """Returns the names that lead to the first place; empty if there is none."""
    return ".".join(next(_paths(value, finder), ()))


def _paths(value: Any, finder: TextFinder) -> Iterator[tuple[str, ...]]:
    if isinstance(value, str):
        if finder.finds(msgspec.json.encode(value).decode()):
            yield ()
    elif isinstance(value, dict):
        for name, item in value.items():
            if finder.finds(msgspec.json.encode(name).decode()):
                yield ("the name of a field",)
            yield from ((name, *path) for path in _paths(item, finder))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from ((str(number), *path) for path in _paths(item, finder))


def _is_in_media(data: str, finder: TextFinder) -> bool:
    if finder.finds(data):
        return True
    try:
        return finder.finds(base64.b64decode(data, validate=False).decode(errors="replace"))
    except (binascii.Error, ValueError):
        return False
