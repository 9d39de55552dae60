"""/sessions, /tree and /clear: where conversations are kept, and moving between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import InvalidInput, UnknownSession
from ...events import SessionRecord
from .command import Command, Page, words_of
from .layout import clipped, table
from .user_messages import first_words

if TYPE_CHECKING:
    from ..chat import Chat

MOST = 20
"""Sessions in a list."""
_HEADER = ("  session", "begun", "events", "first words")
_NAMED = 3
_DEEPEST = 16
"""Columns by which a tree is indented, at most."""


async def _sessions(chat: Chat, argument: str) -> Page:
    written = words_of(argument, 1, SESSIONS.usage)[0]
    if written:
        record = await session_named(chat, written)
        await chat.switch(record.id)
        return Page(clipped(f"Now in session {record.id}: {await first_words(chat, record)}"))
    records = await chat.sessions.list()
    rows = [await _row(chat, record) for record in records[:MOST]]
    more = len(records) - len(rows)
    older = [f"and {more:,} older ones: /tree shows them all"] if more > 0 else []
    return Page("\n".join([*table([_HEADER, *rows], right=(2,)), *older, "", "Go on in another one: /sessions ID."]))


async def _tree(chat: Chat, argument: str) -> Page:
    words_of(argument, 0, TREE.usage)
    rows = [await _row(chat, record, branch) for branch, record in _branches(await chat.sessions.list())]
    return Page("\n".join(table([_HEADER, *rows], right=(2,))))


async def _clear(chat: Chat, argument: str) -> Page:
    words_of(argument, 0, CLEAR.usage)
    left = chat.record.id
    record = await chat.new()
    return Page(f"A new session, {record.id}. The old one is kept: /sessions {left} goes back to it.")


async def session_named(chat: Chat, written: str) -> SessionRecord:
    """A session by its id, or by what only its id begins or ends with: ids of one hour begin alike."""
    records = await chat.sessions.list()
    found = [record for record in records if record.id == written]
    found = found or [record for record in records if record.id.startswith(written)]
    if not found and len(ends := [record for record in records if record.id.endswith(written)]) == 1:
        found = ends
    if not found:
        raise UnknownSession(written)
    if len(found) > 1:
        some = ", ".join(record.id for record in found[:_NAMED])
        raise InvalidInput(f"{len(found)} sessions begin with {written!r}: write more of the id, as in {some}.")
    return found[0]


async def session_ids(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [record.id for record in await chat.sessions.list()] if len(words) == 1 else ()


async def _row(chat: Chat, record: SessionRecord, branch: str = "") -> Sequence[str]:
    mark = "*" if record.id == chat.record.id else " "
    return f"{mark} {branch}{record.id}", record.created[:10], f"{record.version:,}", await first_words(chat, record)


def _branches(records: Sequence[SessionRecord]) -> Iterator[tuple[str, SessionRecord]]:
    """Each session behind the one that it was forked from, with the lines of a tree; the oldest first."""
    known = {record.id for record in records}
    below: dict[str | None, list[SessionRecord]] = {}
    for record in records:
        below.setdefault(record.parent if record.parent in known else None, []).append(record)
    waiting = [("", "", record) for record in below.get(None, ())]
    while waiting:
        indent, joint, record = waiting.pop()
        yield f"{indent}{joint}"[-_DEEPEST:], record
        forks = below.get(record.id, [])
        inner = indent + {"": "", "└─ ": "   ", "├─ ": "│  "}[joint]
        waiting += [(inner, "├─ " if place else "└─ ", fork) for place, fork in enumerate(forks)]


SESSIONS = Command("sessions", "/sessions [ID]", "list sessions, or go on in another one", _sessions, session_ids)
TREE = Command("tree", "/tree", "show all sessions and what they were forked from", _tree)
CLEAR = Command("clear", "/clear", "begin a new session; this one is kept", _clear)
