"""`SessionService`: sessions over a store, whose context always fits its model and whose log loses nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..compaction import Abort, Policy, PolicyLike, SummarizerRun, resolve
from ..context.events import Event, EventKind, SessionRecord, new_id, now
from ..errors import Conflict, InvalidInput
from ..hooks import Hooks
from ..messages import COMMON, Json, format_name, rules_for
from ..models import resolve_model
from ..stores import StoreLike
from ..strategies import PruneToolResults
from ..strategies.memory import read_memory
from ..summaries.memory import blend_is_due
from ..tokens.budget import require_positive
from ..tokens.estimators import measure_prompt, prompt_overhead
from ..tokens.window import WindowFacts
from ..triggers import always
from .breaker import open_breaker
from .commit import CompactionCall, Compactor
from .handoff import Handoff, handoff_session, title_session
from .history import fork_record
from .lease import LEASE_SECONDS
from .marks import pin_event, undo_compaction
from .message_events import MessageEvents, message_events, new_events
from .notes import append_memory
from .reader import Events, SessionReader
from .redaction import Redaction, redact_event, redact_text
from .restore import RestoreLimits, restore_after_results, restore_deferred, restore_event
from .transfer import import_session
from .turn import Turn

if TYPE_CHECKING:
    from ..compaction import CompactionResult, Notify
    from ..hooks.hooks import Listener
    from ..models.calls import Failure, Limits, Model
    from ..tokens.window import Window
    from ..types import (
        Clock,
        EstimatorLike,
        MessageLike,
        StrategyLike,
        SummarizerLike,
        SystemLike,
        ToolsLike,
        Trigger,
        UsageLike,
    )
    from .live import LiveSession

_SAME_PROMPT_UNITS, _SAME_PROMPT_SHARE = 100, 0.02
"""Differences in a prompt that do not matter for its size: a date, a counter."""


class SessionService(SessionReader):
    """Create, append, context, compact, fork, undo: the same on every store.

        async with SessionService("agent.db") as sessions:
            session = await sessions.create(format="anthropic")

    Args:
        store: A store, or its address: `"agent.db"`, `"jsonl:folder"`, `"postgresql://…"`, `"memory:"`.
        estimator: Counts tokens, in place of the tokenizer and of the policy's.
        preset: The policy (a name, or a `Policy`) of the sessions that this service creates, stored with each, so that
            other processes need no option of their own: it decides when `compact` compacts, how far and by what, if it
            is given no strategy. A service that is given another one uses that for all sessions but those with a
            policy set by `set_policy`.
        summarizer: Writes summaries for calls that name none.
        limits: Time-outs and attempts of model calls, in place of those of each policy.
        clock: Returns the time, in seconds since 1970.
        hooks: Run before and after every compaction of this service.
        lease: Seconds that other processes wait for a worker that died.
        window: The model's context window in tokens, of sessions whose model the catalog does not know.
    """

    def __init__(
        self,
        store: StoreLike,
        *,
        estimator: EstimatorLike | None = None,
        preset: PolicyLike | None = None,
        summarizer: SummarizerLike | None = None,
        limits: Limits | None = None,
        clock: Clock = time.time,
        hooks: Hooks | None = None,
        lease: float = LEASE_SECONDS,
        window: int | None = None,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Hooks):
            raise InvalidInput(f"hooks= takes Hooks(before=…, after=…, …), not {type(hooks).__name__}.")
        super().__init__(store, estimator=estimator, preset=preset, lease=lease, window=window)
        self.model: Model | None = resolve_model(summarizer)
        self.clock = clock
        self.hooks = hooks or Hooks()
        self.limits = limits
        """Limits of model calls, in place of those of each policy."""
        self._compactor = Compactor(self._leases, self._running, self.hooks, clock, self._window)

    def use_preset(self, preset: PolicyLike) -> None:
        """Switches to another preset and its estimator; open sessions are measured again when next used."""
        self._use(preset)
        self._open.clear()

    async def set_policy(self, session_id: str, preset: PolicyLike) -> Policy:
        """Sets the policy of a session from now on, for every process.

        An event in the log says so; nothing is written if the session has this policy already.
        """
        live = await self._live(session_id, refresh=True)
        await live.view()
        policy = resolve(preset)
        if policy.window is None and live.policy is not None:
            policy = policy.changed(window=live.policy.window)
        self._know(policy)
        if live.policy is None or live.policy.stored() != policy.stored():
            event = Event(new_id(), EventKind.POLICY, now(), {"policy": policy.stored()})
            await live.append([event])
        return policy

    async def set_window(self, session_id: str, window: int | None = None, *, model: str | None = None) -> None:
        """Sets the model that a session uses from now on, and its window if the caller knows it, for every process.

        What was learned about the window of another model, and the size that it reported, no longer counts.
        """
        if window is not None:
            require_positive("window", window)
        live = await self._live(session_id, refresh=True)
        await live.view()
        facts = live.window_facts.of_model(model)
        if window is not None and window != (
            self._automatic_policy(live).window if facts.given is None else facts.given
        ):
            facts = msgspec.structs.replace(facts, given=window)
        await self._store_facts(live, facts)

    async def set_prompt(
        self, session_id: str, *, system: SystemLike | None = None, tools: ToolsLike | None = None
    ) -> None:
        """Counts this system prompt and these tools from now on: a caller sends them in place of the session's own.

        Sizes that were reported with another prompt are a ratio only. Nothing is written while they take about as much
        room: a prompt may contain the time.
        """
        live = await self._live(session_id, refresh=True)
        sums = (await live.view()).token_sums
        units = measure_prompt(sums.estimator, prompt_overhead(system, tools))
        if abs(units - sums.overhead) > max(_SAME_PROMPT_UNITS, _SAME_PROMPT_SHARE * sums.overhead):
            body = {"prompt": units, "counter": sums.estimator.name}
            await live.append([Event(new_id(), EventKind.POLICY, now(), body)])

    async def note_overflow(self, session_id: str, failure: Failure, sent: int) -> tuple[Window, Window]:
        """Stores what an overflow error says about the window; returns the window before and after."""
        live = await self._live(session_id, refresh=True)
        await live.view()
        facts, before = live.window_facts, self._known_window(live)
        if failure.window and facts.model:
            self.stated.note(facts.model, learned=failure.window)
        await self._store_facts(live, facts.after_overflow(before, failure.window, sent, failure.why))
        return before, self._known_window(live)

    async def _store_facts(self, live: LiveSession, facts: WindowFacts) -> None:
        if facts != live.window_facts:
            await live.append([Event(new_id(), EventKind.POLICY, now(), {"window": msgspec.to_builtins(facts)})])

    # -- sessions -------------------------------------------------------------------------------------

    async def create(
        self,
        *,
        id: str | None = None,
        system: SystemLike | None = None,
        tools: ToolsLike | None = None,
        format: str | None = None,
        model: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        alternating: bool = False,
    ) -> SessionRecord:
        """Creates an empty session.

        Args:
            id: The id, random by default.
            system: The system prompt: counts towards the size, and is in `context().request`.
            tools: Tool definitions as the provider takes them, likewise.
            format: The wire format of the messages; without one, `context` needs it.
            model: The model of the conversation: its window and prices are those of the catalog.
            owner: Who the session belongs to: `sessions(owner=…)` and recall find only theirs.
            metadata: Plain data of your own.
            alternating: For models whose chat template refuses two messages of one role in a row.
        """
        rules_for(format or COMMON, alternating=alternating)
        record = SessionRecord(
            id=new_id() if id is None else id,
            created=now(),
            owner=owner,
            system=system,
            tools=tools,
            format=None if format is None else format_name(format),
            model=model,
            metadata=dict(metadata or {}),
            policy=self._stored_policy(),
            alternating=alternating,
        )
        self._require_open()
        await self.store.create(record)
        self._open.pop(record.id, None)
        return record

    async def delete(self, session_id: str) -> None:
        """Deletes a session permanently; its forks keep the events they share with it."""
        self._require_open()
        self._open.pop(session_id, None)
        await self.store.delete(session_id)

    # -- writing --------------------------------------------------------------------------------------

    async def append(
        self,
        session_id: str,
        message_or_messages: MessageLike | Iterable[MessageLike],
        lane: str | None = None,
        id: str | Sequence[str] | None = None,
        after: int | None = None,
        *,
        usage: UsageLike | None = None,
        model: str | None = None,
        synthetic: bool = False,
        aside: bool = False,
        made_on: str | None = None,
        wait: bool | float = False,
    ) -> Events:
        """Appends one message or several, atomically; returns the events as stored.

        Args:
            session_id: The session.
            message_or_messages: A message, or a list of them: dicts in the session's format, or objects of an SDK.
            lane: A sub-agent's lane inside the session.
            id: The event's id, or one for each message: a known one is a retry and changes nothing.
            after: The version that the message was made for: StaleVersion is raised if the session has a newer one.
            usage: What the provider reported with a reply, in its own form.
            model: The model that replied, for its price.
            synthetic: Marks what no person and no model wrote, such as an earlier summary.
            aside: Marks what a program says in the user's voice ("continue"): it is no turn.
            made_on: The `checkpoint` of the context that the reply was requested with: after a compaction since then,
                its usage is not the size of the context.
            wait: First waits for a running compaction, for a minute or so many seconds, and appends in any case.
        """
        if lane is not None and not isinstance(lane, str):
            raise InvalidInput("append takes one message or a list of them: pass several as [one, another].")
        if wait is not False:
            await self._wait_ready(session_id, lane, wait)
        live = await self._live(session_id)
        view = await live.view(lane)
        if (
            made_on is None and after == live.version
        ):  # nothing was committed since the request, or StaleVersion is raised
            made_on = view.checkpoint_id or ""
        ready = message_events(
            message_or_messages,
            view,
            lane=lane,
            ids=id,
            usage=usage,
            model=model,
            synthetic=synthetic,
            format=live.record.format,
            aside=aside,
            made_on=made_on,
        )
        return await self._append(live, ready, lane, after=after, named=id is not None)

    async def _append(
        self, live: LiveSession, ready: MessageEvents, lane: str | None, *, after: int | None, named: bool = True
    ) -> Events:
        """Appends message events, and the archived messages that waited for their results; returns them as stored.

        `named`: the caller chose their ids, so this may be a retry.
        """
        events = await new_events(live, ready) if named else ready.events
        done = await live.append(events, after=after, media=ready.media)
        if live.deferred_restores:
            await restore_deferred(live, lane)
        return await live.with_media(done.events)

    @asynccontextmanager
    async def announce_turn(self, session_id: str) -> AsyncIterator[None]:
        """Lets other processes know that this one is in a turn; unlike `turn`, it does not wait for theirs."""
        async with self._leases.lease(session_id, "turn", required=False) as lease:
            await lease.acquire()
            yield

    def turn(self, session_id: str, *, id: str) -> Turn:
        """Returns one turn of a conversation, to be used in an `async with` block: see `Turn`.

        `id` names the turn, as the request of a client does: the same id again continues it, or returns its reply.
        """
        return Turn(self, session_id, id)

    async def restore(
        self,
        session_id: str,
        event_id: str,
        lane: str | None = None,
        *,
        id: str | None = None,
        max_tokens: int | None = None,
    ) -> Event:
        """Appends a quoted copy of an archived message to the context, with its source.

        It counts as no turn, and nothing before it changes. With an `id` it is idempotent. Raises InvalidInput if it
        takes more than `max_tokens` or would exceed a known window.
        """
        live = await self._live(session_id, refresh=True)
        await live.view()
        limits = RestoreLimits(max_tokens, self._limit(live))
        return await restore_event(live, event_id, lane, id, limits)

    async def restore_after_results(
        self, session_id: str, event_id: str, lane: str | None = None, *, max_tokens: int | None = None
    ) -> Event | None:
        """Restores like `restore`; while tool calls are open, after their last result, and returns None until then."""
        live = await self._live(session_id, refresh=True)
        await live.view()
        limits = RestoreLimits(max_tokens, self._limit(live))
        return await restore_after_results(live, event_id, lane, limits)

    async def pin(
        self, session_id: str, event_id: str, *, pinned: bool = True, id: str | None = None, after: int | None = None
    ) -> None:
        """Keeps an event visible through every compaction, or unpins it.

        With an `id` it is idempotent. `after` is the version that the caller saw: Conflict is raised if another writer
        has compacted, pinned, undone or redacted since. Without it, the pin holds whatever was written meanwhile.
        """
        live = await self._live(session_id, refresh=after is not None)
        await pin_event(live, event_id, pinned=pinned, id=id, after=after)

    # -- compaction -----------------------------------------------------------------------------------

    async def compact(
        self,
        session_id: str,
        trigger: Trigger | None = None,
        strategy: StrategyLike | None = None,
        on_conflict: Literal["skip", "rebase"] = "skip",
        *,
        preset: PolicyLike | None = None,
        lane: str | None = None,
        budget: int | None = None,
        target: int | None = None,
        instructions: str | None = None,
        summarizer: SummarizerLike | None = None,
        min_saving: float | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        hooks: Hooks | None = None,
        listen: Listener | None = None,
        urgent: bool = False,
        record_failure: bool = True,
    ) -> CompactionResult:
        """Asks the trigger; if it fires, runs the strategy and commits its plan by compare-and-set.

        Without a strategy, the session's policy or the given `preset` decides what the keywords leave open. Without
        either, the budget is the trigger; without a budget it compacts unconditionally. Without a budget or target, a
        trigger that counts tokens sets the target: half of its threshold. Messages appended meanwhile follow the
        summary. An automatic compaction (one with a trigger) first waits for a running one, here or in another process.

        Args:
            session_id: The session.
            trigger: Decides whether to compact: a function from a `Request` to a bool.
            strategy: What to keep: a strategy, a function, or a name as on the command line.
            on_conflict: If another writer is faster, the outcome is `conflict` and nothing is lost: `skip` aborts on
                any concurrent append, `rebase` only on a compaction, pin or undo.
            preset: A policy in place of the session's, by name or as a `Policy`.
            lane: A sub-agent's lane inside the session.
            budget: Tokens that must not be exceeded.
            target: Tokens to compact down to.
            instructions: What the summary should keep.
            summarizer: A model that writes the summary, in place of the service's.
            min_saving: The smallest saving worth a compaction, as a fraction.
            notify: Called with each event of the model's calls.
            abort: Stops the compaction from any thread.
            hooks: Run after those of the service; not for a compaction made by a hook.
            listen: Called with this compaction's events.
            urgent: The model has refused the context as it is: waits for nobody, and ignores the circuit breaker.
            record_failure: False is for a caller that retries a failure itself.
        """
        if on_conflict not in ("skip", "rebase"):
            raise InvalidInput(f"on_conflict is 'skip' or 'rebase', not {on_conflict!r}.")
        live = await self._live(session_id, refresh=True)
        await live.view(lane)
        policy = resolve(
            live.policy if preset is None and strategy is None else preset,
            budget=budget,
            target=target,
            trigger=trigger,
            strategy=strategy,
            summarizer=self._summarizer(summarizer),
            instructions=instructions,
            min_saving=min_saving,
            limits=self.limits if preset is None else None,
        )
        if trigger is None and budget is None and not policy.name:
            policy = policy.changed(trigger=always)
        automatic = (trigger is not None or bool(policy.name)) and policy.trigger is not always
        if min_saving is None and not automatic:
            policy = policy.changed(min_saving=0.0)
        call = CompactionCall(
            lane=lane,
            strict=on_conflict == "skip",
            automatic=automatic,
            urgent=urgent,
            record_failure=record_failure,
            notify=notify,
            abort=abort or Abort(),
            hooks=hooks,
            listen=listen,
        )
        return await self._compactor.compact(live, policy, call)

    async def due(self, session_id: str, trigger: Trigger | None = None, *, lane: str | None = None) -> bool:
        """Whether an automatic compaction would run now, by this trigger or the session's policy; writes nothing."""
        live = await self._live(session_id, refresh=True)
        view = await live.view(lane)
        policy = self._automatic_policy(live).changed(trigger=trigger)
        request = self._request(live, view, policy)
        return not policy.why_not_due(request) and open_breaker(request, policy.trigger, self.clock()) is None

    async def prune(
        self, session_id: str, strategy: PruneToolResults | None = None, *, lane: str | None = None
    ) -> CompactionResult:
        """Clears old tool results in place; the log keeps them."""
        return await self.compact(session_id, always, strategy or PruneToolResults(), "rebase", lane=lane)

    async def undo(
        self, session_id: str, *, lane: str | None = None, to: str | None = None, after: int | None = None
    ) -> str | None:
        """Undoes the last compaction, or goes back to the checkpoint `to`; returns the checkpoint now in force.

        `after` is the version that the caller saw, by default the one that this service saw last. Conflict is raised
        if another writer has compacted, pinned, undone or redacted since: the undo would take that away.
        """
        return await undo_compaction(await self._live(session_id, refresh=after is not None), lane, to, after)

    # -- from one session to another, and memory --------------------------------------------------------

    async def fork(self, session_id: str, at: str | None = None, *, id: str | None = None) -> SessionRecord:
        """Creates a session with the events up to and including `at`; this one is untouched.

        Its context is the one this session had right after `at`, so a fork from before a compaction has the
        uncompacted context again.
        """
        live = await self._live(session_id, refresh=True)
        id = new_id() if id is None else id
        while True:
            mark, record = live.tip(None).mark, await fork_record(live, at, id, now())
            try:
                await self.store.create(record, mark=mark)
            except Conflict:
                await live.refresh()
            else:
                return record

    async def handoff(
        self,
        session_id: str,
        goal: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
        max_tokens: int = 4_000,
    ) -> Handoff:
        """Returns the first message for a new session with this goal: what this session knows that matters for it.

        Nothing is written: read it, change it, then create a session and append it. Without a model it is made from
        the ledger. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        run = SummarizerRun(self._summarizer(summarizer), self.limits, notify, abort)
        return await handoff_session(live, goal, run, lane=lane, max_tokens=max_tokens)

    async def title(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> str:
        """Returns at most two sentences on what the session is about: a model's, or the start of the task.

        It is not stored. An abort raises `Aborted`.
        """
        live = await self._live(session_id, refresh=True)
        return await title_session(live, SummarizerRun(self._summarizer(summarizer), self.limits, notify, abort), lane)

    async def remember(self, session_id: str, text: str, *, lane: str | None = None, id: str | None = None) -> Event:
        """Stores a note for the life of the session; it is shown at the end of the context.

        From 15 notes on, the oldest 10 are blended into a summary, if the service has a model. With an `id` it is
        idempotent.
        """
        live = await self._live(session_id, refresh=True)
        event = await append_memory(live, text, lane, id)
        if self.model is not None and blend_is_due(read_memory(await live.view(lane))):
            await self._compactor.blend_memory(
                live, self._memory_policy(None), CompactionCall(lane=lane, automatic=True, record_failure=False)
            )
        return event

    async def blend_memory(
        self,
        session_id: str,
        *,
        lane: str | None = None,
        summarizer: SummarizerLike | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> CompactionResult:
        """Blends the oldest notes into the memory's summary, if there are enough; without a model they stay."""
        live = await self._live(session_id, refresh=True)
        call = CompactionCall(lane=lane, record_failure=False, notify=notify, abort=abort or Abort())
        return await self._compactor.blend_memory(live, self._memory_policy(summarizer), call)

    # -- the owner's rights ----------------------------------------------------------------------------

    async def redact(self, session_id: str, event_id: str) -> Redaction:
        """Removes the content of one message for privacy; its id stays as a tombstone.

        It is also removed from what was derived from it: copies, notes, summaries, the search index, and forks. The
        bytes are erased from the store's files. The result says how many events had it, and where it is `left`. May be
        repeated, after a cancellation too.
        """
        return await redact_event(await self._live(session_id, refresh=True), event_id)

    async def redact_text(self, session_id: str, text: str) -> Redaction:
        """Removes a text, such as a password, wherever the session has it, its forks, their copies and handoffs.

        It is found as it is, escaped in JSON, in a URL or in base64. System prompt, tools and metadata are included.
        Like `redact`, it erases, says where the text is `left`, and may be repeated.
        """
        return await redact_text(await self._live(session_id, refresh=True), text)

    async def import_(self, records: Sequence[Mapping[str, Any]], *, id: str | None = None) -> SessionRecord:
        """Creates a session from what `export` returned."""
        self._require_open()
        imported = await import_session(self.store, records, id)
        self._open.pop(imported.id, None)
        return imported

    # -- for the other parts of this package ------------------------------------------------------------

    def _stored_policy(self) -> Json | None:
        if self.preset is None and self.window is None:
            return None
        return (self.preset or resolve(window=self.window)).stored()

    def _automatic_policy(self, live: LiveSession) -> Policy:
        return super()._automatic_policy(live).changed(limits=self.limits)

    def _memory_policy(self, summarizer: SummarizerLike | None) -> Policy:
        return resolve(summarizer=self._summarizer(summarizer), limits=self.limits)

    def _summarizer(self, given: SummarizerLike | None) -> Model | None:
        """Returns the model of one call: the given one, else the service's own."""
        return self.model if given is None else resolve_model(given)
