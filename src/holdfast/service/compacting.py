"""Compacting sessions, and stepping back over a compaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..budget import positive
from ..compaction import Abort, Notify, default_strategy, idle, least_saving
from ..errors import InvalidInput
from ..events import Event, Kind, LaneTip, new_id, now
from ..hooks import Around, Hooks
from ..hooks.patience import must_be_seconds
from ..strategies import PruneToolResults
from ..triggers import always
from ..view import Request
from . import breaker
from .commit import commit
from .flags import Busy
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
        tries_again: bool = False,
        urgent: bool = False,
    ) -> CompactionResult:
        """Ask the trigger; if it fires, let the strategy plan, and commit the plan by compare-and-set.

        Without a trigger the budget decides, and without a budget it compacts unconditionally. If
        another writer moved the session first, the outcome is `conflict` and nothing is lost: `skip`
        minds every append, `rebase` only what is more than one. What is said while a model writes is not
        lost either: with `rebase` it stands behind the summary. An automatic one, with a trigger, first waits
        for one that is running, here or in another process. `listen` is told of this one, beside the listeners
        of the service's hooks; where a hook itself compacts the session, hooks are not asked again.
        `tries_again` is for a caller that will, if it fails: automatic ones need not wait for that (W12). One that
        is `urgent` waits for no breaker, though no person asked for it: the model has refused what there is.
        """
        if on_conflict not in ("skip", "rebase"):
            raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
        for name, limit in (("budget", budget), ("target", target)):
            if limit is not None:
                positive(name, limit)
        live = await self._live(session_id, refresh=True)
        if self.preset is not None and strategy is None:
            budget = budget or self.window_of(live.record) or self.preset.window
            trigger, strategy = trigger or self.preset.trigger_in(budget), self.preset.strategy
            target = target or self.preset.target_in(budget)
        if target is None and budget is not None:
            target = max(1, budget // 2)
        automatic = trigger is not None and trigger is not always
        nested = self._underway.within((session_id, lane))
        hooks = Hooks(listen=self.hooks.listen) if nested else self.hooks
        around = Around(hooks, session_id, lane, "auto" if automatic else "manual", listen)
        asking = self._asking(summarizer, around.notify(notify), abort)
        chosen = strategy or default_strategy(target, target, asking.model is not None)
        work = partial(
            commit,
            live,
            trigger or (always if budget is None else None),
            chosen,
            asking,
            around,
            self._restarting,
            strict=on_conflict == "skip",
            automatic=automatic and not urgent,
            lane=lane,
            budget=budget,
            target=target,
            instructions=instructions,
            min_saving=least_saving(chosen, min_saving) if automatic else min_saving or 0.0,
            clock=self.clock,
            noted=not tries_again,
        )
        with around:
            while True:
                if automatic and self.compacting(session_id, lane):
                    with asking.abort.scope():
                        await self._underway.over((session_id, lane))
                    await live.refresh()
                flagged = lane is None and not nested and not asking.abort.aborted
                try:
                    with self._underway.compaction((session_id, lane)):
                        async with self._flags.flag(session_id, insists=automatic, wanted=flagged) as flag:
                            return await work(flag=flag)
                except Busy:
                    with asking.abort.scope():
                        await self._flags.down(session_id)
                    await live.refresh()

    async def due(self, session_id: str, trigger: Trigger | None = None, *, lane: str | None = None) -> bool:
        """Would an automatic compaction be tried now? By this trigger, else by the preset's; nothing is written (W2).

        A trigger may ask for `request.budget`: the tokens that fit, as far as that is known.
        """
        if trigger is None and self.preset is None:
            raise InvalidInput("Whether it is due is for a trigger to say: name one, or make the service with preset=.")
        live = await self._live(session_id, refresh=True)
        view, window = await live.view(lane), self.window_of(live.record)
        request = Request(view, budget=window, session_id=session_id)
        if trigger is None and self.preset is not None:
            trigger = self.preset.trigger_in(window or self.preset.window)
        return idle(request, trigger) is None and breaker.waits(view, request.tokens, self.clock()) is None

    def compacting(self, session_id: str, lane: str | None = None) -> bool:
        """Is a compaction of it running in this service, right now (W13)?"""
        return (session_id, lane) in self._underway

    async def ready(
        self,
        session_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - how long a chat request waits is its own business
        lane: str | None = None,
    ) -> bool:
        """Wait while it is being compacted; False if that takes over `timeout` seconds.

        Here or in another process: the store has a flag for that, if it is one with flags. A lane's compactions
        are waited for in their own process. One that fails or is aborted keeps nobody waiting, and the flag of one
        that died falls when its lease ends (W13). A hook of that compaction gets False at once.
        """
        if timeout is not None:
            must_be_seconds(timeout)
        await self.get(session_id)
        with anyio.move_on_after(timeout):
            if not await self._underway.over((session_id, lane)):
                return False
            if lane is None:
                await self._flags.down(session_id)
            return True
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
