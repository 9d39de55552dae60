"""`Chat`: prompts, queued input, compaction in the loop, and moving between sessions."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..agent import SYSTEM, Agent, Keeper
from ..agent.events import AgentEvent, Problem, Queued, RunFinished, SessionChanged, Tell, Unsent, told
from ..agent.tools import Approve, Folder, Toolbox, command_tool, file_tools
from ..calls import Stepper
from ..compaction import Abort, CompactionResult
from ..errors import HoldfastError, InvalidInput
from ..events import SessionRecord
from ..hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped, CompactionStarted
from ..messages import tools_in
from ..presets import Preset
from ..recall import Recall
from ..service import SessionService
from ..settings import Settings
from ..types import Outcome
from .jobs import Jobs, Promise
from .state import Activity, State


class Compacted(msgspec.Struct, frozen=True):
    """What came of a compaction that a person asked for."""

    outcome: str
    why: str
    tokens_before: int
    tokens_after: int
    continued: bool = False
    """Was work interrupted for it, and did it go on?"""
    kept: int = 0
    archived: int = 0
    fallback: str = ""
    """What stood in for a model that did not answer; else empty."""


class Chat:
    """One conversation at a time. Everything that happens is told to one listener, in order.

    Use it inside `running()`: prompts are answered there, one after the other. Whatever would change the session
    under a running agent is refused until it is idle.
    """

    def __init__(
        self,
        sessions: SessionService,
        model: Stepper,
        *,
        folder: str | Path,
        preset: Preset,
        approve: Approve,
        tell: Tell,
        window: int | None = None,
        summarizer: Any = None,
        auto: bool = True,
        system: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.sessions = sessions
        self.model = model
        self.folder = Folder(folder)
        self.preset = preset
        self.window = window
        self.summarizer = summarizer
        self.auto = auto
        self.settings = settings
        """Where all this was settled, for who wants to know where a value came from."""
        self.record: SessionRecord
        self.agent: Agent
        self._approve = approve
        self._listener = tell
        self._system = system
        self._jobs = Jobs()
        self._taking = True
        """False while a compaction runs: what is typed then waits (P14)."""
        self._queued: deque[str] = deque()
        self._abort = Abort()
        self._activity: Activity = "idle"
        self._interrupting = False
        """Is the agent being stopped for a compaction? Then nobody is told that it stopped."""
        self._interrupted = False
        """Will it go on afterwards?"""
        self._last = RunFinished("", "done")

    @asynccontextmanager
    async def running(self, session_id: str | None = None) -> AsyncIterator[Chat]:
        """Open a session, or begin one, and answer prompts while inside."""
        await (self.new() if session_id is None else self.switch(session_id, how="resumed"))
        async with anyio.create_task_group() as group:
            group.start_soon(self._jobs.work)
            try:
                yield self
            finally:
                group.cancel_scope.cancel()

    # -- talking ---------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Send a prompt: at once, to the agent that works (it hears it before its next step), or after a compaction."""
        if not self._taking:
            self._queued.append(text)
            self.tell(Queued(self.record.id, text, len(self._queued)))
        elif self._activity == "running":
            self.agent.steer(text)
        else:
            self._jobs.add(partial(self._run, text))

    def go_on(self) -> None:
        """Let the agent take up what is unfinished."""
        self.must_be_idle()
        self._jobs.add(partial(self._run, None))

    def abort(self) -> None:
        """Stop what is running: a compaction, or the agent."""
        self._abort()
        if self._activity == "running":
            self.agent.abort()

    def stoppable(self) -> Abort:
        """For something that takes a model's time while the agent rests: `abort` stops it, too."""
        self._abort = Abort()
        return self._abort

    def must_be_idle(self) -> None:
        """Refuse what would change the session under a running agent."""
        if self._activity != "idle" or not self._jobs.idle:
            raise InvalidInput("The agent is working: wait until it is done, or stop it first.")

    @property
    def activity(self) -> Activity:
        return self._activity

    async def wait_idle(self) -> None:
        """Until everything that was said is answered."""
        await self._jobs.wait_idle()

    async def compact(self, instructions: str | None = None) -> Compacted:
        """Compact now. A running agent is stopped first, and goes on afterwards if it was not done (P1, P14)."""
        self._taking, self._abort = False, Abort()
        if self._activity == "running":
            self._interrupting = True
            self.agent.abort()
        outcome = Promise[Compacted]()
        self._jobs.add(lambda: self._busy("compacting", lambda: self._compact(instructions, outcome)), urgent=True)
        return await outcome.wait()

    # -- moving between sessions -----------------------------------------------------------------------

    async def new(self, *, how: Any = "new") -> SessionRecord:
        """Begin a new, empty session; the old one stays where it is."""
        self.must_be_idle()
        toolbox = self._toolbox("")
        record = await self.sessions.create(
            system=self._system_prompt(), tools=tools_in(self.model.format, toolbox.told), model=self.model.name
        )
        self._enter(record, SessionChanged(record.id, how))
        return record

    async def switch(self, session_id: str, *, how: Any = "switched") -> SessionRecord:
        """Go on in another session."""
        self.must_be_idle()
        record = await self.sessions.get(session_id)
        self._enter(record, SessionChanged(record.id, how, record.parent))
        return record

    async def fork(self, at: str | None) -> SessionRecord:
        """A new session with everything up to and including an event, and go on there (P10)."""
        self.must_be_idle()
        record = await self.sessions.fork(self.record.id, at)
        self._enter(record, SessionChanged(record.id, "forked", record.parent))
        return record

    async def undo(self) -> str | None:
        """Step back over the last compaction."""
        self.must_be_idle()
        return await self.sessions.undo(self.record.id)

    def use(self, *, model: Stepper | None = None, preset: Preset | None = None, auto: bool | None = None) -> None:
        """Change what the next step is done with."""
        if model is not None or preset is not None:
            self.must_be_idle()
        self.model, self.preset = model or self.model, preset or self.preset
        self.auto = self.auto if auto is None else auto
        if model is not None or preset is not None:
            self._enter(self.record, None)
        self.agent.keeper.auto = self.auto

    async def state(self) -> State:
        context = await self.sessions.context(self.record.id)
        compactions = await self.sessions.events(self.record.id, kind="compaction", lane="", last=1)
        return State(
            session=self.record.id,
            parent=self.record.parent,
            model=self.model.name,
            preset=self.preset.name,
            activity=self._activity,
            auto=self.auto,
            tokens=context.tokens,
            window=self.agent.keeper.window.size,
            known=self.agent.size,
            waiting=len(self._queued),
            round=compactions[-1].body["carry"].get("round", 0) if compactions else 0,
            folder=str(self.folder.root),
        )

    def tell(self, event: AgentEvent) -> None:
        """Pass an event on. Input is taken again before the person hears that a compaction is over (P14)."""
        if isinstance(event, CompactionStarted):
            self._taking = False
        elif isinstance(event, CompactionCompleted | CompactionFailed | CompactionSkipped):
            self._take_again(steer=self._activity == "running" or self._interrupted)
        elif isinstance(event, RunFinished) and self._interrupting:
            return
        told(self._listener, event)

    # -- for the above ---------------------------------------------------------------------------------

    async def _run(self, prompt: str | None) -> None:
        await self._busy("running", lambda: self._answer(prompt))

    async def _answer(self, prompt: str | None) -> None:
        try:
            self._last = await self.agent.run(prompt)
        except HoldfastError as problem:
            self.tell(Problem(str(problem)))
            self._last = RunFinished(self.record.id, "failed", str(problem))
            self.tell(self._last)
        if self._interrupting:
            return
        for text in self.agent.unheard():
            if self._last.status == "aborted":
                self.tell(Unsent(self.record.id, text))
            else:
                self._jobs.add(partial(self._run, text))

    async def _compact(self, instructions: str | None, outcome: Promise[Compacted]) -> None:
        """In the order of P14; the agent has come to rest when this begins."""
        self._interrupted = unfinished = self._interrupting and self._last.status == "aborted"
        self._interrupting = False
        stopped = False
        with outcome.kept():
            result = await self.agent.keeper.compact(instructions, self._abort)
            stopped = result.outcome is Outcome.ABORTED
            self.tell(await self.agent.gauge())
            outcome.keep(_compacted(result, unfinished))
        self._take_again(steer=unfinished)
        self._interrupted = False
        if unfinished and not stopped:
            await self._run(None)
        elif unfinished:
            self.tell(self._last)
            for text in self.agent.unheard():
                self.tell(Unsent(self.record.id, text))

    async def _busy(self, activity: Activity, work: Callable[[], Any]) -> None:
        before, self._activity = self._activity, activity
        try:
            await work()
        finally:
            self._activity = before

    def _take_again(self, *, steer: bool) -> None:
        """Send on what was typed meanwhile, in its order: to the agent that goes on, or as prompts of their own."""
        self._taking = True
        waiting, self._queued = list(self._queued), deque()
        for text in waiting:
            if steer:
                self.agent.steer(text)
            else:
                self._jobs.add(partial(self._run, text))

    def _enter(self, record: SessionRecord, change: SessionChanged | None) -> None:
        self.record = record
        keeper = Keeper(
            self.sessions,
            record.id,
            model=self.model.name,
            window=self.window,
            preset=self.preset,
            summarizer=self.summarizer or self.model,
            auto=self.auto,
        )
        self.agent = Agent(keeper, self.model, self._toolbox(record.id), tell=self.tell, system=self._system_prompt())
        if change is not None:
            self.tell(change)

    def _toolbox(self, session_id: str) -> Toolbox:
        tools = [*file_tools(self.folder), command_tool(self.folder)]
        return Toolbox(tools, self._approve, Recall(self.sessions, session_id))

    def _system_prompt(self) -> str:
        return self._system or f"{SYSTEM}\n\nThe working folder is {self.folder.root}."


def _compacted(result: CompactionResult, continued: bool) -> Compacted:
    return Compacted(
        outcome=result.outcome.value,
        why=result.why,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        continued=continued,
        kept=len(result.kept),
        archived=result.removed,
        fallback=result.fallback,
    )
