"""Looking into sessions: search, read and restore what they hold, archived or not (H1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

import msgspec

from ..errors import InvalidInput, InvalidLimit, UnknownSession
from ..events import Event
from ..service import SessionService
from ..stores import Hit, Search, Where
from ..stores.query import Query
from ..summaries import readable
from ..tokens import Estimator, estimator_for
from .conditions import KINDS, ROLES, Names, names, names_among
from .moments import span
from .passage import Passage, Reader
from .resolve import resolve

MOST_HITS = 1_000
MOST_SKIPPED = 1_000_000_000
MOST_WORDS = 200
"""A query of more words takes long to look for, and nothing but the text it was copied from would hold them all."""
ANSWER_TOKENS = 2_000
"""What a passage or a tool's answer may have, unless said otherwise."""


class Found(msgspec.Struct, frozen=True):
    """A page of hits, the best first."""

    hits: tuple[Hit, ...]
    next: int | None = None
    """The offset of the next page; None where this is the last."""

    @property
    def more(self) -> bool:
        return self.next is not None


class Finder:
    """Finds, reads and restores events, of all sessions or of one."""

    def __init__(
        self,
        sessions: SessionService,
        session_id: str | None = None,
        *,
        estimator: Estimator | Callable[[str], int] | str | None = None,
    ) -> None:
        self.sessions = sessions
        self.session_id = session_id
        self.estimator = sessions.estimator if estimator is None else estimator_for(estimator)

    async def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        kind: Names = None,
        role: Names = None,
        tool: Names = None,
        but_tool: Names = None,
        lane: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        archived: bool | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> Found:
        """Events that hold every word of the query, in any order and any script, also inside longer words.

        The query is data: nothing in it is syntax. `kind`, `role` and `tool` take one name or several;
        `lane` is a sub-agent's, or "" for the root alone; `since` and `until` are dates, times or ages
        like `3d`, and what has no time lies in no stretch of it; `archived` asks for messages that a compaction
        made invisible (True) or left (False), which only the context of one session can say.
        """
        _check_query(query)
        if not 1 <= limit <= MOST_HITS:
            raise InvalidLimit(f"limit must be between 1 and {MOST_HITS:,}: use offset for more.")
        if not 0 <= offset <= MOST_SKIPPED:
            raise InvalidLimit(f"offset must be between 0 and {MOST_SKIPPED:,}: look for rarer words instead.")
        within = session_id or self.session_id
        if archived is not None and within is None:
            raise InvalidInput(
                "What is archived depends on a session's context: name the session, or leave out archived."
            )
        first, last = span(since, until)
        where = Where(
            kinds=names_among(KINDS, kind, "kind of event"),
            roles=names_among(ROLES, role, "role"),
            tools=names(tool),
            but_tools=names(but_tool),
            lane=lane and readable(lane),
            since=first,
            until=last,
            archived=archived,
            shown=frozenset() if within is None else await self.sessions.shown(within),
        )
        hits = await self._store.search(
            query, session_id=within, owner=owner, where=where, limit=limit + 1, offset=offset
        )
        page = hits[:limit] if within is not None else await self._as_their_contexts_say(hits[:limit])
        return Found(tuple(page), offset + limit if len(hits) > limit else None)

    async def read(self, reference: str, *, session_id: str | None = None, max_tokens: int = ANSWER_TOKENS) -> Passage:
        """What the events behind a reference say, in at most so many tokens, and where to go on.

        A reference is `#123`, `#123-#130`, `#123@4000` (from that character on), `[1,204]` or `[12]-[14]` as
        notes cite them, an event's id, or the beginning of one.
        """
        record = await self.sessions.get(self._session(session_id))
        place = await resolve(self.sessions.store, record, reference)
        shown = await self.sessions.shown(record.id)
        return await Reader(self.sessions.store, record, shown, self.estimator).read(place, max_tokens)

    async def restore(
        self, reference: str, *, session_id: str | None = None, lane: str | None = None, id: str | None = None
    ) -> Event:
        """Bring an archived message back into the context: `SessionService.restore` by reference."""
        record = await self.sessions.get(self._session(session_id))
        place = await resolve(self.sessions.store, record, reference)
        if place.first.seq != place.last.seq or place.offset:
            raise InvalidInput(f"{reference!r} names more or less than one event: restore them one by one.")
        return await self.sessions.restore(record.id, place.first.id, lane, id=id)

    # -- within -------------------------------------------------------------------------------------

    async def _shown(self, session: str) -> frozenset[str]:
        try:
            return await self.sessions.shown(session)
        except UnknownSession:  # deleted since it was found
            return frozenset()

    async def _as_their_contexts_say(self, hits: Sequence[Hit]) -> list[Hit]:
        """Hits of several sessions: only those that are listed are asked what their contexts show first."""
        sessions = {hit.session_id for hit in hits if hit.archived}
        shown = {session: await self._shown(session) for session in sessions}
        return [
            msgspec.structs.replace(hit, archived=hit.archived and hit.event.id not in shown[hit.session_id])
            for hit in hits
        ]

    @property
    def _store(self) -> Search:
        store = self.sessions.store
        if not isinstance(store, Search):
            raise InvalidInput(f"{type(store).__name__} cannot be searched: use one of Holdfast's own stores.")
        return store

    def _session(self, session_id: str | None) -> str:
        chosen = session_id or self.session_id
        if chosen is None:
            raise InvalidInput("Name the session that the reference is about: session_id=…")
        return chosen


def _check_query(query: str) -> None:
    words = len(Query(query).words) if isinstance(query, str) else 0
    if not words:
        raise InvalidInput("There is nothing to look for: give one or more words that must occur.")
    if words > MOST_WORDS:
        raise InvalidInput(f"The query has {words:,} words, more than {MOST_WORDS}: give a few that are rare.")
    try:
        query.encode()
    except UnicodeError as problem:
        raise InvalidInput(f"The query is not Unicode text ({problem}): leave out half characters.") from None
