"""Which events a search takes, and in which order every store returns them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from ..events import Event, Kind, root_key
from .log import Hit, Where
from .query import Match, Query
from .said import Said, said_in, tool_called
from .texts import fold, snippet

POOL = 200
"""Matches that are ranked against each other: the newest, then the next newest, and so on.

Ranking all that hold a common word would cost more the longer a log gets; this costs the same."""

LOOK_BACK = 200
"""Events between a call and its result, at most, where the result does not name its tool."""

Earlier = Callable[[str, Event, str], Iterable[Event]]
"""Of a session, those events before this one that may hold this call, the nearest first."""


class Catch(msgspec.Struct, frozen=True):
    """An event that matches."""

    session_id: str
    event: Event
    said: Said
    match: Match
    archived: bool


class Sieve:
    """One search: the words, the conditions, and where to find the call that says which tool a result is of."""

    def __init__(self, query: Query, where: Where, earlier: Earlier) -> None:
        self.query = query
        self.where = where
        self._earlier = earlier

    def catch(self, session_id: str, event: Event, start: int) -> Catch | None:
        """The event if it is sought; `start` is where its lane's live window begins."""
        where = self.where
        if not _envelope_fits(event, where):
            return None
        archived = event.kind == Kind.MESSAGE and event.seq <= start and event.id not in where.shown
        if where.archived is not None and (archived is not where.archived or event.kind != Kind.MESSAGE):
            return None
        said = said_in(event)
        if where.roles and said.role not in where.roles:
            return None
        match = self.query.match(fold(said.text))
        if match is None or not self._tools_fit(session_id, event, said):
            return None
        return Catch(session_id, event, said, match, archived)

    def _tools_fit(self, session_id: str, event: Event, said: Said) -> bool:
        where = self.where
        if not where.tools and not where.but_tools:
            return True
        tools = self._tools(session_id, event, said)
        if where.tools and tools.isdisjoint(where.tools):
            return False
        return not tools or not tools.issubset(where.but_tools)

    def _tools(self, session_id: str, event: Event, said: Said) -> set[str]:
        """All tools that an event is about, by name where the name can be found."""
        called = (tool_of(self._earlier(session_id, event, call_id), call_id) for call_id in said.answers)
        return {*said.tools, *filter(None, called)}

    def hit(self, caught: Catch) -> Hit:
        return Hit(
            session_id=caught.session_id,
            event=caught.event,
            snippet=snippet(caught.said.text, self.query.words),
            role=caught.said.role,
            tools=tuple(sorted(self._tools(caught.session_id, caught.event, caught.said))),
            archived=caught.archived,
        )

    def page(self, caught: list[Catch], limit: int, offset: int) -> list[Hit]:
        """A page of what was caught, where all of it is at hand: of a session by seq, of several by time."""
        caught.sort(key=lambda each: (each.event.time, each.session_id, each.event.seq), reverse=True)
        if len({each.session_id for each in caught}) < 2:
            caught.sort(key=lambda each: -each.event.seq)
        whole = (each for each in caught if each.match.whole)
        rest = (each for each in caught if not each.match.whole)
        return self.hits([whole, rest], limit, offset)

    def hits(self, tiers: Iterable[Iterable[Catch]], limit: int, offset: int) -> list[Hit]:
        """A page of one tier after the other, each newest first; no more is drawn from them than it takes."""
        ranked = (caught for tier in tiers for caught in _ranked(tier))
        return [self.hit(caught) for caught in islice(ranked, max(0, offset), max(0, offset) + max(0, limit))]


def tool_of(earlier: Iterable[Event], call_id: str) -> str | None:
    """The tool that the nearest of these events calls under this id."""
    return next(filter(None, (tool_called(event, call_id) for event in earlier)), None)


def _ranked(newest_first: Iterable[Catch]) -> Iterator[Catch]:
    rest = iter(newest_first)
    while pool := list(islice(rest, POOL)):
        yield from sorted(pool, key=lambda caught: -caught.match.score)


def _envelope_fits(event: Event, where: Where) -> bool:
    return (
        (not where.kinds or event.kind in where.kinds)
        and (where.lane is None or root_key(event.lane) == where.lane)
        and (where.since is None or event.time >= where.since)
        and (where.until is None or "" < event.time <= where.until)
    )
