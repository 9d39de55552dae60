"""What every part of the service stands on: a store, settings, and the sessions that are open in memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..budget import positive
from ..calls import Limits
from ..catalog import CATALOG
from ..compaction import Abort, Asking, Notify
from ..errors import InvalidInput, StoreClosed
from ..events import Event, LaneTip, SessionRecord, new_id, now
from ..hooks import Hooks
from ..hooks.patience import must_be_seconds
from ..messages import format_name
from ..models import model_for
from ..presets import Preset, preset_named
from ..stores import Log
from ..tokens import Estimator, Tokenizer, estimator_for
from .flags import LEASE, Flags
from .live import LiveSession
from .restarting import Restarting
from .underway import Underway

if TYPE_CHECKING:
    from ..types import Clock

Records = list[SessionRecord]

OPEN_SESSIONS = 256
"""How many sessions stay open in memory; the least recently used goes first."""


class OpenSessions:
    """Create, get, list and delete sessions."""

    def __init__(
        self,
        store: Log,
        *,
        estimator: Estimator | Callable[[str], int] | str | None = None,
        preset: str | Preset | None = None,
        summarizer: Any = None,
        limits: Limits | None = None,
        clock: Clock = time.time,
        hooks: Hooks | None = None,
        lease: float = LEASE,
        window: int | None = None,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Hooks):
            raise InvalidInput(f"hooks= takes Hooks(before=…, after=…, …), not {type(hooks).__name__}.")
        self.store = store
        self.model = model_for(summarizer)
        """Who writes summaries, where a call does not say otherwise."""
        if window is not None:
            positive("window", window)
        self.window = window
        """How many tokens fit, where the catalog does not know the models that are used."""
        self.clock = clock
        self.hooks = hooks or Hooks()
        """What is asked and told around every compaction."""
        self._given_estimator, self._given_limits = estimator, limits
        self._open: OrderedDict[str, LiveSession] = OrderedDict()
        self._settle(None if preset is None else preset_named(preset))
        must_be_seconds(lease, "lease")
        self._underway = Underway()
        self._flags = Flags(store, lease)
        """Of sessions that anybody compacts, here or in another process."""
        self._restarting = Restarting()
        self._closed = False

    def _settle(self, preset: Preset | None) -> None:
        """Use what was given, else what the preset says."""
        self.preset = preset
        self.limits = self._given_limits or (preset.limits if preset else None)
        estimator, self._calibrated = self._given_estimator, self._given_estimator is None
        if estimator is None and preset is not None:
            estimator, self._calibrated = preset.estimator, preset.calibrated
        self._estimator = Tokenizer() if estimator is None else estimator_for(estimator)

    def follow(self, preset: str | Preset) -> None:
        """Compact by another preset from now on, and count as it counts: sessions are measured anew when next used."""
        self._settle(preset_named(preset))
        self._open.clear()

    @property
    def estimator(self) -> Estimator:
        return self._estimator

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        self._open.clear()
        await self.store.close()

    async def create(
        self,
        *,
        id: str | None = None,
        system: Any = None,
        tools: Any = None,
        format: str | None = None,
        model: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """A new, empty session. System prompt and tools count towards its size."""
        record = SessionRecord(
            id=new_id() if id is None else id,
            created=now(),
            owner=owner,
            system=system,
            tools=tools,
            format=None if format is None else format_name(format),
            model=model,
            metadata=dict(metadata or {}),
        )
        self._not_closed()
        await self.store.create(record)
        return record

    async def get(self, session_id: str) -> SessionRecord:
        self._not_closed()
        return await self.store.session(session_id)

    async def list(self, owner: str | None = None, limit: int | None = None) -> Records:
        """Sessions, newest first."""
        self._not_closed()
        return await self.store.sessions(owner, limit)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; its forks keep what they share with it."""
        self._not_closed()
        self._open.pop(session_id, None)
        await self.store.delete(session_id)

    def window_of(self, record: SessionRecord) -> int | None:
        """How many tokens fit, as far as that is known: for this service, the session's model, or the preset."""
        if self.window is not None or record.model:
            return self.window or CATALOG.window(record.model)
        return None if self.preset is None else self.preset.window

    # -- for the other parts ------------------------------------------------------------------------

    def _asking(self, summarizer: Any, notify: Notify | None, abort: Abort | None) -> Asking:
        """Who is asked in one call: the one that is named, else the service's own."""
        return Asking(model_for(summarizer) or self.model, self.limits, notify, abort)

    async def _mark(self, live: LiveSession, event: Event, tip: LaneTip | None = None) -> None:
        tip = tip or live.tip(event.lane)
        done = await self.store.append(live.id, [event], tip=tip)
        if done.fresh:
            await live.appended(done.events, done.version, tip)

    def _not_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    async def _live(self, session_id: str, *, refresh: bool = False) -> LiveSession:
        self._not_closed()
        live = self._open.get(session_id)
        if live is None:
            record = await self.store.session(session_id)
            live = LiveSession(self.store, record, self._estimator, calibrated=self._calibrated)
            self._open[session_id] = live
            if len(self._open) > OPEN_SESSIONS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(session_id)
            if refresh:
                await live.refresh()
        return live
