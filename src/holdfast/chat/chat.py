"""`Chat`: prompts, queued input, compaction in the loop, and moving between sessions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import anyio

from ..agent import Agent
from ..agent.events import AgentEvent, How, Problem, Queued, RunFinished, SessionChanged, Tell, Unsent, told
from ..calls import Stepper
from ..compaction import Abort, CompactionResult
from ..errors import HoldfastError, InvalidInput
from ..events import SessionRecord
from ..hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped, CompactionStarted
from ..outcome import Outcome
from ..presets import Preset
from .compacted import Compacted, Interruption, compacted
from .intake import Intake
from .setting import Setting
from .state import Activity, State
from .worklist import Worklist

log = logging.getLogger("holdfast")


@dataclass(eq=False, repr=False)
class Chat(Setting):
    """One conversation at a time. Everything that happens is told to one listener, in order.

    Use it inside `running()`: prompts are answered there, one after the other. Whatever would change the session
    under a running agent is refused until it is idle.
    """

    _: KW_ONLY
    listener: Tell
    record: SessionRecord = field(init=False)
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._list = Worklist()
        self._working = False
        self._aborts: set[Abort] = set()
        self._intake = Intake()
        self._interruption: Interruption | None = None

    @asynccontextmanager
    async def running(self, session_id: str | None = None) -> AsyncIterator[Chat]:
        """Open a session, or begin one, and answer prompts while inside."""
        await (self.new() if session_id is None else self.switch(session_id, how="resumed"))
        async with anyio.create_task_group() as group:
            group.start_soon(self._list.work)
            self._working = True
            try:
                yield self
            finally:
                self._working = False
                group.cancel_scope.cancel()

    # -- talking ---------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Send a prompt: at once, to the agent that works (it hears it before its next step), or after a compaction."""
        if not self._intake.open:
            self.tell(Queued(self.record.id, text, self._intake.hold(text)))
        elif self.activity == "running":
            self.agent.steer(text)
        else:
            self._prompt(text)

    def go_on(self) -> None:
        """Let the agent take up what is unfinished."""
        self.must_be_idle()
        self._prompt(None)

    def abort(self) -> None:
        """Stop what is running: a compaction, the agent, or whatever else takes a model's time."""
        for abort in tuple(self._aborts):
            abort()
        if self.activity == "running":
            self.agent.abort()

    @contextmanager
    def stoppable(self) -> Iterator[Abort]:
        """For something that takes a model's time: while it lasts, `abort` stops it, too."""
        abort = Abort()
        self._aborts.add(abort)
        try:
            yield abort
        finally:
            self._aborts.discard(abort)

    def must_be_idle(self) -> None:
        """Refuse what would change the session under a running agent."""
        if not self._list.idle:
            raise InvalidInput("The agent is working: wait until it is done, or stop it first.")

    @property
    def activity(self) -> Activity:
        return self._list.activity

    async def wait_idle(self) -> None:
        """Until everything that was said is answered."""
        await self._list.wait_idle()

    async def compact(self, instructions: str | None = None) -> Compacted:
        """Compact now. A running agent is stopped first, and goes on afterwards if it was not done (P1, P14)."""
        if self._interruption is not None or self.activity == "compacting":
            raise InvalidInput("A compaction is running already: wait until it is done, or stop it.")
        self._intake.open, self._interruption = False, Interruption()
        if self.activity == "running":
            self.agent.abort()
        with self.stoppable() as abort:
            work = partial(self._compact, instructions, abort, self._interruption)
            return await self._list.result_of(work, "compacting", urgent=True)

    # -- moving between sessions -----------------------------------------------------------------------

    async def new(self, *, how: How = "new") -> SessionRecord:
        """Begin a new, empty session; the old one stays where it is."""
        return await self._moved(self._begin, how)

    async def switch(self, session_id: str, *, how: How = "switched") -> SessionRecord:
        """Go on in another session."""
        return await self._moved(partial(self.sessions.get, session_id), how)

    async def fork(self, at: str | None) -> SessionRecord:
        """A new session with everything up to and including an event, and go on there (P10)."""
        return await self._moved(partial(self.sessions.fork, self.record.id, at), "forked")

    async def _moved(self, find: Callable[[], Awaitable[SessionRecord]], how: How) -> SessionRecord:
        """As a job like a prompt: what is said after it is said in the other session."""
        self.must_be_idle()

        async def move() -> SessionRecord:
            record = await find()
            self.record, self.agent = record, self._agent(record, self.tell)
            self.tell(SessionChanged(record.id, how, record.parent))
            return record

        return await (self._list.result_of(move) if self._working else move())

    async def undo(self) -> str | None:
        """Step back over the last compaction."""
        self.must_be_idle()
        return await self._list.result_of(partial(self.sessions.undo, self.record.id))

    def use(self, *, model: Stepper | None = None, preset: Preset | None = None, auto: bool | None = None) -> None:
        """Change what the next step is done with."""
        if model is not None or preset is not None:
            self.must_be_idle()
        self.model, self.preset = model or self.model, preset or self.preset
        self.auto = self.auto if auto is None else auto
        if preset is not None:
            self.sessions.follow(preset)
        if model is not None or preset is not None:
            self.agent = self._agent(self.record, self.tell)
        self.agent.keeper.auto = self.auto

    async def state(self) -> State:
        context = await self.sessions.context(self.record.id)
        return State(
            session=self.record.id,
            parent=self.record.parent,
            model=self.model.name,
            preset=self.preset.name,
            activity=self.activity,
            auto=self.auto,
            tokens=context.tokens,
            window=self.agent.keeper.window.size,
            known=self.agent.size,
            waiting=len(self._intake),
            round=await self.sessions.round(self.record.id),
            folder=str(self.folder.root),
        )

    def tell(self, event: AgentEvent) -> None:
        """Pass an event on. Input is taken again before the person hears that a compaction is over (P14)."""
        interruption = self._interruption
        if isinstance(event, CompactionStarted):
            self._intake.open = False
        elif isinstance(event, CompactionCompleted | CompactionFailed | CompactionSkipped):
            self._take_again(steer=self.activity == "running" or (interruption is not None and interruption.goes_on))
        elif isinstance(event, RunFinished) and interruption is not None:
            interruption.run = event
            return
        told(self.listener, event)

    # -- for the above ---------------------------------------------------------------------------------

    def _prompt(self, text: str | None, *, urgent: bool = False) -> None:
        self._list.add(partial(self._answer, text), "running", urgent=urgent)

    async def _answer(self, prompt: str | None) -> None:
        try:
            finished = await self.agent.run(prompt)
        except Exception as problem:
            log.debug("a run broke", exc_info=True)
            why = str(problem) if isinstance(problem, HoldfastError) else f"{type(problem).__name__}: {problem}"
            finished = RunFinished(self.record.id, "failed", why)
            self.tell(Problem(why))
            self.tell(finished)
        if self._interruption is None:
            self._hand_out(finished)

    def _hand_out(self, finished: RunFinished) -> None:
        """What the agent did not hear is said next; or given back, where a person stopped it."""
        for text in self.agent.unheard():
            if finished.status == "aborted":
                self.tell(Unsent(self.record.id, text))
            else:
                self._prompt(text)

    async def _compact(self, instructions: str | None, abort: Abort, interruption: Interruption) -> Compacted:
        """In the order of P14; the agent has come to rest when this begins."""
        result: CompactionResult | None = None
        try:
            result = await self.agent.keeper.compact(instructions, abort)
            self.tell(await self.agent.gauge())
        finally:
            goes_on = interruption.goes_on and result is not None and result.outcome is not Outcome.ABORTED
            self._take_again(steer=goes_on)
            self._interruption = None
            if goes_on:
                self._prompt(None, urgent=True)
            elif interruption.run is not None:
                self.tell(interruption.run)
                self._hand_out(interruption.run)
        return compacted(result, continued=goes_on)

    def _take_again(self, *, steer: bool) -> None:
        """Send on what was typed meanwhile: to the agent that goes on, or as prompts of their own."""
        for text in self._intake.reopen():
            if steer:
                self.agent.steer(text)
            else:
                self._prompt(text)
