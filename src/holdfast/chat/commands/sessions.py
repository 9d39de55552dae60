"""/sessions, /tree, /clear, /branch and /edit: switch sessions, and fork at an earlier user message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...context.events import Event, EventKind, LaneTip, SessionRecord
from ...context.references import reference
from ...errors import InvalidInput
from ...io.text import first_line
from ...messages import Media, Message
from ...recall.passage import resolve_reference
from ...sessions.history import FOLDER, TITLE, first_user_line, last_used, tool_of, user_message_in, works_in
from ...sessions.session_ids import shorten_id, shorten_ids
from ...stores import Search, Slice
from .base import (
    ChatCommand,
    Choice,
    Choices,
    CommandResult,
    Table,
    clip_line,
    page,
    split_arguments,
    split_first_word,
)

if TYPE_CHECKING:
    from ..chat import Chat


class UserMessage(msgspec.Struct, frozen=True):
    """A message of the user with its number in /branch."""

    number: int
    """Among the user's messages, from 1."""
    event: Event
    message: Message
    archived: bool

    @property
    def line(self) -> str:
        return first_line(self.message.text) or "(an image or a file)"


async def user_messages(chat: Chat) -> list[UserMessage]:
    """Returns all user messages, oldest first."""
    sessions, session_id = chat.sessions, chat.record.id
    start = (await sessions.get(session_id)).lanes.get("", LaneTip()).start
    shown = await sessions.shown(session_id)
    events = await sessions.events(session_id, kind=EventKind.MESSAGE, lane="")
    own = [(event, message) for event in events if (message := user_message_in(event)) is not None]
    return [
        UserMessage(number, event, message, event.seq <= start and event.id not in shown)
        for number, (event, message) in enumerate(own, 1)
    ]


async def find_user_message(chat: Chat, written: str) -> UserMessage:
    """Finds a user message by its number, by a reference such as #12, or by its event id."""
    found = await user_messages(chat)
    if not found:
        raise InvalidInput("This session has no user messages yet.")
    if written.isdecimal():
        number = int(written) if len(written) < 10 else 0
        if not 1 <= number <= len(found):
            raise InvalidInput(f"There is no message {written}: choose 1 to {len(found)}, see /branch.")
        return found[number - 1]
    record = await chat.sessions.get(chat.record.id)
    event = (await resolve_reference(chat.sessions.store, record, written)).first
    chosen = next((one for one in found if one.event.id == event.id), None)
    if chosen is None:
        raise InvalidInput(f"{reference(event)} is not a user message: /branch lists them.")
    return chosen


_SESSION_HEADER = ("  session", "started", "events", "first message")
_MAX_CONTENT_HITS = 500
"""Events looked at when sessions are filtered by what they contain."""
_MAX_TREE_INDENT = 16
"""Maximum indentation of a tree, in columns."""
_UNITS = ((60, "min"), (60, "h"), (24, "d"), (7, "wk"))
"""Units of an age, each with its size in the unit before; the first is in seconds."""


async def _run_sessions(chat: Chat, argument: str) -> CommandResult:
    written = split_arguments(argument, 1, SESSIONS.usage)[0]
    if not written:
        return await _offer_sessions(chat)
    record = await chat.switch(written)
    lines = [clip_line(f"Now in session {await shorten_id(chat.sessions, record.id)}: {await _title(chat, record)}")]
    if (folder := record.metadata.get(FOLDER)) is not None and not works_in(record, here := chat.folder.root):
        lines.append(f"It worked in {_home_path(folder)}; the agent now works in {_home_path(str(here))}.")
    return CommandResult("\n".join(lines))


async def _offer_sessions(chat: Chat) -> CommandResult:
    """Lists the sessions of the store: those of this folder first, and among them the last used."""
    records = [record for record in await chat.sessions.list() if record.version]
    if not records:
        return CommandResult("There are no sessions yet: this one is the first.")
    here, short = chat.folder.root, shorten_ids(record.id for record in records)
    used = {record.id: await last_used(chat.sessions.store, record) for record in records}
    records.sort(key=lambda record: (works_in(record, here), used[record.id]), reverse=True)
    items = []
    for record in records:
        folder = _home_path(record.metadata.get(FOLDER) or "")
        current = record.id == chat.record.id
        size = f"{record.version:,} event{'s' * (record.version != 1)}"
        about = (size, folder, record.model, tool_of(record), short[record.id], "this session" * current)
        title, age = await _title(chat, record), format_age(used[record.id])
        items.append(Choice(short[record.id], title, age, " · ".join(filter(None, about)), current))
    search = partial(_sessions_with, chat, short)
    return CommandResult("", choices=Choices("Sessions", items, "/sessions", search=search))


async def _sessions_with(chat: Chat, short: Mapping[str, str], words: str) -> set[str]:
    """Returns the shortened ids of sessions in which one event has all of the words."""
    if not isinstance(chat.sessions.store, Search):
        return set()
    hits = await chat.sessions.store.search(words, limit=_MAX_CONTENT_HITS)
    return {short[hit.session_id] for hit in hits if hit.session_id in short}


async def describe_session(chat: Chat) -> tuple[str, str, str]:
    """Returns title, folder and age of the current session; title and age are empty before its first message."""
    record, folder = await chat.sessions.get(chat.record.id), _home_path(str(chat.folder.root))
    if not record.version:
        return "", folder, ""
    return await _title(chat, record), folder, format_age(await last_used(chat.sessions.store, record))


def format_age(time: str, now: datetime | None = None) -> str:
    """Returns the age of an ISO time in its largest unit, as in "5 min" or "3 d"; empty if it is not a time."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    age, unit = int(((now or datetime.now(UTC)) - then).total_seconds()), ""
    for size, name in _UNITS:
        if age < size:
            break
        age, unit = age // size, name
    return f"{age} {unit}" if unit else "now"


def _home_path(folder: str) -> str:
    """Returns a path with the user's home folder as ~."""
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder


async def _run_tree(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, TREE.usage)
    records = await chat.sessions.list()
    short = shorten_ids(record.id for record in records)
    rows = [await _session_row(chat, record, branch + short[record.id]) for branch, record in _session_tree(records)]
    return page(Table([_SESSION_HEADER, *rows], right=(2,), labels=False, header=True, clip=True))


async def _run_clear(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, CLEAR.usage)
    left = await shorten_id(chat.sessions, chat.record.id)
    record = await chat.new()
    new = await shorten_id(chat.sessions, record.id)
    return CommandResult(f"New session {new}. The old one is kept: /sessions {left} switches back.")


async def _title(chat: Chat, record: SessionRecord) -> str:
    """Returns the title that another tool gave, and the first words of the user."""
    title, opening = record.metadata.get(TITLE) or "", await first_user_line(chat.sessions.store, record.id)
    return " · ".join(filter(None, (title, opening if opening != title else ""))) or "(no messages yet)"


async def complete_session_ids(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    if len(words) != 1:
        return ()
    short = shorten_ids(record.id for record in await chat.sessions.list())
    return [name for id, one in short.items() for name in ((one,) if one.startswith(words[0]) else (id,))]


async def _session_row(chat: Chat, record: SessionRecord, name: str) -> Sequence[str]:
    mark = "*" if record.id == chat.record.id else " "
    return (
        f"{mark} {name}",
        record.created[:10],
        f"{record.version:,}",
        await _title(chat, record),
    )


def _session_tree(records: Sequence[SessionRecord]) -> Iterator[tuple[str, SessionRecord]]:
    """Yields each session after its parent, with its tree lines; oldest first."""
    known = {record.id for record in records}
    children: dict[str | None, list[SessionRecord]] = {}
    for record in records:
        children.setdefault(record.parent if record.parent in known else None, []).append(record)
    stack = [("", "", record) for record in children.get(None, ())]
    while stack:
        indent, joint, record = stack.pop()
        yield f"{indent}{joint}"[-_MAX_TREE_INDENT:], record
        forks = children.get(record.id, [])
        inner = indent + {"": "", "└─ ": "   ", "├─ ": "│  "}[joint]
        stack += [(inner, "├─ " if index else "└─ ", fork) for index, fork in enumerate(forks)]


SESSIONS = ChatCommand(
    "sessions", "/sessions [ID]", "choose another session, or switch to one", _run_sessions, complete_session_ids
)
TREE = ChatCommand("tree", "/tree", "show all sessions as a tree of forks", _run_tree)
CLEAR = ChatCommand("clear", "/clear", "start a new session; this one is kept", _run_clear)
_QUOTE_WIDTH = 50


async def _run_branch(chat: Chat, argument: str) -> CommandResult:
    written = split_arguments(argument, 1, BRANCH.usage)[0]
    if not written:
        return _message_list(await user_messages(chat))
    chat.require_idle()
    chosen, left = await find_user_message(chat, written), await shorten_id(chat.sessions, chat.record.id)
    new = await shorten_id(chat.sessions, (await chat.fork(chosen.event.id)).id)
    return CommandResult(
        f"Now in session {new}, a branch of {left} up to message {chosen.number}, {_quote_message(chosen)}. "
        "Press Enter to have it answered, or send another message."
    )


async def _run_edit(chat: Chat, argument: str) -> CommandResult:
    written, text = split_first_word(argument)
    if not written:
        raise InvalidInput(f"Name a message: {EDIT.usage}; /branch lists them.")
    chat.require_idle()
    chosen, left = await find_user_message(chat, written), await shorten_id(chat.sessions, chat.record.id)
    await _fork_before(chat, chosen)
    new = await shorten_id(chat.sessions, chat.record.id)
    where = f"Now in session {new}, with all of {left} before message {chosen.number}."
    if text:
        chat.send(text)
        return CommandResult(where)
    media = any(isinstance(part, Media) for part in chosen.message.parts)
    lost = " Its image or file is not copied: attach it again." if media else ""
    return CommandResult(f"{where} Edit the message and send it.{lost}", draft=chosen.message.text)


async def _fork_before(chat: Chat, chosen: UserMessage) -> None:
    """Forks before a message; before the first one, creates a session with the same system prompt and tools."""
    sessions, old = chat.sessions, chat.record
    if (before := await _event_before(chat, chosen.event)) is None:
        options = {name: getattr(old, name) for name in ("system", "tools", "format", "model", "owner", "metadata")}
        created = await sessions.create(**options)
    else:
        created = await sessions.fork(old.id, before.id)
        if created.lanes[""].epoch != chosen.event.epoch:  # a compaction was undone right before the message
            await sessions.undo(created.id, to=chosen.event.epoch)
    await chat.switch(created.id, how="forked")


async def _event_before(chat: Chat, event: Event) -> Event | None:
    which = Slice(until=event.seq - 1, limit=1, newest=True)
    found = await chat.sessions.store.read(chat.record.id, which) if event.seq > 1 else []
    return found[0] if found else None


def _message_list(messages: Sequence[UserMessage]) -> CommandResult:
    if not messages:
        return CommandResult("This session has no messages yet.")
    rows = [(str(one.number), reference(one.event), "archived" if one.archived else "", one.line) for one in messages]
    table = Table(rows, right=(0,), clip=True)
    return page(table, "", "Branch from one with /branch N, or rewrite one with /edit N.")


def _quote_message(message: UserMessage) -> str:
    return f"“{clip_line(message.line, _QUOTE_WIDTH)}”"


async def _complete_message_numbers(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [str(one.number) for one in await user_messages(chat)] if len(words) == 1 else ()


BRANCH = ChatCommand(
    "branch", "/branch [N]", "list your messages, or branch from message N", _run_branch, _complete_message_numbers
)
EDIT = ChatCommand(
    "edit", "/edit N [NEW TEXT]", "rewrite message N in a new session", _run_edit, _complete_message_numbers
)
