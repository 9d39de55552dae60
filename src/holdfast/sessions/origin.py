"""Finds the stored session that a list of messages continues: the session or the fork of it that shares most with it.

A list that shares only its beginning with the session (an edited message, an earlier state) continues in a fork, so
that neither history is lost. Forks made here have the id of the session and a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple, TypeVar, TypeVarTuple

import anyio.to_thread

from ..context.events import Event, EventKind
from ..errors import UnknownSession
from ..follow import ChainedIds, Follower, GivenList
from .history import SYNTHETIC_MARKS
from .service import SessionService

_Log = TypeVar("_Log")
_Arguments = TypeVarTuple("_Arguments")
_Read = TypeVar("_Read")
_THREAD_FROM = 200
"""Messages from which they are read in a thread."""


class ListOrigin(NamedTuple):
    """A session, what it has of a list, and how many of the list's messages these are."""

    session_id: str
    log: Follower
    known: int


def nearest(logs: Iterable[_Log], given: GivenList, follower: Callable[[_Log], Follower]) -> _Log | None:
    """Returns the log that shares most with a list, of equal ones the shortest; None if none shares anything."""
    shared = [(follower(log).match(given).logged, -len(follower(log).ids), log) for log in logs]
    most = max(shared, key=lambda found: found[:2], default=None)
    return most[2] if most and most[0] else None


async def find_origin(
    sessions: SessionService,
    session_id: str,
    given: GivenList,
    *,
    always: bool = True,
    known: tuple[str, Follower] | None = None,
) -> ListOrigin | None:
    """Returns the session or its fork whose whole log the list starts with; creates a fork if there is none.

    A list that shares nothing with any of them continues in another session like the first one if `always`. `known` are
    the ids of one session's messages as the list has them: what was redacted since is in the list still.
    """
    logs: list[tuple[str, Follower, list[Event]]] = []
    for number in count(1):
        name = session_id if number == 1 else f"{session_id}~{number}"
        try:
            events = await listed_events(sessions, name)
        except UnknownSession:
            if number == 1:
                raise
            break
        log = await read_in_thread(len(events), _log_of, events)
        logs.append((name, log, events))
        if known is not None and known[0] == name and len(known[1].ids) == len(events):
            logs.append((name, known[1], events))
    empty = next((log for log in logs if not log[2]), None)
    best = nearest(logs, given, lambda log: log[1]) or empty
    if best is None and not always:
        return None
    if best is None:
        record = await sessions.get(session_id)
        fields = {key: getattr(record, key) for key in ("system", "tools", "format", "model", "owner", "metadata")}
        return ListOrigin((await sessions.create(id=name, **fields)).id, Follower(), 0)
    (source, log, events), match = best, best[1].match(given)
    if match.logged == len(events):
        return ListOrigin(source, log, match.known)
    fork = await sessions.fork(source, events[match.logged - 1].id, id=name)
    return ListOrigin(fork.id, Follower(log.ids[: match.logged]), match.known)


def _log_of(events: Sequence[Event]) -> Follower:
    return Follower(ChainedIds([event.message for event in events]))


async def read_in_thread(size: int, read: Callable[[*_Arguments], _Read], *arguments: *_Arguments) -> _Read:
    """Calls a function that reads so many messages, in a thread if there are many."""
    if size < _THREAD_FROM:
        return read(*arguments)
    return await anyio.to_thread.run_sync(read, *arguments)


async def listed_events(sessions: SessionService, session_id: str) -> list[Event]:
    """The messages of the log that a program passed."""
    events = await sessions.events(session_id, kind=EventKind.MESSAGE, lane="")
    return list(filter(is_listed, events))


def is_listed(event: Event) -> bool:
    """Whether a program passed this message: only the log has the others."""
    return not any(map(event.body.get, SYNTHETIC_MARKS))


async def with_forks(sessions: SessionService, session_id: str) -> list[str]:
    """Returns the ids of a session, of its forks, and of theirs; raises UnknownSession if there is no such session."""
    found = [session_id]
    for name in found:
        found += [fork.id for fork in await sessions.store.forks(name)]
    return found


async def is_redacted(sessions: SessionService, session_id: str) -> bool:
    """Whether content was redacted from a session or one that it was forked from: a program's list still has it."""
    ancestor: str | None = session_id
    while ancestor is not None:
        if await sessions.events(ancestor, kind=EventKind.REDACTION, last=1):
            return True
        ancestor = (await sessions.get(ancestor)).parent
    return False
