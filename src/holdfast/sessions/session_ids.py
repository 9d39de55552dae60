"""Session ids as people read and type them: shortened to their last characters, and found by any unique part.

The end of an id is random; its beginning is a time, which sessions of the same hour share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..context.events import SessionRecord
from ..errors import AmbiguousSession, UnknownSession

if TYPE_CHECKING:
    from .service import SessionService

_GENERATED_ID = re.compile(r"[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{16,}")
"""Ids of Holdfast, UUIDs, and those of OpenCode; an id that a person chose is never shortened."""
_SHORTEST = 6
_MAX_CANDIDATES = 3
"""Sessions named in an error."""


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """Returns for each id its shortest end, of at least six characters, that finds no other of these ids."""
    ids = set(ids)
    shortened = {one: one for one in ids}
    left, size = {one for one in ids if _GENERATED_ID.fullmatch(one)}, _SHORTEST
    while left and size < max(map(len, left)):
        ends = Counter(part for one in ids for part in {one[-size:], one[:size]})
        for one in [one for one in left if ends[one[-size:]] == 1]:
            shortened[one] = one[-size:]
            left.discard(one)
        size += 1
    return shortened


async def shorten_id(sessions: SessionService, session_id: str) -> str:
    """Returns an id as a person reads it; it finds the session in this store."""
    return shorten_ids([session_id, *(record.id for record in await sessions.list())])[session_id]


async def find_session(sessions: SessionService, written: str) -> SessionRecord:
    """Finds a session by its id, or by the beginning or end of it; raises `AmbiguousSession` if several match."""
    try:
        return await sessions.get(written)
    except UnknownSession:
        records = await sessions.list()
    found = [record for record in records if written and (record.id.startswith(written) or record.id.endswith(written))]
    if not found:
        raise UnknownSession(written)
    if len(found) > 1:
        shortened = shorten_ids(record.id for record in records)
        some = [shortened[record.id] for record in found[:_MAX_CANDIDATES]]
        raise AmbiguousSession(written, some, len(found))
    return found[0]
