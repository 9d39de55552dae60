"""/search, /recall, /pin, /handoff and /reference: find, restore and carry over earlier messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...compaction.breakdown import preview_line
from ...context.events import Event, EventKind, try_message_in
from ...context.references import reference
from ...errors import InvalidInput
from ...messages import framed_message
from ...recall import Passage, Recall
from ...recall.passage import resolve_reference, short_heading
from ...sessions.session_ids import find_session, shorten_id
from .base import ChatCommand, CommandResult, Table, page, split_arguments, split_first_word
from .sessions import complete_session_ids

if TYPE_CHECKING:
    from ..chat import Chat


MAX_SEARCH_HITS = 10
MAX_RECALL_TOKENS = 2_000
"""Limit of one restored passage."""


async def _run_search(chat: Chat, argument: str) -> CommandResult:
    if not argument:
        raise InvalidInput(f"Name words to search for: {SEARCH.usage}.")
    found = await Recall(chat.sessions, chat.record.id).search(argument, limit=MAX_SEARCH_HITS)
    if not found.hits:
        return CommandResult("No event contains all of these words: try fewer, or parts of them.")
    lines = []
    for hit in found.hits:
        lines += [short_heading(hit.event, hit.role, hit.tools, archived=hit.archived), f"    {hit.snippet}"]
    more = "There are more hits: add words to narrow it down. " if found.more else ""
    first = next((hit for hit in found.hits if hit.role), found.hits[0])
    return CommandResult("\n".join([*lines, "", f"{more}Restore one: /recall {first.reference}."]))


async def _run_recall(chat: Chat, argument: str) -> CommandResult:
    if not argument:
        raise InvalidInput(f"Name what to restore: {RECALL.usage}, such as /recall #12; /search finds it.")
    chat.require_idle()
    place = await resolve_reference(chat.sessions.store, await chat.sessions.get(chat.record.id), argument)
    passage = await Recall(chat.sessions, chat.record.id).read(argument, max_tokens=MAX_RECALL_TOKENS)
    whole = place.first.seq == place.last.seq and not place.offset and passage.next is None
    more = f" It continues: /recall {passage.next}." if passage.next else ""
    return CommandResult(f"{passage.text}\n\n{await _restore_passage(chat, passage, whole=whole)}{more}")


async def _restore_passage(chat: Chat, passage: Passage, *, whole: bool) -> str:
    """Restores a whole message through the session; of a longer passage, appends the part that was read."""
    session_id, events = chat.record.id, passage.events
    visible = await _visible_events(chat)
    copy = next((event for event in visible if event.body.get("source") == events[0].id), None)
    if whole and copy is not None:
        return f"It was already restored, as {reference(copy)}."
    if whole:
        try:
            restored = await chat.sessions.restore(session_id, events[0].id)
        except InvalidInput as problem:
            return f"It was not restored. {problem}"
        return f"Restored to the context, as {reference(restored)}."
    if {event.id for event in events}.issubset(event.id for event in visible):
        return "It is already in the context: it was not restored."
    text = f"[Restored from earlier]\n{passage.text}"
    await chat.sessions.append(session_id, framed_message(text, aside=True), aside=True)
    return "Restored to the context."


async def _run_pin(chat: Chat, argument: str) -> CommandResult:
    written, off = split_arguments(argument, 2, PIN.usage)
    if off not in ("", "off"):
        raise InvalidInput(f"Unexpected argument {off!r}: the usage is {PIN.usage}.")
    pins = await _pinned_events(chat)
    if not written:
        rows = [(reference(event), _event_preview(event)) for event in pins]
        return page(Table(rows, clip=True) if rows else "Nothing is pinned: /pin #12 keeps a message visible.")
    chat.require_idle()
    record = await chat.sessions.get(chat.record.id)
    place = await resolve_reference(chat.sessions.store, record, written)
    event = place.first
    if place.last.seq != event.seq or place.offset:
        raise InvalidInput(f"{written!r} does not name exactly one message: pin messages one by one.")
    if bool(off) is (event.id not in {pin.id for pin in pins}):
        return CommandResult(f"{reference(event)} is {'not pinned' if off else 'already pinned'}.")
    if (
        not off
        and event.kind == EventKind.MESSAGE
        and event.id not in {seen.id for seen in await _visible_events(chat)}
    ):
        raise InvalidInput(f"{reference(event)} is archived: restore it with /recall, then pin the restored copy.")
    await chat.sessions.pin(record.id, event.id, pinned=not off)
    kept = "is no longer pinned" if off else "stays visible through every compaction"
    return CommandResult(f"{reference(event)} {kept}: {_event_preview(event)}")


async def _visible_events(chat: Chat) -> list[Event]:
    return await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="", archived=False)


async def _pinned_events(chat: Chat) -> list[Event]:
    """Returns the pinned events in log order."""
    pinned: dict[str, bool] = {}
    for mark in await chat.sessions.events(chat.record.id, kind=EventKind.PIN, lane=""):
        pinned[str(mark.body.get("event"))] = bool(mark.body.get("pinned", True))
    names = {name for name, still in pinned.items() if still}
    if not names:
        return []
    events = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="")
    return [event for event in events if event.id in names]


def _event_preview(event: Event) -> str:
    message = try_message_in(event)
    return preview_line(message) if message else event.kind


async def _complete_pins(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    if len(words) == 1:
        return [reference(event) for event in await _pinned_events(chat)]
    return ("off",) if len(words) == 2 else ()


SEARCH = ChatCommand("search", "/search WORDS", "search this session, archived messages included", _run_search)
RECALL = ChatCommand("recall", "/recall REF", "show an event, such as #12, and restore it", _run_recall)
PIN = ChatCommand("pin", "/pin [REF [off]]", "pin a message through compactions; list pins", _run_pin, _complete_pins)


async def _run_handoff(chat: Chat, argument: str) -> CommandResult:
    if not argument:
        raise InvalidInput(f"A handoff needs a goal: {HANDOFF.usage}, with the task of the new session.")
    chat.require_idle()
    left = await shorten_id(chat.sessions, chat.record.id)
    with chat.abortable() as abort:
        drafted = await chat.sessions.handoff(chat.record.id, argument, summarizer=chat.summary_model, abort=abort)
    try:
        record = await chat.new(how="handed_off")
    except InvalidInput as problem:  # a prompt arrived meanwhile
        return CommandResult(f"{problem} Then start a new session with /clear and send this.", draft=drafted.message)
    new = await shorten_id(chat.sessions, record.id)
    lines = [f"New session {new}; {left} is kept. Review the draft of its first message and send it."]
    return CommandResult("\n".join([*lines, *(f"- {remark}" for remark in drafted.remarks)]), draft=drafted.message)


async def _run_reference(chat: Chat, argument: str) -> CommandResult:
    written, question = split_first_word(argument)
    if not question:
        raise InvalidInput(f"Name a session and a question: {REFERENCE.usage}; /sessions lists sessions.")
    chat.require_idle()
    source = await find_session(chat.sessions, written)
    name = await shorten_id(chat.sessions, source.id)
    with chat.abortable() as abort:
        found = await Recall(chat.sessions, source.id).reference(question, summarizer=chat.summary_model, abort=abort)
    if not found.sources:
        return CommandResult(f"{found.text}\n\nIt cites no message of that session: it was not added to this one.")
    try:
        chat.require_idle()
    except InvalidInput as problem:
        return CommandResult(f"{found.text}\n\nIt was not added to this session. {problem}")
    text = f"[From session {source.id}, asked: {question}]\n{found.text}"
    await chat.sessions.append(chat.record.id, framed_message(text, aside=True), aside=True)
    passages = " No model answered: these are the passages." if found.fallback else ""
    return CommandResult(
        f"{found.text}\n\nFrom session {name}, {', '.join(found.sources)}; added to this one.{passages}"
    )


HANDOFF = ChatCommand("handoff", "/handoff GOAL", "start a new session with the context for a goal", _run_handoff)
REFERENCE = ChatCommand(
    "reference",
    "/reference SESSION QUESTION",
    "ask another session and add its answer here",
    _run_reference,
    complete_session_ids,
)
