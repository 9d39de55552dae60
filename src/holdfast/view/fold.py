"""The fold from events to context, kept up to date in constant work per append."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain, pairwise

import msgspec

from ..events import Event, Kind
from ..messages import (
    COMMON,
    CONTINUE,
    OPENING,
    Message,
    Numbering,
    Opaque,
    ToolCall,
    arrange,
    continues,
    decode_one,
    is_filler,
    is_framed,
    is_summary,
    opens,
    presentable,
    profile_for,
)
from ..tokens import Calibration, Estimator, Usage
from .checkpoint import Checkpoint, HeadKind
from .edits import Edit, edited
from .gauge import Gauge
from .pairs import Pairs

_NOTED = ("assistant", "system")
"""Beside the user, those in whose voice a summary may be shown."""
UNWRITTEN = "~"
"""Ends the name of an answer that only the view gives: the log has no event for it."""


class Shown(msgspec.Struct, frozen=True):
    """Something shown before the live messages, and the event it came from, if it is one."""

    kind: HeadKind
    message: Message
    source: str | None = None


class View:
    """One lane's context: a head, then live messages, with the sums that deciding needs."""

    def __init__(
        self,
        estimator: Estimator,
        *,
        format: str = COMMON,
        beside: Sequence[str] = (),
        lane: str | None = None,
        calibrated: bool = False,
    ) -> None:
        self.lane = lane
        self.format = format
        self.beside = tuple(beside)
        """System prompt and tool definitions: they stand beside the messages and count."""
        self.calibrated = calibrated
        self.checkpoint_id: str | None = None
        self.checkpoint_seq = 0
        self.undone = False
        """A compaction was undone, and the user has not spoken since."""
        self.checkpoint = Checkpoint()
        self.calibration = Calibration()
        self.head: list[Shown] = []
        self.ids: Sequence[str] = []
        self.named: Sequence[int] = ()
        """The numbers that the messages came with, where they are no events and are not to be counted."""
        self.events: dict[str, Event] = {}
        """The visible events by id, where this is the view of a session."""
        self.messages: list[Message] = []
        self.turns: list[int] = []
        self.synthetic: list[int] = []
        """Places of notes and summaries: they stay, and no window counts them."""
        self.fillers: list[int] = []
        """Places of what a format wanted put in, or a program said: it goes with what it stood beside, uncounted."""
        self.settled = 0
        """How many of the live messages were there when the last compaction kept them."""
        self.pins: set[str] = set()
        self.version = 0
        self.failures = 0
        """How many compactions in a row have failed since the last one that worked, …"""
        self.retry_at = 0.0
        """… when the next automatic one may be tried …"""
        self.attempted = False
        """… and whether nothing was said since."""
        self.gauge = Gauge(estimator, self.beside)
        self._gauges: dict[int, Gauge] = {}
        self._continues = 0
        self._pairs = Pairs()
        self._number = Numbering()

    # -- building -----------------------------------------------------------------------------------

    def load(self, messages: list[Message], ids: Sequence[str]) -> None:
        """Take over mended messages in one go; notes of ours among them are told by their frame."""
        self.messages, self.ids = messages, ids
        self.gauge.load(messages)
        self._count_continues()
        self._sort_users([index for index, message in enumerate(messages) if message.role == "user"])
        opaque = [index for index, m in enumerate(messages) if m.parts and type(m.parts[0]) is Opaque]
        others = [index for index in opaque if messages[index].raw is not None and is_summary(messages[index])]
        others += [index for index, m in enumerate(messages) if m.role in _NOTED and is_framed(m)]
        self.synthetic = sorted([*self.synthetic, *others])

    def _sort_users(self, users: list[int]) -> None:
        """Tell the user's own messages from notes of ours and from fillers."""
        framed = {index for index in users if is_framed(self.messages[index])}
        self.fillers = sorted(index for index in framed if is_filler(self.messages[index]))
        self.synthetic = sorted(framed.difference(self.fillers))
        self.turns = [index for index in users if index not in framed] if framed else users

    def _count_continues(self) -> None:
        profile = profile_for(self.format)
        if profile.calls_follow_user:
            self._continues = sum(continues(b, a, profile) for a, b in pairwise(self.messages))

    def take(self, head: Iterable[Shown], live: Iterable[Message], before: View, cut: int) -> None:
        """Take over a context that was composed from another view, with what that knew of its messages."""
        self.head, self.messages, self.ids = list(head), list(live), before.ids[cut:]
        self.named = before.numbers[cut:]
        self.gauge.begin([shown.message for shown in self.head])
        self.gauge.load(self.messages)
        self._count_continues()
        self.settled = max(0, before.settled - cut)
        for name in ("synthetic", "fillers", "turns"):
            setattr(self, name, [index - cut for index in getattr(before, name) if index >= cut])

    def snapshot(self) -> View:
        """This view as it is now: what is appended while a model is asked does not move it."""
        still = copy(self)
        for name in ("head", "messages", "turns", "synthetic", "fillers"):
            setattr(still, name, list(getattr(self, name)))
        still.ids = self.ids[:] if isinstance(self.ids, list) else self.ids
        still.events = dict(self.events)
        still.gauge = self.gauge.snapshot()
        still._gauges = {}
        return still

    def begin(self, checkpoint_id: str | None, checkpoint: Checkpoint, head: Iterable[Shown], seq: int = 0) -> None:
        """Start from a checkpoint: nothing before its boundary is read but what its head names."""
        self.checkpoint_id, self.checkpoint, self.checkpoint_seq = checkpoint_id, checkpoint, seq
        self.head = list(head)
        self.gauge.begin([shown.message for shown in self.head])
        carry = checkpoint.carry
        self.pins = set(carry.pins)
        if self.calibrated and carry.counter == self.gauge.estimator.name:
            self.calibration = carry.calibration
        if self.format == COMMON and carry.format:
            self.format = carry.format

    def append(self, event: Event) -> None:
        """Take in one event of this lane; kinds that are not known are passed over."""
        self.version = max(self.version, event.seq)
        if event.kind == Kind.PIN:
            self._pin(event)
        elif event.kind == Kind.UNDO:
            self.undone = event.seq > self.checkpoint_seq
        elif event.kind == Kind.ATTEMPT and event.seq > self.checkpoint_seq and event.lane == self.lane:
            self.failures, self.retry_at = int(event.body["failures"]), float(event.body["retry_at"])
            self.attempted = True
        elif event.kind == Kind.COMPACTION:
            self.failures, self.retry_at, self.attempted = 0, 0.0, False
        elif event.kind == Kind.MESSAGE:
            self._message(event)

    def _pin(self, event: Event) -> None:
        changed = {str(event.body.get("event"))}
        self.pins = self.pins | changed if event.body.get("pinned", True) else self.pins - changed

    def _message(self, event: Event) -> None:
        body = event.body
        if self.format == COMMON and body.get("format"):
            self.format = body["format"]
        profile = profile_for(self.format)
        message = presentable(self._number(decode_one(body["message"], body.get("format")), event.seq), profile)
        if message is None:
            return
        self._close_before(message, event.id)
        shown = self._pairs.admit(message, profile)
        if shown is None:
            return
        if shown.role != message.role:
            self._close_before(shown, event.id)
        changes: Sequence[Edit] = self.checkpoint.edits.get(event.id, ())
        shown = edited(shown, changes)
        if not shown.parts and message.parts:
            return
        counted = body.get("units") if not changes and body.get("counter") == self.gauge.estimator.name else None
        self.events[event.id] = event
        copied = "source" in body  # what was restored once goes again when its time comes
        note = is_summary(shown) or bool(body.get("synthetic") and not copied)
        self._push(shown, event.id, counted, synthetic=note, aside=copied or bool(body.get("aside")))
        self.settled += event.seq <= self.checkpoint.carry.settled
        self.attempted = False
        if self.turns and self.turns[-1] == len(self.messages) - 1:
            self.undone = False
        if self.calibrated and event.epoch == self.checkpoint_id and (usage := body.get("usage")):
            size = self.gauge.estimator.tokens(self.units())
            self.calibration = self.calibration.learn(size, msgspec.convert(usage, Usage))

    def _close_before(self, message: Message, event_id: str) -> None:
        """Answer the calls that this message leaves behind, if nothing in the log did."""
        profile = profile_for(self.format)
        if closing := self._pairs.closing(message, profile):
            self._pairs.admit(closing, profile)
            name = f"{event_id}{UNWRITTEN}"
            self._push(edited(closing, self.checkpoint.edits.get(name, ())), name)

    def _push(
        self, message: Message, id: str, units: int | None = None, *, synthetic: bool = False, aside: bool = False
    ) -> None:
        index = len(self.messages)
        self.messages.append(message)
        self.ids.append(id)  # type: ignore[attr-defined]
        if index and continues(message, self.messages[index - 1], profile_for(self.format)):
            self._continues += 1
        self.gauge.add(message, units)
        if synthetic:
            self.synthetic.append(index)
        elif aside:
            self.fillers.append(index)
        elif message.role == "user":
            self.turns.append(index)

    # -- reading ------------------------------------------------------------------------------------

    @property
    def numbers(self) -> Sequence[int]:
        """What the messages are cited by; none, where they are counted. What only the view says has its call's."""
        if self.named or not self.events:
            return self.named
        numbers, last = [], 0
        for id in self.ids:
            last = self.events[id].seq if id in self.events else last
            numbers.append(last)
        return numbers

    def gauge_for(self, estimator: Estimator | None) -> Gauge:
        """The running sums of another estimator over the same messages, each measured once."""
        if estimator is None or estimator is self.gauge.estimator:
            return self.gauge
        gauge = self._gauges.get(id(estimator))
        if gauge is None:
            gauge = self._gauges[id(estimator)] = Gauge(estimator, self.beside)
            gauge.begin([shown.message for shown in self.head])
        gauge.catch_up(self.messages)
        return gauge

    def units(self, gauge: Gauge | None = None) -> int:
        """All of it, with what the format wants put in between."""
        gauge = gauge or self.gauge
        measure = gauge.estimator.measure
        put_in = self._continues * measure(CONTINUE) if self._continues else 0
        return gauge.units + put_in + (measure(OPENING) if self._needs_opening else 0)

    @property
    def _needs_opening(self) -> bool:
        if not profile_for(self.format).user_first:
            return False
        together = chain((shown.message for shown in self.head), self.messages)
        first = next((message for message in together if message.role != "system"), None)
        return bool(self.head or self.messages) and (first is None or not opens(first))

    @property
    def tokens(self) -> int:
        """The size of the context: what the provider said, plus an estimate of what came since (P3)."""
        return self.tokens_of(self.units())

    def tokens_of(self, units: int, gauge: Gauge | None = None) -> int:
        size = (gauge or self.gauge).estimator.tokens(units)
        return self.calibration.tokens(size) if self.calibration.replies and gauge in (None, self.gauge) else size

    @property
    def leading(self) -> int:
        """How many system messages stand first: they always stay."""
        count = 0
        while count < len(self.messages) and self.messages[count].role == "system":
            if is_framed(self.messages[count]):
                break
            count += 1
        return count

    @property
    def split_turn(self) -> Shown | None:
        """The user message of a turn whose first part is archived."""
        return next((shown for shown in self.head if shown.kind == "turn"), None)

    @property
    def turn_count(self) -> int:
        """Real user messages that are visible (S5)."""
        return len(self.turns) + (self.split_turn is not None)

    @property
    def event_count(self) -> int:
        """Events that a window counts: neither notes nor system messages (S8)."""
        return self.events_from(self.leading) + (self.split_turn is not None)

    def events_from(self, index: int) -> int:
        """How many live messages from here on a window counts."""
        notes = len(self.synthetic) - bisect_left(self.synthetic, index)
        return len(self.messages) - index - notes - (len(self.fillers) - bisect_left(self.fillers, index))

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """Calls that wait for a result, as they are shown."""
        return tuple(self._pairs.waiting.values())

    def closing(self, message: Message) -> Message | None:
        """The results that must be appended before this message may come."""
        return self._pairs.closing(message, profile_for(self.format))

    def next_turn(self, index: int) -> int | None:
        """The first live turn that starts at or after this message."""
        place = bisect_left(self.turns, index)
        return self.turns[place] if place < len(self.turns) else None

    def shown(self, count: int | None = None, format: str | None = None) -> list[Message]:
        """The context, valid for its format: head, live messages, and what the format insists on.

        With the count and format of an earlier moment: the context as it was then.
        """
        together = [item.message for item in self.head] + self.messages[:count]
        return arrange(together, profile_for(format or self.format))
