"""Finds the stored session that a list of messages continues, where a program keeps the list and a store the log.

A list that shares only its beginning with the session (an edited message, an earlier state) continues in a fork, so
that neither history is lost. Forks have the id of the session and a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from ..compaction.prefix_ids import PayloadIds
from ..context.events import Event, EventKind
from ..errors import UnknownSession
from ..messages import Json
from .history import SYNTHETIC_MARKS
from .service import SessionService


class ListOrigin(NamedTuple):
    """A session, and how many of the list's payloads its log has."""

    session_id: str
    payloads: int


async def find_origin(sessions: SessionService, session_id: str, payloads: Sequence[Json]) -> ListOrigin:
    """Returns the session or its fork whose whole log the list starts with; creates a fork if there is none."""
    wanted = PayloadIds(payloads)
    best, shared, fork_at = session_id, -1, ""
    for number in count(1):
        name = session_id if number == 1 else f"{session_id}~{number}"
        try:
            events = await listed_events(sessions, name)
        except UnknownSession:
            if number == 1:
                raise
            break
        common = _common_length(PayloadIds([event.message for event in events]), wanted)
        if common == len(events):
            return ListOrigin(name, common)
        if common > shared:
            best, shared, fork_at = name, common, events[common - 1].id if common else ""
    if fork_at:
        return ListOrigin((await sessions.fork(best, fork_at, id=name)).id, shared)
    record = await sessions.get(session_id)
    fields = {key: getattr(record, key) for key in ("system", "tools", "format", "model", "owner", "metadata")}
    return ListOrigin((await sessions.create(id=name, **fields)).id, 0)


async def listed_events(sessions: SessionService, session_id: str) -> list[Event]:
    """The messages of the log that a program passed."""
    events = await sessions.events(session_id, kind=EventKind.MESSAGE, lane="")
    return [event for event in events if not any(map(event.body.get, SYNTHETIC_MARKS))]


def _common_length(log: Sequence[str], wanted: Sequence[str]) -> int:
    """The length of the common beginning, by chained digests: once they differ, they never agree again."""
    low, high = 0, min(len(log), len(wanted))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if log[middle - 1] == wanted[middle - 1] else (low, middle - 1)
    return low
