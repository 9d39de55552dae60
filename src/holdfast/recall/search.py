"""Search, read and restore events of sessions, archived or live."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import get_args

import msgspec

from ..context.events import Event, EventKind
from ..errors import InvalidInput, InvalidLimit, UnknownSession
from ..messages import Role
from ..sessions import SessionService
from ..stores import Hit, Search, Where
from ..stores.search import Query
from ..summaries import replace_surrogates
from ..tokens import Estimator, estimator_for
from .passage import Passage, PassageReader, resolve_reference

_AGE = re.compile(r"(\d{1,6})\s*([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(
    given: str | date | None, name: str = "since", *, end: bool = False, now: datetime | None = None
) -> str | None:
    """Returns the time as an event timestamp in UTC. A date is its first millisecond, with `end` its last."""
    if given is None:
        return None
    at = _parse(given, now or datetime.now(UTC), end)
    if at is None:
        raise InvalidInput(
            f"{name} takes a date like 2026-03-01, a time like 2026-03-01T12:30 or an age like 90m, 12h, 3d or 2w, "
            f"not {given!r:.80}."
        )
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_range(since: str | date | None, until: str | date | None) -> tuple[str | None, str | None]:
    """Parses both ends of a time range. Raises InvalidInput where `since` is after `until`."""
    first, last = parse_time(since), parse_time(until, "until", end=True)
    if first and last and first > last:
        raise InvalidInput(f"since {since} is later than until {until}: swap them, or leave one out.")
    return first, last


def _parse(given: str | date, now: datetime, end: bool) -> datetime | None:
    try:
        at = _parse_text(given.strip(), now, end) if isinstance(given, str) else _day_boundary(given, end)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):  # not a date, or outside the calendar's range
        return None


def _parse_text(text: str, now: datetime, end: bool) -> datetime:
    if found := _AGE.fullmatch(text.lower()):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    if len(text) <= len("2026-03-01"):
        return _day_boundary(date.fromisoformat(text), end)
    return datetime.fromisoformat(text)


def _day_boundary(day: date, end: bool) -> datetime:
    if isinstance(day, datetime):
        return day
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + (
        timedelta(days=1, milliseconds=-1) if end else timedelta()
    )


ROLES: tuple[str, ...] = get_args(Role)
KINDS = (EventKind.MESSAGE, EventKind.COMPACTION, EventKind.UNDO, EventKind.PIN, EventKind.REDACTION, EventKind.ATTEMPT)
NameFilter = str | Sequence[str] | None


def name_filter(given: NameFilter) -> tuple[str, ...]:
    """One name or several as a tuple."""
    several = () if given is None else (given,) if isinstance(given, str) else given
    return tuple(map(replace_surrogates, several))


def known_names(known: Sequence[str], given: NameFilter, what: str) -> tuple[str, ...]:
    """The names as a tuple. Raises InvalidInput for an unknown one: a typo must not look like an empty log."""
    names = name_filter(given)
    for name in names:
        if name not in known:
            raise InvalidInput(f"{name!r:.80} is not a {what}: use one of {', '.join(known)}.")
    return names


MAX_HITS = 1_000
MAX_OFFSET = 1_000_000_000
MAX_QUERY_WORDS = 200
"""Longer queries are slow and match nothing but the text they were copied from."""
DEFAULT_MAX_TOKENS = 2_000
"""Default size limit of a passage or a tool answer."""


class SearchResults(msgspec.Struct, frozen=True):
    """One page of search hits, best first."""

    hits: tuple[Hit, ...]
    next: int | None = None
    """The offset of the next page; None on the last page."""

    @property
    def more(self) -> bool:
        """Whether there is another page."""
        return self.next is not None


class SessionSearch:
    """Searches, reads and restores events of one session, or of all sessions of a service."""

    def __init__(
        self,
        sessions: SessionService,
        session_id: str | None = None,
        *,
        estimator: Estimator | Callable[[str], int] | str | None = None,
        can_restore: bool = True,
    ) -> None:
        self.sessions = sessions
        self.can_restore = can_restore
        """Whether to offer the restore tool; not for a temporary copy of a list or a file."""
        self.session_id = session_id
        self.estimator = sessions.estimator if estimator is None else estimator_for(estimator)

    async def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        kind: NameFilter = None,
        role: NameFilter = None,
        tool: NameFilter = None,
        exclude_tool: NameFilter = None,
        lane: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        archived: bool | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchResults:
        """Finds events that contain every word of the query, in any order and script, also inside longer words.

        The query has no syntax. `kind`, `role` and `tool` take one name or several, `exclude_tool` excludes tools;
        `lane` is a sub-agent's lane, or "" for the root lane only; `since` and `until` are dates, times or ages
        like `3d`, and events without timestamps never match them; `archived` selects messages that a compaction
        removed from the context (True) or kept (False), and needs a session.
        """
        _check_query(query)
        if not 1 <= limit <= MAX_HITS:
            raise InvalidLimit(f"limit must be between 1 and {MAX_HITS:,}: use offset for more.")
        if not 0 <= offset <= MAX_OFFSET:
            raise InvalidLimit(f"offset must be between 0 and {MAX_OFFSET:,}: search for rarer words instead.")
        within = session_id or self.session_id
        if archived is not None and within is None:
            raise InvalidInput(
                "archived depends on the context of one session: name the session, or leave out archived."
            )
        first, last = time_range(since, until)
        where = Where(
            kinds=known_names(KINDS, kind, "kind of event"),
            roles=known_names(ROLES, role, "role"),
            tools=name_filter(tool),
            exclude_tools=name_filter(exclude_tool),
            lane=lane and replace_surrogates(lane),
            since=first,
            until=last,
            archived=archived,
            visible_ids=frozenset() if within is None else await self.sessions.shown(within),
        )
        hits = await self._store.search(
            query, session_id=within, owner=owner, where=where, limit=limit + 1, offset=offset
        )
        page = hits[:limit] if within is not None else await self._mark_archived(hits[:limit])
        return SearchResults(tuple(page), offset + limit if len(hits) > limit else None)

    async def read(
        self, reference: str, *, session_id: str | None = None, max_tokens: int = DEFAULT_MAX_TOKENS
    ) -> Passage:
        """Reads the events behind a reference, truncated to `max_tokens`; `Passage.next` is where to continue.

        A reference is `#123`, `#123-#130`, `#123@4000` (from that character on), `[1,204]` or `[12]-[14]` as
        notes cite them, an event id, or a prefix of one.
        """
        record = await self.sessions.get(self._session(session_id))
        place = await resolve_reference(self.sessions.store, record, reference)
        shown = await self.sessions.shown(record.id)
        return await PassageReader(self.sessions.store, record, shown, self.estimator).read(place, max_tokens)

    async def restore(
        self, reference: str, *, session_id: str | None = None, lane: str | None = None, id: str | None = None
    ) -> Event:
        """Brings an archived message back into the context: `SessionService.restore` by reference."""
        event = await self.find_event(reference, session_id=session_id)
        return await self.sessions.restore(self._session(session_id), event.id, lane, id=id)

    async def find_event(self, reference: str, *, session_id: str | None = None) -> Event:
        """Returns the one event behind a reference. Raises InvalidInput for a range or a part of an event."""
        record = await self.sessions.get(self._session(session_id))
        place = await resolve_reference(self.sessions.store, record, reference)
        if place.first.seq != place.last.seq or place.offset:
            raise InvalidInput(
                f"{reference!r} is not exactly one event: name a single one, such as #{place.first.seq}."
            )
        return place.first

    async def _shown(self, session: str) -> frozenset[str]:
        try:
            return await self.sessions.shown(session)
        except UnknownSession:  # deleted since the search
            return frozenset()

    async def _mark_archived(self, hits: Sequence[Hit]) -> list[Hit]:
        """Clears `archived` of hits that their session's context still shows; loads only the listed sessions."""
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
            raise InvalidInput(f"{type(store).__name__} does not support search: use one of Holdfast's own stores.")
        return store

    def _session(self, session_id: str | None) -> str:
        chosen = session_id or self.session_id
        if chosen is None:
            raise InvalidInput("The reference needs a session: pass session_id=…")
        return chosen


def _check_query(query: str) -> None:
    words = len(Query(query).words) if isinstance(query, str) else 0
    if not words:
        raise InvalidInput("The query has no words: give one or more words that must occur.")
    if words > MAX_QUERY_WORDS:
        raise InvalidInput(f"The query has {words:,} words, more than {MAX_QUERY_WORDS}: give a few rare ones.")
    try:
        query.encode()
    except UnicodeError as problem:
        raise InvalidInput(f"The query is not valid Unicode ({problem}): remove lone surrogates.") from None
