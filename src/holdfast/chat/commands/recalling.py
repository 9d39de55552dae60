"""/search, /recall and /pin: what was said is found again, brought back, and kept (H1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...anatomy import glimpse
from ...errors import InvalidInput
from ...events import Event, Kind
from ...messages import framed
from ...recall import Passage, Recall
from ...recall.rendering import short_heading
from ...recall.resolve import resolve
from ...references import reference
from ...stores.said import message_of
from .command import Command, Page, words_of
from .layout import clipped, table

if TYPE_CHECKING:
    from ..chat import Chat

MOST_HITS = 10
MOST_TOKENS = 2_000
"""Of one passage that is brought back."""


async def _search(chat: Chat, argument: str) -> Page:
    if not argument:
        raise InvalidInput(f"Say what to look for: {SEARCH.usage}.")
    found = await Recall(chat.sessions, chat.record.id).search(argument, limit=MOST_HITS)
    if not found.hits:
        return Page("Nothing here holds all of these words: try fewer, or parts of them.")
    lines = []
    for hit in found.hits:
        lines += [short_heading(hit.event, hit.role, hit.tools, archived=hit.archived), f"    {hit.snippet}"]
    more = "There is more: say more words. " if found.more else ""
    first = next((hit for hit in found.hits if hit.role), found.hits[0])
    return Page("\n".join([*lines, "", f"{more}Bring one back: /recall {first.reference}."]))


async def _recall(chat: Chat, argument: str) -> Page:
    if not argument:
        raise InvalidInput(f"Say what to bring back: {RECALL.usage}, as in /recall #12; /search finds it.")
    chat.must_be_idle()
    place = await resolve(chat.sessions.store, await chat.sessions.get(chat.record.id), argument)
    passage = await Recall(chat.sessions, chat.record.id).read(argument, max_tokens=MOST_TOKENS)
    whole = place.first.seq == place.last.seq and not place.offset and passage.next is None
    more = f" There is more of it: /recall {passage.next}." if passage.next else ""
    return Page(f"{passage.text}\n\n{await _brought_back(chat, passage, whole=whole)}{more}")


async def _brought_back(chat: Chat, passage: Passage, *, whole: bool) -> str:
    """A whole message as the session restores it; of anything larger, no more than what was read."""
    session_id, events = chat.record.id, passage.events
    visible = await _visible(chat)
    copy = next((event for event in visible if event.body.get("source") == events[0].id), None)
    if whole and copy is not None:
        return f"It was brought back before, as {reference(copy)}."
    if whole:
        try:
            restored = await chat.sessions.restore(session_id, events[0].id)
        except InvalidInput as problem:
            return f"It was not brought back. {problem}"
        return f"Brought back into the context, as {reference(restored)}."
    if {event.id for event in events}.issubset(event.id for event in visible):
        return "It is in the context already: it was not brought back."
    text = f"[Restored from earlier]\n{passage.text}"
    await chat.sessions.append(session_id, framed(text, aside=True), aside=True)
    return "Brought back into the context."


async def _pin(chat: Chat, argument: str) -> Page:
    written, off = words_of(argument, 2, PIN.usage)
    if off not in ("", "off"):
        raise InvalidInput(f"{off!r} is not off: {PIN.usage}.")
    pins = await _pins(chat)
    if not written:
        rows = [(reference(event), _line(event)) for event in pins]
        return Page("\n".join(table(rows)) if rows else "Nothing is pinned: /pin #12 keeps a message visible.")
    chat.must_be_idle()
    record = await chat.sessions.get(chat.record.id)
    place = await resolve(chat.sessions.store, record, written)
    event = place.first
    if place.last.seq != event.seq or place.offset:
        raise InvalidInput(f"{written!r} names more or less than one message: pin them one by one.")
    if bool(off) is (event.id not in {pin.id for pin in pins}):
        return Page(f"{reference(event)} is {'not pinned' if off else 'pinned already'}.")
    if not off and event.kind == Kind.MESSAGE and event.id not in {seen.id for seen in await _visible(chat)}:
        raise InvalidInput(f"{reference(event)} is archived: bring it back with /recall, and pin what came back.")
    await chat.sessions.pin(record.id, event.id, pinned=not off)
    kept = "is no longer pinned" if off else "stays visible through every compaction"
    return Page(clipped(f"{reference(event)} {kept}: {_line(event)}"))


async def _visible(chat: Chat) -> list[Event]:
    return await chat.sessions.events(chat.record.id, kind=Kind.MESSAGE, lane="", archived=False)


async def _pins(chat: Chat) -> list[Event]:
    """What is pinned, in the order of the log."""
    pinned: dict[str, bool] = {}
    for mark in await chat.sessions.events(chat.record.id, kind=Kind.PIN, lane=""):
        pinned[str(mark.body.get("event"))] = bool(mark.body.get("pinned", True))
    names = {name for name, still in pinned.items() if still}
    if not names:
        return []
    events = await chat.sessions.events(chat.record.id, kind=Kind.MESSAGE, lane="")
    return [event for event in events if event.id in names]


def _line(event: Event) -> str:
    message = message_of(event)
    return glimpse(message) if message else event.kind


async def _pinned(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    if len(words) == 1:
        return [reference(event) for event in await _pins(chat)]
    return ("off",) if len(words) == 2 else ()


SEARCH = Command("search", "/search WORDS", "find what was said here, archived or not", _search)
RECALL = Command("recall", "/recall REF", "read something again, as #12, and bring it back", _recall)
PIN = Command("pin", "/pin [REF [off]]", "keep a message visible always; list those kept so", _pin, _pinned)
