"""Compacting sessions, and stepping back over a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..budget import positive
from ..catalog import CATALOG
from ..compaction import Abort, Notify, default_strategy, least_saving
from ..errors import InvalidInput
from ..events import Event, Kind, LaneTip, new_id, now
from ..hooks import Around, Hooks
from ..hooks.patience import must_be_seconds
from ..strategies import PruneToolResults
from ..triggers import always
from .commit import commit
from .opening import OpenSessions

if TYPE_CHECKING:
    from ..compaction import CompactionResult
    from ..hooks.questions import Listener
    from ..types import Strategy, Trigger


class Compacting(OpenSessions):
    """Compact, prune, undo; and wait while it is being done."""

    async def compact(
        self,
        session_id: str,
        trigger: Trigger | None = None,
        strategy: Strategy | None = None,
        on_conflict: Literal["skip", "rebase"] = "skip",
        *,
        lane: str | None = None,
        budget: int | None = None,
        target: int | None = None,
        instructions: str | None = None,
        summarizer: Any = None,
        min_saving: float | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        listen: Listener | None = None,
    ) -> CompactionResult:
        """Ask the trigger; if it fires, let the strategy plan, and commit the plan by compare-and-set.

        Without a trigger the budget decides, and without a budget it compacts unconditionally. If
        another writer moved the session first, the outcome is `conflict` and nothing is lost: `skip`
        minds every append, `rebase` only what is more than one. What is said while a model writes is not
        lost either: with `rebase` it stands behind the summary. An automatic one, with a trigger, first waits
        for one that is running here. `listen` is told of this one, beside the listeners of the service's hooks;
        where a hook itself compacts the session, hooks are not asked again.
        """
        if on_conflict not in ("skip", "rebase"):
            raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
        for name, limit in (("budget", budget), ("target", target)):
            if limit is not None:
                positive(name, limit)
        if target is None and budget is not None:
            target = max(1, budget // 2)
        live = await self._live(session_id, refresh=True)
        if self.preset is not None and strategy is None:
            window = CATALOG.window(live.record.model) if live.record.model else self.preset.window
            trigger, strategy = trigger or self.preset.trigger_in(budget or window), self.preset.strategy
            budget, target = budget or window, target or (budget or window) // 2
        automatic = trigger is not None and trigger is not always
        nested = self._underway.within((session_id, lane))
        hooks = Hooks(listen=self.hooks.listen) if nested else self.hooks
        around = Around(hooks, session_id, lane, "auto" if automatic else "manual", listen)
        asking = self._asking(summarizer, around.notify(notify), abort)
        chosen = strategy or default_strategy(target, asking.model is not None)
        if another := automatic and self.compacting(session_id, lane):
            with asking.abort.scope():
                await self._underway.over((session_id, lane))
        with self._underway.compaction((session_id, lane)), around:
            if another:
                await live.refresh()
            return await commit(
                live,
                trigger or (always if budget is None else None),
                chosen,
                asking,
                around,
                self._restarting,
                strict=on_conflict == "skip",
                automatic=automatic,
                lane=lane,
                budget=budget,
                target=target,
                instructions=instructions,
                min_saving=least_saving(chosen, min_saving) if automatic else min_saving or 0.0,
                clock=self.clock,
            )

    def compacting(self, session_id: str, lane: str | None = None) -> bool:
        """Is a compaction of it running in this service, right now (W13)?"""
        return (session_id, lane) in self._underway

    async def ready(
        self,
        session_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - how long a chat request waits is its own business
        lane: str | None = None,
    ) -> bool:
        """Wait while a compaction of it is running in this service; False if that takes over `timeout` seconds.

        One that fails, is aborted or dies keeps nobody waiting (W13). A hook of that compaction gets False at once.
        """
        if timeout is not None:
            must_be_seconds(timeout)
        await self.get(session_id)
        with anyio.move_on_after(timeout):
            return await self._underway.over((session_id, lane))
        return False

    async def prune(
        self, session_id: str, strategy: PruneToolResults | None = None, *, lane: str | None = None
    ) -> CompactionResult:
        """Clear old tool results in place; the log keeps them (P22)."""
        return await self.compact(session_id, always, strategy or PruneToolResults(), "rebase", lane=lane)

    async def undo(self, session_id: str, *, lane: str | None = None, to: str | None = None) -> str | None:
        """Step back over the last compaction, or to the checkpoint `to`; returns the one now in force."""
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        if view.checkpoint_id is None:
            raise InvalidInput(f"Session {session_id!r} has no compaction to undo.")
        earlier = view.checkpoint.previous if to is None else to
        start = await live.start_of(earlier)
        tip = live.tip(lane)
        back = LaneTip(tip.mark, earlier, start, tip.base, tip.base_epoch)
        await self._mark(live, Event(new_id(), Kind.UNDO, now(), {"to": earlier}, lane), back)
        return earlier
