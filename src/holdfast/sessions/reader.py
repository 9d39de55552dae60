"""`SessionReader`: what `SessionService` reads without a write or a model call, and its LRU of open sessions."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec

from ..compaction import Policy, PolicyLike, preset, read_policy, resolve
from ..compaction.presets import DEFAULT_PRESET
from ..compaction.size import Size, measure
from ..context import Request, View
from ..context.events import Event, SessionRecord
from ..errors import InvalidInput, NoRoom, StoreClosed, UnknownSession
from ..hooks.timeouts import require_seconds
from ..messages import Json, ToolCall, format_name
from ..stores import Slice, StoreLike, store_for
from ..stores.base import ProcessGuard
from ..strategies.memory import read_memory
from ..summaries.memory import MemoryBlock
from ..tokens import Estimator, Tokenizer, estimator_for
from ..tokens.budget import require_positive
from ..tokens.window import StatedWindows, Window
from ..triggers import always
from .explain import (
    CompactionEstimate,
    CompactionPreview,
    Explanation,
    estimate_compaction,
    explain_compaction,
    preview_compaction,
)
from .history import EventPages, find_events, head_event_ids, verify_session, view_at, view_from
from .lease import LEASE_SECONDS, RunningCompactions, SessionLeases
from .live import Context, LiveSession, SessionPolicy, read_context
from .marks import tip_after_undo
from .transfer import export_session

if TYPE_CHECKING:
    from ..types import EstimatorLike, StrategyLike

WAIT_SECONDS = 60.0
"""How long `wait=True` waits for a running compaction."""
OPEN_SESSIONS = 256
"""Sessions kept in memory; the least recently used is closed first."""
Records = list[SessionRecord]
Events = list[Event]
ExportedLines = list[dict[str, Any]]
Findings = list[str]


@lru_cache(maxsize=256)
def _read(stored: bytes) -> Policy:
    """Reads a stored policy; sessions of one application have equal ones."""
    return read_policy(msgspec.json.decode(stored))


class SessionReader:
    """Reads sessions of a store: contexts, events, sizes, explanations; waits for compactions that are running.

    `window`, `preset` and `lease` are those of `SessionService`.
    """

    def __init__(
        self,
        store: StoreLike,
        *,
        estimator: EstimatorLike | None = None,
        preset: PolicyLike | None = None,
        lease: float = LEASE_SECONDS,
        window: int | None = None,
    ) -> None:
        if window is not None:
            window = require_positive("window", window)
        require_seconds(lease, "lease")
        self.store = store = store_for(store)
        self.window = window
        self.healed_views = 0
        """Views in memory that differed from their log and were read again; 0 unless something is wrong."""
        self.stated = StatedWindows()
        """What providers stated to this process: it holds for sessions that know nothing themselves."""
        self._running = RunningCompactions()
        self._leases = SessionLeases(store, lease)
        self._given_estimator = estimator
        self._estimator = Tokenizer() if estimator is None else estimator_for(estimator)
        self._open: OrderedDict[str, LiveSession] = OrderedDict()
        self._closed = False
        self._process = ProcessGuard()
        self._given_policies: dict[bytes, Policy] = {}
        """Policies given in this process, by their stored form."""
        self._use(preset)

    def _use(self, given: PolicyLike | None) -> None:
        """Makes this the policy of sessions that have none set."""
        self.preset = None if given is None else self._know(preset(given).changed(window=self.window))
        self._default = SessionPolicy(None, *self._counting(None))

    def _choose_policy(self, last_set: Json | None, created_with: Json | None) -> SessionPolicy:
        """Returns a session's policy: the one set for it, else this service's, else the one it was created with.

        One that was given to this service stands for its stored form: it has the objects that cannot be stored.
        """
        own, stored = self.preset, last_set or (created_with if self.preset is None else None)
        if stored is not None:
            encoded = msgspec.json.encode(stored, order="sorted")
            own = self._given_policies.get(encoded) or _read(encoded)
        return self._default if own is None else SessionPolicy(own, *self._counting(own))

    def _know(self, policy: Policy) -> Policy:
        self._given_policies[msgspec.json.encode(policy.stored(), order="sorted")] = policy
        return policy

    def _counting(self, policy: Policy | None) -> tuple[Estimator, bool]:
        if self._given_estimator is not None:
            return self._estimator, False
        if policy is None or policy.estimator is None:
            return self._estimator, policy is None or policy.calibrated
        return estimator_for(policy.estimator), policy.calibrated

    @property
    def lease_seconds(self) -> float:
        """How long others wait for a process that died."""
        return self._leases.seconds

    @property
    def estimator(self) -> Estimator:
        """The estimator that counts tokens, unless a session's policy has another."""
        return self._counting(self.preset)[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the service and its store."""
        self._closed = True
        self._open.clear()
        await self.store.close()
        await self._leases.close()

    async def get(self, session_id: str) -> SessionRecord:
        """Returns a session's record."""
        self._require_open()
        return await self.store.session(session_id)

    async def list(self, owner: str | None = None, limit: int | None = None) -> Records:
        """Returns sessions, newest first."""
        self._require_open()
        return await self.store.sessions(owner, limit)

    async def policy(self, session_id: str) -> Policy:
        """Returns the policy by which a session is compacted automatically, with the window that it knows."""
        live = await self._live(session_id, refresh=True)
        await live.view()
        return self._automatic_policy(live)

    def _automatic_policy(self, live: LiveSession) -> Policy:
        own = live.policy
        if own is None or not own.name:
            own = preset(DEFAULT_PRESET).changed(window=None if own is None else own.window)
        return own.changed(window=self.window) if own.window is None else own

    def _request(self, live: LiveSession, view: View, policy: Policy) -> Request:
        """Returns the request that triggers and strategies see: the session's view with its policy's numbers."""
        return policy.request(view, self._window(live, policy), live.id)[1]

    def _window(self, live: LiveSession, policy: Policy | None = None) -> Window | None:
        """Returns the context window of a session whose view is open, in a policy or in its own."""
        facts, policy = live.window_facts, policy or self._automatic_policy(live)
        facts = facts.or_stated(self.stated.of(facts.model))
        if policy.window is None and live.policy is not None:
            policy = msgspec.structs.replace(policy, window=live.policy.window)
        if policy.window is None and self.window is not None:
            policy = msgspec.structs.replace(policy, window=self.window)
        return policy.window_in(facts)

    def _known_window(self, live: LiveSession) -> Window:
        """Returns the window of a session in its own policy: a named one always has one."""
        window = self._window(live)
        assert window is not None
        return window

    def _limit(self, live: LiveSession) -> int | None:
        """Returns the tokens that a session's model takes; None where nothing but a preset's usual window is known."""
        window = self._window(live)
        guessed = window is None or (window.basis == "default" and not live.record.model and self.preset is None)
        return None if window is None or guessed else window.tokens

    # -- the context --------------------------------------------------------------------------------------

    async def context(
        self,
        session_id: str,
        lane: str | None = None,
        *,
        format: str | None = None,
        wait: bool | float = False,
        budget: int | None = None,
    ) -> Context:
        """Returns what to send to the model next, in the session's own wire format or in this one.

        Args:
            session_id: The session.
            lane: A sub-agent's lane inside the session.
            format: Another wire format than the session's.
            wait: First waits for a running compaction, for a minute or so many seconds. If it is still running then,
                the context is as before it.
            budget: NoRoom is raised if the context exceeds this after the wait; by default the model's window.
        """
        if budget is not None:
            require_positive("budget", budget)
        ready = wait is False or await self._wait_ready(session_id, lane, wait)
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        limit = budget or self._limit(live)
        if not ready and limit is not None and view.tokens > limit:
            raise NoRoom(session_id, view.tokens, limit, _wait_seconds(wait))
        wanted = view.format if format is None else format_name(format)
        return await read_context(view, live.record, wanted, timed_out=not ready)

    async def context_at(self, session_id: str, event_id: str, *, format: str | None = None) -> Context:
        """Returns what `context` returned right after this event, in the event's lane; nothing is written.

        `version` is the event's seq. Messages are sent between events, so what a reply was made from is the context at
        the event before it.
        """
        live = await self._live(session_id, refresh=True)
        event = await live.event(event_id)
        view = await view_at(live, event)
        record = msgspec.structs.replace(live.record, version=event.seq)
        return await read_context(view, record, view.format if format is None else format_name(format))

    async def size(self, session_id: str, lane: str | None = None) -> Size:
        """Returns the size of the context without its messages, which costs little however many they are."""
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        policy = self._automatic_policy(live)
        return measure(view, policy, self._window(live, policy))

    async def round(self, session_id: str, lane: str | None = None) -> int:
        """Returns how many times the context was compacted."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).checkpoint.carry.round

    async def waiting(self, session_id: str, lane: str | None = None) -> tuple[ToolCall, ...]:
        """Returns the tool calls without a result, with their ids in this session."""
        live = await self._live(session_id, refresh=True)
        return (await live.view(lane)).pending_calls

    async def memory(self, session_id: str, *, lane: str | None = None) -> MemoryBlock:
        """Returns the memory: a summary of the older notes, and the newer ones verbatim."""
        live = await self._live(session_id, refresh=True)
        return read_memory(await live.view(lane))

    def compacting(self, session_id: str, lane: str | None = None) -> bool:
        """Whether a compaction of this session is running in this service."""
        return (session_id, lane) in self._running

    async def ready(
        self,
        session_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the caller decides how long a request waits
        lane: str | None = None,
    ) -> bool:
        """Waits until the session is not being compacted; returns False after `timeout` seconds.

        Waits for other processes too, if the store has leases; for a lane, only for this one. A compaction that fails
        or is aborted ends the wait, and the lease of a dead worker expires. Returns False at once inside a hook of
        that compaction.
        """
        if timeout is not None:
            require_seconds(timeout)
        await self.get(session_id)
        with anyio.move_on_after(timeout):
            if not await self._running.wait_idle((session_id, lane)):
                return False
            if lane is None:
                await self._leases.wait_released(session_id, "compaction")
            return True
        return False

    # -- the log -------------------------------------------------------------------------------------------

    async def events(
        self,
        session_id: str,
        *,
        kind: str | None = None,
        lane: str | None = None,
        archived: bool | None = None,
        text: str | None = None,
        last: int | None = None,
        before: int | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> Events:
        """Returns events of the log, oldest first.

        `lane` names a sub-agent's lane; "" is the root alone, None all lanes. `archived` selects messages that a
        compaction archived (True) or left visible (False). `text` must occur in the event, ignoring case. `before`
        selects events with a lower number. `last` returns the newest n; `page` (from 0, the oldest) and `page_size`
        return one page.
        """
        live = await self._live(session_id, refresh=True)
        pages = EventPages(last=last, before=before, page=page, page_size=page_size)
        return await find_events(live, pages, kind=kind, lane=lane, archived=archived, text=text)

    async def others(self, session_id: str, after: int) -> tuple[Events, int, bool]:
        """Returns what other processes appended to the root lane after this version, the version, and their turn.

        The last value tells whether some process is in a turn, this one included.
        """
        live, version = await self._live(session_id), (await self.get(session_id)).version
        new = Slice(after=after, until=version)
        events = [] if version <= after else await self.store.read(session_id, new)
        in_turn = await self._leases.is_held(session_id, "turn")
        return [event for event in events if not live.wrote(event)], version, in_turn

    async def shown(self, session_id: str) -> frozenset[str]:
        """Returns ids of events that a checkpoint shows although they are before its boundary, in any lane."""
        return await head_event_ids(await self._live(session_id, refresh=True))

    async def explain(self, session_id: str, compaction: str) -> Explanation:
        """Explains a compaction, given its event id: what became of each event, and why its page has its lines.

        The compaction is computed again from the log and compared with what is stored: `agrees` tells the result. It is
        None where that is not possible, with the reason in `why`. Nothing is written.
        """
        return await explain_compaction(await self._live(session_id, refresh=True), compaction)

    async def preview(
        self,
        session_id: str,
        strategy: StrategyLike | None = None,
        *,
        at: str | None = None,
        lane: str | None = None,
        preset: PolicyLike | None = None,
        budget: int | None = None,
        target: int | None = None,
    ) -> CompactionPreview:
        """Returns what a compaction would do now, or right after the event `at`; nothing is written.

        No model is called: a strategy that needs one falls back as if it had failed.
        """
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane) if at is None else await view_at(live, await live.event(at))
        policy = resolve(preset, strategy=strategy, budget=budget, target=target, trigger=always)
        return await preview_compaction(live, view, policy, self._window(live, policy))

    async def estimate(
        self,
        session_id: str,
        strategy: StrategyLike | None = None,
        *,
        at: int | None = None,
        preset: PolicyLike | None = None,
        budget: int | None = None,
    ) -> CompactionEstimate | None:
        """Returns the first figures of `preview` from sizes alone; None for an event before the live window."""
        live = await self._live(session_id, refresh=True)
        view, tip = await live.view(), live.tip(None)
        seq = live.version if at is None else at
        if seq < tip.start or (tip.epoch is not None and seq < tip.mark):
            return None
        policy = resolve(preset, strategy=strategy, budget=budget, trigger=always)
        return estimate_compaction(view, seq, policy, self._window(live, policy))

    async def preview_undo(self, session_id: str, *, lane: str | None = None, to: str | None = None) -> Size:
        """Returns the size of the context after an undo, or with the checkpoint `to`; nothing is written."""
        live = await self._live(session_id, refresh=True)
        _, tip = await tip_after_undo(live, lane, to)
        view = await view_from(live, lane, msgspec.structs.replace(tip, mark=live.version))
        policy = self._automatic_policy(live)
        return measure(view, policy, self._window(live, policy))

    async def export(self, session_id: str) -> ExportedLines:
        """Returns the whole session as plain data, one record a line, to be imported anywhere."""
        return await export_session(await self._live(session_id, refresh=True))

    async def verify(self, session_id: str) -> Findings:
        """Rebuilds everything from the log and returns what does not agree; empty if all does."""
        return await verify_session(await self._live(session_id, refresh=True))

    # -- for the other parts of this package ------------------------------------------------------------

    async def _live(self, session_id: str, *, refresh: bool = False) -> LiveSession:
        """Returns the open session, from the cache or from the store; `refresh` catches up with other writers."""
        self._require_open()
        if not isinstance(session_id, str):
            raise InvalidInput(f"A session is named by its id, as in session.id, not by a {type(session_id).__name__}.")
        live = self._open.get(session_id)
        if live is not None and refresh:
            with suppress(UnknownSession):
                await live.refresh()
        if live is None or live.is_gone:
            record = await self.store.session(session_id)
            live = LiveSession(self.store, record, self._choose_policy, on_heal=self._count_healed)
            self._open[session_id] = live
        if session_id in self._open:
            self._open.move_to_end(session_id)
        if len(self._open) > OPEN_SESSIONS:
            self._open.popitem(last=False)
        return live

    def _count_healed(self) -> None:
        self.healed_views += 1

    def _require_open(self) -> None:
        if self._closed:
            raise StoreClosed
        self._process.enter()

    async def _wait_ready(self, session_id: str, lane: str | None, wait: bool | float) -> bool:
        return await self.ready(session_id, _wait_seconds(wait), lane)


def _wait_seconds(wait: bool | float) -> float:
    return WAIT_SECONDS if wait is True else wait
