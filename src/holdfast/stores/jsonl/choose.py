"""Choosing the events of a slice from the index."""

from __future__ import annotations

import msgspec

from ...events import root_key
from ..log import Slice
from .index import Index, Known, Spot

NO_END = 2**63 - 1
_SPOT = "SELECT seq, id, offset, length FROM events "
_USING = ("", "INDEXED BY events_by_id ")
_RANGE = "WHERE file = ?1 AND seq > ?2 AND seq <= ?3 "
_KINDS = "AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4))) "
_LANE = ("AND lane = ?5 ", "AND ?5 IS NOT NULL ")
_IDS = ("AND ?6 IS NULL ", "AND id IN (SELECT value FROM json_each(?6)) ")
_ORDER = ("ORDER BY seq LIMIT ?7", "ORDER BY seq DESC LIMIT ?7")
_STATEMENTS = {
    (lane, ids, order): _SPOT + _USING[ids] + _RANGE + _KINDS + _LANE[lane] + _IDS[ids] + _ORDER[order]
    for lane in (False, True)
    for ids in (False, True)
    for order in (False, True)
}
"""By: any lane, some ids, newest first."""


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
    values = (known.key, min(which.after, NO_END), until, kinds, root_key(which.lane), ids, limit)
    with index.reading(known) as connection:
        rows = connection.execute(_STATEMENTS[which.any_lane, ids is not None, newest], values)
        return [Spot(*row) for row in rows]
