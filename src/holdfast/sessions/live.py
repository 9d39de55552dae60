"""An open session: its record and the views of its lanes, kept up to date with the log; and the context it gives."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import anyio
import msgspec
from anyio import to_thread

from ..context import Checkpoint, HeadMessage, View
from ..context.events import (
    DECODE_ERRORS,
    Event,
    EventKind,
    LaneTip,
    SessionRecord,
    decode_reason,
    lane_key,
    message_in,
)
from ..errors import CorruptLog, InvalidInput, UnknownEvent, UnknownSession
from ..messages import COMMON, Json, encode_all, repair_messages, request_fields, restore_media
from ..messages.codec import decode_payloads
from ..messages.repair import trace_numbers
from ..stores import Appended, Log, Slice, Unchanged
from ..tokens import Estimator
from ..tokens.estimators import prompt_overhead
from ..tokens.window import WindowFacts

if TYPE_CHECKING:
    from ..compaction import Policy
    from .restore import RestoreLimits

log = logging.getLogger("holdfast")
MARKS = frozenset((EventKind.COMPACTION, EventKind.UNDO, EventKind.REDACTION))
"""Events after which a lane's view is rebuilt."""
_LARGE_CONTEXT = 1_000
"""Live messages from which a context is encoded in a thread."""


class SessionPolicy(NamedTuple):
    """The policy of a session, if it has one, and how its context is counted."""

    policy: Policy | None
    estimator: Estimator
    calibrated: bool


PolicyChoice = Callable[[Json | None, Json | None], SessionPolicy]
"""Returns a session's policy from the one last set for it, and the one that it was created with."""


class LiveSession:
    """Opening reads the live window; after that, each event is applied once, however many tasks share it."""

    def __init__(
        self,
        store: Log,
        record: SessionRecord,
        choose: PolicyChoice,
        *,
        on_heal: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self._choose = choose
        self._on_heal = on_heal
        self.record = record
        self.policy, self.estimator, self.calibrated = choose(None, record.policy)
        self.deferred_restores: dict[str, dict[str, RestoreLimits]] = {}
        """Lane key → ids of archived messages to restore once its open tool calls have their results."""
        self._views: dict[str, View] = {}
        self._facts = self._first_facts()
        self._writing: set[str] = set()
        """Ids of events that are being appended."""
        self._written: list[tuple[int, int]] = []
        """First and last seqs of runs of events that this process appended."""
        self.is_gone = False
        """Whether the session was deleted: one that has its id now is another, with a log of its own."""
        self._moving = anyio.Lock(fast_acquire=True)
        """Held while record and views change, so that they agree whenever it is free."""

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def version(self) -> int:
        return self.record.version

    def tip(self, lane: str | None) -> LaneTip:
        """Returns the state of a lane; a new lane starts from the root as it is now."""
        known = self.record.lanes.get(lane_key(lane))
        if known is not None or lane is None:
            return known or LaneTip()
        return LaneTip(base=self.version, base_epoch=self.tip(None).epoch)

    async def refresh(self) -> None:
        """Applies what other writers appended."""
        async with self._moving:
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            record = await self.store.session(self.id)
        except UnknownSession:
            self.is_gone = True
            raise
        if record.created != self.record.created or record.version < self.version:
            self.is_gone = True
            raise UnknownSession(self.id)
        events: Sequence[Event] = ()
        if record.version != self.version and self._views:
            missed = Slice(any_lane=True, after=self.version, until=record.version)
            events = await self.with_media(await self.store.read(self.id, missed))
        self._take(record, events)
        self._heal()

    def _take(self, record: SessionRecord, events: Sequence[Event]) -> None:
        """Moves record and views together, without awaiting: a cancellation leaves both equal."""
        if record.version != self.version:
            for key in self._views.keys() - self.record.lanes.keys() - {lane_key(None)}:
                del self._views[key]  # a lane starts from the root as it is at the lane's first event
        self.record = record
        for event in events:
            if event.kind == EventKind.REDACTION:
                self._views.clear()
            elif event.kind in MARKS:
                self._views.pop(lane_key(event.lane), None)
            elif (
                event.kind == EventKind.POLICY
                and "policy" in event.body
                and not self._take_policy(event.body["policy"])
            ):
                self._views.clear()
            elif (view := self._views.get(lane_key(event.lane))) is not None:
                try:
                    self._apply(view, event)
                except CorruptLog:
                    self._views.clear()
                    raise

    def _take_policy(self, stored: Json) -> bool:
        """Takes a policy that was set; returns whether contexts are counted as before, so that their views stay."""
        policy, estimator, calibrated = self._choose(stored, self.record.policy)
        same = estimator.name == self.estimator.name and calibrated == self.calibrated
        if same:
            self.policy = policy
        return same

    def _heal(self) -> None:
        """Drops views that do not stand on the checkpoint that the log names: they are read again."""
        for key, view in list(self._views.items()):
            tip = self.record.lanes.get(key)
            if tip is not None and view.checkpoint_id != tip.epoch:
                self.heal(key)

    def heal(self, key: str) -> None:
        """Drops the view of a lane that differs from the log, and reports it."""
        log.warning("A view of session %s differed from its log and is read again.", self.id)
        self._views.pop(key, None)
        self._on_heal()

    async def append(
        self,
        events: Sequence[Event],
        *,
        after: int | None = None,
        when: Unchanged | None = None,
        tip: LaneTip | None = None,
        media: Mapping[str, str] | None = None,
    ) -> Appended:
        """Appends events to the log and applies them; after a conflict, applies what other writers appended.

        Raises UnknownSession if the session was deleted, even if there is one with its id again.
        """
        if when is not None:
            await self.refresh()  # a new session's marks may equal those of the deleted one
        if self.is_gone:
            raise UnknownSession(self.id)
        ids = {event.id for event in events}
        self._writing |= ids
        try:
            done = await self.store.append(self.id, events, after=after, when=when, tip=tip, media=media)
            if done.fresh and not done.conflict:
                self._note_written(done.events)
        except UnknownSession:
            self.is_gone = True
            raise
        finally:
            self._writing -= ids
        if done.conflict:
            await self.refresh()
        elif done.fresh:
            await self._appended(done.events, done.version, tip)
        return done

    def _note_written(self, events: Sequence[Event]) -> None:
        for event in events:
            if self._written and self._written[-1][1] + 1 == event.seq:
                self._written[-1] = (self._written[-1][0], event.seq)
            else:
                self._written.append((event.seq, event.seq))

    def wrote(self, event: Event) -> bool:
        """Whether this process appended the event since it opened the session, or appends it now."""
        return event.id in self._writing or any(first <= event.seq <= last for first, last in self._written)

    async def _appended(self, events: Sequence[Event], version: int, tip: LaneTip | None) -> None:
        """Applies what this process appended; refreshes first if other writers were faster."""
        async with self._moving:
            if events[0].seq == self.version + 1 and version == self.version + len(events):
                events = await self.with_media(events)
                self._take(self._moved(events[-1], version, tip), events)
            elif version > self.version:
                with suppress(UnknownSession):  # deleted since, but the events were appended
                    await self._refresh()

    def _moved(self, last: Event, version: int, tip: LaneTip | None) -> SessionRecord:
        key, lanes = lane_key(last.lane), self.record.lanes
        if tip is not None:
            lanes = {**lanes, key: msgspec.structs.replace(tip, mark=last.seq)}
        elif key not in lanes:
            lanes = {**lanes, key: self.tip(last.lane)}
        return msgspec.structs.replace(self.record, version=version, lanes=lanes)

    async def view(self, lane: str | None = None) -> View:
        key = lane_key(lane)
        if key in self._views and not self._moving.locked():
            return self._views[key]
        async with self._moving:
            for each in (None, lane):  # the root's events tell the policy, by which every lane is counted
                if lane_key(each) not in self._views:
                    self._views[lane_key(each)] = await self._open(each)
            return self._views[key]

    @property
    def window_facts(self) -> WindowFacts:
        """What is known about the window of the session's model, by the root's events."""
        if (root := self._views.get(lane_key(None))) is not None:
            self._facts = root.window_facts
        return self._facts

    def _first_facts(self) -> WindowFacts:
        """What was known when the session was created."""
        stored = (self.record.policy or {}).get("window", {})
        facts = msgspec.convert(stored, WindowFacts)
        return facts if facts.model else msgspec.structs.replace(facts, model=self.record.model)

    def forget(self) -> None:
        self._views.clear()

    async def _open(self, lane: str | None) -> View:
        """Reads the live window of a lane: its checkpoint, the events its head refers to, and the events after it."""
        record, tip = self.record, self.tip(lane)
        start, epoch = tip.start, tip.epoch
        if lane is not None and tip.epoch is None:
            start, epoch = await self.start_of(tip.base_epoch), tip.base_epoch
        checkpoint = None if epoch is None else await self.event(epoch)
        inherited: list[Event] = []
        if lane is not None and start < tip.base:
            inherited = await self.store.read(self.id, Slice(after=start, until=tip.base))
        own = await self.store.read(self.id, Slice(lane=lane, after=max(start, tip.base), until=record.version))
        if lane is None:
            set_since = (event.body.get("policy") for event in reversed(own) if event.kind == EventKind.POLICY)
            newest = next(filter(None, set_since), None)
            carried = None if checkpoint is None else checkpoint.body.get("carry", {}).get("policy")
            self.policy, self.estimator, self.calibrated = self._choose(newest or carried, record.policy)
        view = View(
            self.estimator,
            format=record.format or COMMON,
            prompt_overhead=prompt_overhead(record.system, record.tools),
            lane=lane,
            calibrated=self.calibrated,
            alternating=record.alternating,
        )
        view.window_facts = self._first_facts()
        if checkpoint is not None:
            await self._begin(view, checkpoint)
            view.checkpoint_id = tip.epoch
        for event in await self.with_media([*inherited, *own]):
            self._apply(view, event)
        return view

    def _apply(self, view: View, event: Event) -> None:
        try:
            view.append(event)
        except DECODE_ERRORS as problem:
            raise CorruptLog(
                f"Event {event.id!r} (#{event.seq}) of session {self.id!r} cannot be read ({decode_reason(problem)}): "
                "import the session again from a correct export, or delete it."
            ) from problem

    async def _begin(self, view: View, event: Event) -> None:
        checkpoint = msgspec.convert(event.body, Checkpoint)
        refs = [item.ref for item in checkpoint.head if item.ref and item.message is None]
        named = {found.id: found for found in await self.events(refs)}
        head = []
        for item in checkpoint.head:
            source = named.get(item.ref or "")
            message = item.message
            if message is None and source is not None:
                message = message_in(source)
            if message is not None:
                head.append(HeadMessage(item.kind, message, item.ref))
        view.start_from(event.id, checkpoint, head, event.seq)
        view.events.update({ref.id: ref for ref in await self.events([i.ref for i in checkpoint.head if i.ref])})

    async def start_of(self, epoch: str | None) -> int:
        """Returns the seq after which a checkpoint's live events start."""
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
        """Returns the events with their media restored."""
        digests = set(chain.from_iterable(event.body.get("media", ()) for event in events))
        if not digests:
            return list(events)
        media = await self.store.media(self.id, sorted(digests))
        return [
            msgspec.structs.replace(event, body=restore_media(event.body, media)) if event.body.get("media") else event
            for event in events
        ]


class Context(Sequence[Any]):
    """The messages of a session, ready to send, with its system prompt, tools and size.

    `messages` never contains the prompt given as `system=`; `request` has it where the format takes it.
    """

    def __init__(
        self,
        messages: list[Any],
        *,
        format: str | None,
        tokens: int,
        version: int,
        system: Any = None,
        tools: Any = None,
        known: bool = False,
        timed_out: bool = False,
        view: View,
    ) -> None:
        self.messages = messages
        self.format = format
        """The wire format; None while plain text fits several."""
        self.tokens = tokens
        self.version = version
        self.system = system
        self.tools = tools
        self.known = known
        """Whether the tokens are based on the provider's report, not on an estimate alone."""
        self.timed_out = timed_out
        """Whether the wait for a compaction ended before the compaction did."""
        self.checkpoint = view.checkpoint_id or ""
        """Id of the compaction in force, empty if there is none; give it to `append` as `made_on` with the reply."""
        self.is_compacted = bool(self.checkpoint)
        """Whether a compaction is in force: the messages are not the ones that were appended."""
        self._view, self._live = view, len(view.messages)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the values without the view that they were read from, so that a context can be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_view"} | {"numbers": self.numbers}

    @cached_property
    def numbers(self) -> list[int]:
        """The seq of the event behind each message, as references cite it; for a note, that of its compaction."""
        view, live = self._view, self._live
        given = [*(shown.message for shown in view.head), *view.messages[:live]]
        sources = [view.events.get(shown.source or "") for shown in view.head]
        first = [view.checkpoint_seq if source is None else source.seq for source in sources]
        shown = decode_payloads(self.messages, self.format or COMMON)
        return trace_numbers(shown, given, [*first, *view.numbers[:live]])

    @property
    def request(self) -> Json:
        """Arguments for the provider's call: messages, system prompt and tools, each where the format takes it."""
        if self.format is None:
            raise InvalidInput("These messages fit several formats: pass format= to create(), Keeper() or context().")
        return request_fields(self.messages, self.format, self.system, self.tools)

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self.messages[place]

    def __eq__(self, other: object) -> bool:
        return self.messages == (other.messages if isinstance(other, Context) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Context({len(self.messages)} messages, {self.tokens} tokens, version {self.version})"


async def read_context(view: View, record: SessionRecord, format: str, *, timed_out: bool = False) -> Context:
    """Returns the context of a view as it is now; a large one is encoded in a thread."""
    context = Context(
        [],
        format=None if format == COMMON else format,
        tokens=view.tokens,
        version=record.version,
        system=record.system,
        tools=record.tools,
        known=view.calibration.known_tokens is not None,
        timed_out=timed_out,
        view=view,
    )
    count = len(view.messages)
    if count < _LARGE_CONTEXT:
        context.messages = encode_view(view, count, format)
    else:
        context.messages = await to_thread.run_sync(encode_view, view, count, format)
    return context


def encode_view(view: View, count: int, format: str) -> list[Json]:
    """Encodes the first live messages of a view; later appends do not change them."""
    other = format != view.format
    shown = view.context_messages(count, format)
    return encode_all(repair_messages(shown, view.rules_in(format)) if other else shown, format)
