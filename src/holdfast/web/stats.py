"""Statistics of a session, folded from its log once and then event by event: size over time, compactions, usage."""

from __future__ import annotations

from array import array
from collections import OrderedDict

import anyio
import msgspec

from ..compaction import Cost
from ..context.events import Event, EventKind, try_message_in
from ..sessions import SessionService
from ..stores import Slice
from ..tokens import Estimator, Usage
from ..tokens.catalog import price_of

_PAGE = 1_000
"""Events read at once; other requests are answered in between."""
_KEPT_SESSIONS = 32
_MAX_POINTS = 800
"""Points of a curve in a reply."""


class CompactionFacts(msgspec.Struct, frozen=True):
    """A compaction of the root lane."""

    seq: int
    id: str
    before: int
    after: int
    archived: int
    cost: Cost | None
    replies: int
    """Replies with usage before it."""


class ReplyFacts(msgspec.Struct, frozen=True, array_like=True):
    """A reply with the usage that its provider reported."""

    seq: int
    input: int
    cache_read: int
    cache_write: int
    output: int
    price: float | None


class SessionStats:
    """Everything that the strip and the cost page show; constant work per event."""

    def __init__(self, estimator: Estimator, model: str | None) -> None:
        self.version = 0
        self.seqs, self.sizes, self.reported = array("I"), array("I"), array("I")
        """The size of the root lane's context after each of its events as counted here, and as reported with it; 0
        where nothing was reported."""
        self.compactions: list[CompactionFacts] = []
        self.replies: list[ReplyFacts] = []
        self.usage = Usage()
        self.price: float | None = 0.0
        """USD of all replies; None if a price is unknown."""
        self.undone: set[int] = set()
        """Seqs of compactions that an undo stepped back over."""
        self._estimator, self._model = estimator, model
        self._size = self._reported = 0

    def add(self, event: Event) -> None:
        self.version = event.seq
        if event.lane is not None:
            return
        match event.kind:
            case EventKind.COMPACTION:
                self._add_compaction(event)
            case EventKind.UNDO:
                self._add_undo(event.body.get("to"))
            case EventKind.MESSAGE:
                self._add_message(event)
            case _:
                return
        self.seqs.append(event.seq)
        self.sizes.append(self._size)
        self.reported.append(self._reported)
        self._reported = 0

    def _add_message(self, event: Event) -> None:
        body = event.body
        units = body.get("units") if body.get("counter") == self._estimator.name else None
        if units is None:
            message = try_message_in(event)
            units = 0 if message is None else self._estimator.measure(message)
        self._size += self._estimator.tokens(int(units))
        if not (reported := body.get("usage")) or "." in event.id:  # a later piece of a reply repeats its usage
            return
        usage = msgspec.convert(reported, Usage)
        price = price_of(usage, body.get("model") or self._model)
        self.replies.append(
            ReplyFacts(event.seq, usage.input, usage.cache_read, usage.cache_write, usage.output, price)
        )
        self.usage = Usage(*(getattr(self.usage, name) + getattr(usage, name) for name in Usage.__struct_fields__))
        self.price = None if self.price is None or price is None else self.price + price
        self._reported = usage.total

    def _add_compaction(self, event: Event) -> None:
        body = event.body
        cost = body.get("cost")
        archived = sum(run.get("count", 0) for run in body.get("archived", ()))
        facts = CompactionFacts(
            event.seq,
            event.id,
            body.get("tokens_before", 0),
            body.get("tokens_after", 0),
            archived,
            None if cost is None else msgspec.convert(cost, Cost),
            len(self.replies),
        )
        self.compactions.append(facts)
        self.seqs.append(event.seq)
        self.sizes.append(facts.before)
        self.reported.append(0)
        self._size = facts.after

    def _add_undo(self, to: str | None) -> None:
        for facts in reversed(self.compactions):
            if facts.id == to:
                if facts.seq in self.undone:  # a redo
                    self.undone.discard(facts.seq)
                    self._size -= facts.before - facts.after
                break
            if facts.seq not in self.undone:
                self.undone.add(facts.seq)
                self._size += facts.before - facts.after

    def curve(self, now: int) -> tuple[list[int], list[int], list[int | None]]:
        """Returns seqs, counted sizes and reported ones, thinned out evenly; the two sides of every compaction stay.

        Both series end in the size `now`.
        """
        step = max(1, len(self.seqs) // _MAX_POINTS)
        marks = {facts.seq for facts in self.compactions[-_MAX_POINTS // 2 :]}
        last = len(self.seqs) - 1
        chosen = [at for at, seq in enumerate(self.seqs) if at % step == 0 or at == last or (step > 1 and seq in marks)]
        seqs, reported = [self.seqs[at] for at in chosen], [self.reported[at] or None for at in chosen]
        if not seqs:
            return [], [], []
        return [*seqs, seqs[-1]], [*(self.sizes[at] for at in chosen), now], [*reported, now]


class StatsReader:
    """Keeps the statistics of the sessions that are looked at, and reads what was appended since."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions
        self._known: OrderedDict[str, tuple[SessionStats, anyio.Lock]] = OrderedDict()

    async def read(self, session_id: str) -> SessionStats:
        """Returns the statistics up to the session's version."""
        record = await self._sessions.get(session_id)
        if session_id not in self._known:
            self._known[session_id] = SessionStats(self._sessions.estimator, record.model), anyio.Lock()
            if len(self._known) > _KEPT_SESSIONS:
                self._known.popitem(last=False)
        self._known.move_to_end(session_id)
        stats, lock = self._known[session_id]
        async with lock:
            while stats.version < record.version:
                until = min(stats.version + _PAGE, record.version)
                for event in await self._sessions.store.read(
                    session_id, Slice(any_lane=True, after=stats.version, until=until)
                ):
                    stats.add(event)
                stats.version = until
                await anyio.lowlevel.checkpoint()
        return stats
