"""A session in memory: its record and the views of its lanes, kept up with the log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import anyio
import msgspec

from ..compaction import beside
from ..errors import UnknownEvent
from ..events import Event, Kind, LaneTip, SessionRecord, root_key
from ..messages import COMMON, decode_one, lower_media
from ..stores import Log, Slice
from ..tokens import Estimator
from ..view import Checkpoint, Shown, View

MARKS = frozenset((Kind.COMPACTION, Kind.UNDO, Kind.REDACTION))
"""Events after which a lane's view must be built anew."""


class LiveSession:
    """Opening costs the live window; after that, each event is taken in once, however many tasks ask."""

    def __init__(self, store: Log, record: SessionRecord, estimator: Estimator, *, calibrated: bool) -> None:
        self.store = store
        self.record = record
        self.estimator = estimator
        self.calibrated = calibrated
        self._views: dict[str, View] = {}
        self._moving = anyio.Lock(fast_acquire=True)
        """Held while record and views move: they agree whenever it is free."""

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def version(self) -> int:
        return self.record.version

    def tip(self, lane: str | None) -> LaneTip:
        """Where a lane stands; a new one starts from the root as it is now."""
        known = self.record.lanes.get(root_key(lane))
        if known is not None or lane is None:
            return known or LaneTip()
        return LaneTip(base=self.version, base_epoch=self.tip(None).epoch)

    async def refresh(self) -> None:
        """Catch up with what other writers appended."""
        async with self._moving:
            await self._refresh()

    async def _refresh(self) -> None:
        record = await self.store.session(self.id)
        events: Sequence[Event] = ()
        if record.version != self.version and self._views:
            missed = Slice(any_lane=True, after=self.version, until=record.version)
            events = await self.with_media(await self.store.read(self.id, missed))
        self.record = record
        self._take(events)

    def _take(self, events: Sequence[Event]) -> None:
        """Nothing is awaited from the record's move to here: who is cancelled leaves them in agreement."""
        for event in events:
            if event.kind == Kind.REDACTION:
                self._views.clear()
            elif event.kind in MARKS:
                self._views.pop(root_key(event.lane), None)
            elif (view := self._views.get(root_key(event.lane))) is not None:
                view.append(event)

    async def appended(self, events: Sequence[Event], version: int, tip: LaneTip | None = None) -> None:
        """Take in what this process appended itself; catch up first if others were faster."""
        async with self._moving:
            if events[0].seq == self.version + 1 and version == self.version + len(events):
                events = await self.with_media(events)
                self._move(events[-1], version, tip)
                self._take(events)
            elif version > self.version:
                await self._refresh()

    def _move(self, last: Event, version: int, tip: LaneTip | None) -> None:
        key, lanes = root_key(last.lane), self.record.lanes
        if tip is not None:
            lanes = {**lanes, key: msgspec.structs.replace(tip, mark=last.seq)}
        elif key not in lanes:
            lanes = {**lanes, key: self.tip(last.lane)}
        self.record = msgspec.structs.replace(self.record, version=version, lanes=lanes)

    async def view(self, lane: str | None = None) -> View:
        key = root_key(lane)
        if key in self._views and not self._moving.locked():
            return self._views[key]
        async with self._moving:
            if key not in self._views:
                self._views[key] = await self._open(lane)
            return self._views[key]

    def forget(self) -> None:
        self._views.clear()

    async def _open(self, lane: str | None) -> View:
        """Read the live window of a lane: its checkpoint, what its head names, and what came after."""
        record, tip = self.record, self.tip(lane)
        view = View(
            self.estimator,
            format=record.format or COMMON,
            beside=beside(record.system, record.tools),
            lane=lane,
            calibrated=self.calibrated,
        )
        start = tip.start
        if lane is None or tip.epoch is not None:
            await self._begin(view, tip.epoch)
        else:
            await self._begin(view, tip.base_epoch)
            start = await self.start_of(tip.base_epoch)
            view.checkpoint_id = None
        inherited: list[Event] = []
        if lane is not None and start < tip.base:
            inherited = await self.store.read(self.id, Slice(after=start, until=tip.base))
        own = await self.store.read(self.id, Slice(lane=lane, after=max(start, tip.base), until=record.version))
        for event in await self.with_media([*inherited, *own]):
            view.append(event)
        return view

    async def _begin(self, view: View, epoch: str | None) -> None:
        if epoch is None:
            return
        event = await self.event(epoch)
        checkpoint = msgspec.convert(event.body, Checkpoint)
        refs = [item.ref for item in checkpoint.head if item.ref and item.message is None]
        named = {found.id: found for found in await self.events(refs)}
        head = []
        for item in checkpoint.head:
            source = named.get(item.ref or "")
            message = item.message
            if message is None and source is not None:
                message = decode_one(source.body["message"], source.body.get("format"))
            if message is not None:
                head.append(Shown(item.kind, message, item.ref))
        view.begin(epoch, checkpoint, head, event.seq)
        view.events.update({ref.id: ref for ref in await self.events([i.ref for i in checkpoint.head if i.ref])})

    async def start_of(self, epoch: str | None) -> int:
        """The seq after which a checkpoint's live events come."""
        if epoch is None:
            return 0
        boundary = msgspec.convert((await self.event(epoch)).body, Checkpoint).boundary
        return 0 if boundary is None else (await self.event(boundary)).seq

    async def event(self, event_id: str) -> Event:
        found = await self.events([event_id])
        if not found:
            raise UnknownEvent(event_id, self.id)
        return found[0]

    async def events(self, ids: Sequence[str]) -> list[Event]:
        if not ids:
            return []
        return await self.with_media(await self.store.read(self.id, Slice(any_lane=True, ids=tuple(ids))))

    async def with_media(self, events: Sequence[Event]) -> list[Event]:
        """Events with their media back in place."""
        digests = set(chain.from_iterable(event.body.get("media", ()) for event in events))
        if not digests:
            return list(events)
        media = await self.store.media(self.id, sorted(digests))
        return [
            msgspec.structs.replace(event, body=lower_media(event.body, media)) if event.body.get("media") else event
            for event in events
        ]
