"""Choosing the events of a slice from the index."""

from __future__ import annotations

import msgspec

from ...events import root_key
from ..log import Slice
from .index import Index, Known, Spot

NO_END = 2**63 - 1
_SPOT = "SELECT seq, id, offset, length FROM events WHERE file = ?1 "
_RANGE = "AND seq > ?2 AND seq <= ?3 AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4))) "
_IDS = "AND (?5 IS NULL OR id IN (SELECT value FROM json_each(?5))) "
_LANE = "AND lane = ?6 "
_ANY_LANE = "AND ?6 IS NOT NULL "
_ASCENDING = "ORDER BY seq LIMIT ?7"
_DESCENDING = "ORDER BY seq DESC LIMIT ?7"
_STATEMENTS = {
    (any_lane, newest): _SPOT
    + _RANGE
    + _IDS
    + (_ANY_LANE if any_lane else _LANE)
    + (_DESCENDING if newest else _ASCENDING)
    for any_lane in (True, False)
    for newest in (True, False)
}


def choose(index: Index, chain: list[tuple[Known, int]], which: Slice) -> list[tuple[Known, list[Spot]]]:
    """Where the events of a slice stand, file by file, oldest first. `chain` begins with the youngest file."""
    left = -1 if which.limit is None else min(max(0, which.limit), NO_END)
    newest = which.newest and which.limit is not None
    found: list[tuple[Known, list[Spot]]] = []
    for known, seen in chain if newest else chain[::-1]:
        until = seen if which.until is None else min(which.until, seen)
        if left == 0 or until <= which.after:
            continue
        spots = _spots(index, known, which, until, newest, left)
        found.append((known, spots[::-1] if newest else spots))
        left = left if left < 0 else left - len(spots)
    return found[::-1] if newest else found


def _spots(index: Index, known: Known, which: Slice, until: int, newest: bool, limit: int) -> list[Spot]:
    kinds = msgspec.json.encode(which.kinds).decode() if which.kinds else None
    ids = msgspec.json.encode(which.ids).decode() if which.ids else None
    values = (known.key, min(which.after, NO_END), until, kinds, ids, root_key(which.lane), limit)
    with index.reading(known) as connection:
        rows = connection.execute(_STATEMENTS[which.any_lane, newest], values)
        return [Spot(*row) for row in rows]
