"""`verify`: re-derive a whole session from its log, and say what does not agree."""

from __future__ import annotations

import msgspec

from ..boundaries import find_problems
from ..errors import HoldfastError
from ..events import Event, Kind, root_key
from ..messages import encode_all, profile_for
from ..stores import Slice
from ..view import UNWRITTEN, Checkpoint
from .live import LiveSession


async def verify(live: LiveSession) -> list[str]:
    """What is wrong, in words; empty if the log, its checkpoints and all its contexts agree."""
    found = list(await live.store.problems(live.id))
    events = await live.store.read(live.id, Slice(any_lane=True))
    found += _references(events)
    for lane in sorted({root_key(event.lane) for event in events} | {""}):
        found += await _lane(live, lane or None)
    return found


def _references(events: list[Event]) -> list[str]:
    """Every checkpoint must name events that are there, and stand after them."""
    found: list[str] = []
    seen: set[str] = set()
    for event in events:
        if event.kind == Kind.COMPACTION:
            checkpoint = msgspec.convert(event.body, Checkpoint)
            named = [checkpoint.boundary, checkpoint.previous, *(item.ref for item in checkpoint.head)]
            named += [name for run in checkpoint.archived for name in (run.first, run.last)]
            named += [name for name in checkpoint.edits if not name.endswith(UNWRITTEN)]
            missing = sorted({name for name in named if name is not None and name not in seen})
            if missing:
                found.append(f"compaction {event.id} names events that are not before it: {', '.join(missing)}")
        elif event.kind == Kind.UNDO and (to := event.body.get("to")) is not None and to not in seen:
            found.append(f"undo {event.id} steps back to {to}, which is not before it")
        seen.add(event.id)
    return found


async def _lane(live: LiveSession, lane: str | None) -> list[str]:
    """The view kept in memory, one built anew, and what the format wants must all agree."""
    name = f"lane {lane!r}" if lane else "the context"
    try:
        kept = await live.view(lane)
        fresh = await LiveSession(live.store, live.record, live.estimator, calibrated=live.calibrated).view(lane)
    except HoldfastError as problem:
        return [f"{name} cannot be built: {problem}"]
    found = []
    if encode_all(kept.shown(), kept.format) != encode_all(fresh.shown(), fresh.format):
        found.append(f"{name} differs from the one rebuilt from the log")
    found += [f"{name}: {problem}" for problem in find_problems(fresh.shown(), profile_for(fresh.format))]
    return found
