"""Writing another tool's session into a store, with what it compacted as compactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anyio import to_thread

from ..errors import InvalidInput, UnknownSession
from ..events import Event, Kind, SessionRecord
from ..service import SessionService
from ..stores import Slice
from .exchanged import exchanged
from .logged import Logged, Step, logged
from .transcript import Transcript

BATCH = 500
"""Events in one append, at most."""


class AlreadyThere(InvalidInput):
    """The session was imported before, and nothing has been added to it since."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is there already: to have it once more, give it another --id.")
        self.session_id = session_id


async def import_transcript(service: SessionService, transcript: Transcript, id: str | None = None) -> SessionRecord:
    """Write a session of any tool as one of ours; its id is the tool's, or the one given.

    Its context is what the tool would send next, and its compactions can be undone, forked from and searched.
    An import that broke off is completed by the next one; so is one whose session went on in its own tool.
    """
    return await _written(service, await to_thread.run_sync(logged, transcript, service.estimator, id))


async def import_exported(
    service: SessionService, records: Sequence[Mapping[str, Any]], id: str | None = None
) -> SessionRecord:
    """The same for what `SessionService.export` gave: nothing is lost, lanes and undone compactions included."""
    return await _written(service, exchanged(records, id))


async def _written(service: SessionService, ready: Logged) -> SessionRecord:
    session_id = ready.record.id
    try:
        await service.get(session_id)
    except UnknownSession:
        await service.store.create(ready.record)
        known = 0
    else:
        known = await _known(service, ready)
    for batch in _batches(ready.steps[known:]):
        media = {digest: data for step in batch for digest, data in step.media.items()}
        await service.store.append(session_id, [step.event for step in batch], tip=batch[-1].tip, media=media)
    return await service.get(session_id)


async def _known(service: SessionService, ready: Logged) -> int:
    """How many events are there already; whatever else is there belongs to somebody."""
    session_id = ready.record.id
    stored = await service.store.read(session_id, Slice(any_lane=True))
    if len(stored) > len(ready.steps) or not all(map(_is_same, stored, (step.event for step in ready.steps))):
        raise InvalidInput(
            f"Session {session_id!r} is there already, and it is another one or has gone on by itself: "
            "to have this one too, give it another --id."
        )
    if len(stored) == len(ready.steps):
        raise AlreadyThere(session_id)
    return len(stored)


def _is_same(stored: Event, ready: Event) -> bool:
    return (stored.id, stored.kind, _content(stored)) == (ready.id, ready.kind, _content(ready))


def _content(event: Event) -> list[Any]:
    """What does not depend on who counted the tokens."""
    if event.kind == Kind.COMPACTION:
        return [event.body.get("boundary"), event.body.get("summary")]
    return [event.body.get("message") if event.kind == Kind.MESSAGE else event.body]


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Messages together; a checkpoint alone, since it takes effect where it stands."""
    batch: list[Step] = []
    for step in steps:
        marks = step.tip is not None or (batch and batch[-1].tip is not None)
        if batch and (marks or batch[-1].event.lane != step.event.lane or len(batch) == BATCH):
            yield batch
            batch = []
        batch.append(step)
    if batch:
        yield batch
