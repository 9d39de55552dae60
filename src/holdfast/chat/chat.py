"""`Chat`: prompts, queued input, compaction in the loop, and switching between sessions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import anyio

from ..agent import Agent
from ..agent.events import (
    AgentEvent,
    ErrorEvent,
    EventListener,
    Queued,
    RunFinished,
    RunStatus,
    SessionChanged,
    SessionOrigin,
    ToolOutput,
    Unsent,
)
from ..agent.tools.command import MAX_COMMAND_SECONDS, RunCommand, command_tool
from ..agent.tools.mcp_client import McpServers
from ..compaction import Abort, CompactionResult, Policy
from ..context.events import SessionRecord
from ..errors import InvalidInput, Outcome, plain_reason
from ..hooks.emitter import emit
from ..hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped, CompactionStarted
from ..messages import Message, Text, decode_all, is_framed, replace_lone_surrogates
from ..models.calls import ChatModel
from ..sessions.continuation import is_unfinished
from ..sessions.session_ids import find_session
from ..tokens.catalog import takes_images
from .config import ChatConfig
from .cost import CostMeter, CostReport
from .state import Activity, ChatCompactionResult, ChatState, Interruption, Restraint, chat_compaction_result
from .work_queue import InputBuffer, PendingResult, WorkQueue

log = logging.getLogger("holdfast")
SHELL_HEADING = "(I ran this command in the working folder. Its output follows.)"
"""Begins the message of a command that the user ran with `!`."""
SHELL_CALL = "!"
"""Stands for the id of a call in the events of such a command."""


@dataclass(eq=False, repr=False)
class Chat(ChatConfig):
    """One conversation at a time; emits every event to one listener, in order.

    Inside `running()` a queue answers prompts one after the other. Methods that would change the session of a running
    agent raise `InvalidInput` until the chat is idle.
    """

    _: KW_ONLY
    listener: EventListener
    record: SessionRecord = field(init=False)
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mcp = McpServers(
            self.mcp_configs,
            self.folder.root,
            self._agree_to_server,
            on_problem=lambda text: self.emit(ErrorEvent(text)),
            takes_images=lambda: takes_images(self.model.name),
        )
        self._meter = CostMeter()
        self._queue = WorkQueue()
        self._worker_running = False
        self._aborts: set[Abort] = set()
        self._input_buffer = InputBuffer()
        self._interruption: Interruption | None = None
        self._created: set[str] = set()
        self._restraints: dict[str, Restraint] = {}
        self._last_status: RunStatus | None = None
        """How the last run in this session ended."""

    @asynccontextmanager
    async def running(self, session_id: str | None = None) -> AsyncIterator[Chat]:
        """Opens a session, or creates one, and answers prompts until the context exits."""
        await (self.new() if session_id is None else self.switch(session_id, how="resumed"))
        async with anyio.create_task_group() as group:
            group.start_soon(self._queue.run)
            group.start_soon(self.mcp.run)
            self._worker_running = True
            try:
                yield self
            finally:
                self._worker_running = False
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._delete_if_empty(self.record)

    # -- prompts -----------------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Queues a prompt; steers a running agent before its next step; during a compaction, buffers the text."""
        if not self._input_buffer.is_open:
            self.emit(Queued(self.record.id, text, self._input_buffer.push(text)))
        elif self.activity == "running":
            self.agent.steer(text)
        else:
            self._queue_prompt(text)

    async def run_shell(self, command: str) -> str:
        """Runs a command that the user typed, and adds it with its output to the conversation; returns the output.

        A running agent gets it when its run has ended. An aborted command adds nothing.
        """
        tool = command_tool(self.folder)
        with self.abortable() as abort, abort.scope():
            answer = await tool.run(RunCommand(command, MAX_COMMAND_SECONDS), self._emit_shell_output)
            output = answer if isinstance(answer, str) else answer.text
        if abort.aborted:
            raise InvalidInput("Stopped: the command was not added to the conversation.")
        message = Message("user", (Text(replace_lone_surrogates(f"{SHELL_HEADING}\n\n$ {command}\n\n{output}")),))
        append = partial(self.sessions.append, self.record.id, message, aside=True)
        if self._queue.idle:
            await self._queue.submit(append)
            self.emit(await self.agent.window_usage())
        else:
            self._queue.add(PendingResult(append))
        return output

    def _emit_shell_output(self, text: str) -> None:
        self.emit(ToolOutput(self.record.id, SHELL_CALL, replace_lone_surrogates(text)))

    async def is_unfinished(self) -> bool:
        """True if the last run ended early, or the last message is unanswered."""
        if self._last_status not in (None, "done"):
            return True
        context = await self.sessions.context(self.record.id)
        messages, _ = decode_all(context.messages, context.format)
        last = next((message for message in reversed(messages) if not is_framed(message)), None)
        return last is not None and is_unfinished(last)

    def continue_run(self) -> None:
        """Lets the agent continue unfinished work without a new prompt."""
        self.require_idle()
        self._queue_prompt(None)

    def abort(self) -> None:
        """Aborts the running compaction, agent run and other model calls made inside `abortable()`."""
        for abort in tuple(self._aborts):
            abort()
        if self.activity == "running":
            self.agent.abort()

    @contextmanager
    def abortable(self) -> Iterator[Abort]:
        """Registers an `Abort` that `abort()` triggers while the context is open."""
        abort = Abort()
        self._aborts.add(abort)
        try:
            yield abort
        finally:
            self._aborts.discard(abort)

    def require_idle(self) -> None:
        """Raises `InvalidInput` while jobs are queued or running."""
        if not self._queue.idle:
            raise InvalidInput("The agent is working: wait until it is done, or stop it first.")

    @property
    def activity(self) -> Activity:
        return self._queue.activity

    async def wait_idle(self) -> None:
        """Waits until every queued job is done."""
        await self._queue.wait_idle()

    async def compact(self, instructions: str | None = None, *, without_model: bool = False) -> ChatCompactionResult:
        """Compacts now. A running agent is aborted first and continues afterwards if it had not finished.

        `without_model` uses the ledger instead of the preset's strategy.
        """
        if without_model and instructions:
            raise InvalidInput("Instructions are for a model's summary: leave them out, or compact with the model.")
        if self._interruption is not None or self.activity == "compacting":
            raise InvalidInput("A compaction is already running: wait until it is done, or stop it.")
        self._input_buffer.is_open, self._interruption = False, Interruption()
        if self.activity == "running":
            self.agent.abort()
        with self.abortable() as abort:
            work = partial(self._compact, instructions, abort, self._interruption, without_model=without_model)
            return await self._queue.submit(work, "compacting", urgent=True)

    # -- sessions ----------------------------------------------------------------------------------

    async def new(self, *, how: SessionOrigin = "new") -> SessionRecord:
        """Creates an empty session and switches to it; the old one is kept unless it is empty."""
        record = await self._change_session(self._create_session, how)
        self._created.add(record.id)
        return record

    async def switch(self, session_id: str, *, how: SessionOrigin = "switched") -> SessionRecord:
        """Switches to another session, given by its id or a part of it."""
        return await self._change_session(partial(find_session, self.sessions, session_id), how)

    async def fork(self, at: str | None) -> SessionRecord:
        """Forks the session after an event (None: the newest) and switches to the fork."""
        return await self._change_session(partial(self.sessions.fork, self.record.id, at), "forked")

    async def _change_session(self, find: Callable[[], Awaitable[SessionRecord]], how: SessionOrigin) -> SessionRecord:
        """Runs as a queued job, so prompts sent after it go to the new session."""
        self.require_idle()

        async def move() -> SessionRecord:
            record, left = await find(), getattr(self, "record", None)
            self.record, self.agent = record, self._build_agent(record, self.emit)
            self._restrain()
            self._last_status = None
            if left is not None and left.id != record.id:
                await self._delete_if_empty(left)
            self.emit(SessionChanged(record.id, how, record.parent))
            return record

        return await (self._queue.submit(move) if self._worker_running else move())

    async def is_kept(self, record: SessionRecord) -> bool:
        """False for a session that this chat created and in which nothing was said: it is deleted."""
        return record.id not in self._created or (await self.sessions.get(record.id)).version > 0

    async def _delete_if_empty(self, record: SessionRecord) -> None:
        if not await self.is_kept(record):
            await self.sessions.delete(record.id)

    async def undo(self) -> str | None:
        """Undoes the last compaction; returns the checkpoint now in force, if any."""
        self.require_idle()
        return await self._queue.submit(partial(self.sessions.undo, self.record.id))

    def configure(
        self, *, model: ChatModel | None = None, preset: Policy | None = None, auto: bool | None = None
    ) -> None:
        """Changes model, preset or automatic compaction from the next step on."""
        if model is not None or preset is not None:
            self.require_idle()
        self.model = model or self.model
        self.auto = self.auto if auto is None else auto
        if preset is not None:
            self._use_preset(preset)
        if model is not None or preset is not None:
            self.agent = self._build_agent(self.record, self.emit)
        if auto is not None:
            self._restraints.pop(self.record.id, None)
        self._restrain()

    def restrain(self, restraint: Restraint) -> None:
        """Turns automatic compaction off in this session, or defers it, while this program runs."""
        self._restraints[self.record.id] = restraint
        self._restrain()

    def _restrain(self) -> None:
        restraint = self._restraints.get(self.record.id)
        self.agent.keeper.auto = self.auto and restraint != "off"
        self.agent.keeper.until_full = restraint == "until full"

    async def state(self) -> ChatState:
        size = await self.agent.keeper.size()
        return ChatState(
            session=self.record.id,
            parent=self.record.parent,
            model=self.model.name,
            preset=self.preset.name,
            activity=self.activity,
            auto=self.agent.keeper.auto,
            tokens=size.tokens,
            window=size.window or 0,
            known=size.certainty,
            waiting=len(self._input_buffer),
            round=size.round,
            folder=str(self.folder.root),
            mode=self.permissions.mode,
            instructions=tuple(file.summary for file in self.instructions),
        )

    async def costs(self) -> CostReport:
        """Returns tokens and money used by the session and by this run of the program."""
        return await self._meter.report(self)

    def emit(self, event: AgentEvent) -> None:
        """Passes an event to the listener. Input reopens before the listener is notified that a compaction ended."""
        interruption = self._interruption
        self._meter.handle_event(event)
        if isinstance(event, CompactionStarted):
            self._input_buffer.is_open = False
        elif isinstance(event, CompactionCompleted | CompactionFailed | CompactionSkipped):
            self._reopen_input(
                steer=self.activity == "running" or (interruption is not None and interruption.should_continue)
            )
        elif isinstance(event, RunFinished) and interruption is not None:
            interruption.finished = event
            return
        emit(self.listener, event)

    # -- internals ---------------------------------------------------------------------------------

    def _queue_prompt(self, text: str | None, *, urgent: bool = False) -> None:
        self._queue.add(partial(self._run_agent, text), "running", urgent=urgent)

    async def _use_mcp_tools(self) -> bool:
        """Gives the agent the tools of the servers once they have started; False if that was aborted."""
        with self.abortable() as abort, abort.scope():
            await self.mcp.wait_started()
        self.agent.toolbox = self._build_toolbox(self.record.id)
        return not abort.aborted

    async def _run_agent(self, prompt: str | None) -> None:
        if self.mcp.servers and not await self._use_mcp_tools():
            self.emit(RunFinished(self.record.id, "aborted", "stopped by the user"))
            if prompt is not None:
                self.emit(Unsent(self.record.id, prompt))
            return
        try:
            async with self.sessions.announce_turn(self.record.id):
                finished = await self.agent.run(prompt)
        except Exception as problem:
            log.debug("agent run failed", exc_info=True)
            why = plain_reason(problem)
            finished = RunFinished(self.record.id, "failed", why)
            self.emit(ErrorEvent(why))
            self.emit(finished)
        self._last_status = finished.status
        if self._interruption is None:
            self._dispatch_undelivered(finished)

    def _dispatch_undelivered(self, finished: RunFinished) -> None:
        """Queues steering texts that the agent did not receive; after an abort, returns them as `Unsent` events."""
        for text in self.agent.take_undelivered():
            if finished.status == "aborted":
                self.emit(Unsent(self.record.id, text))
            else:
                self._queue_prompt(text)

    async def _compact(
        self, instructions: str | None, abort: Abort, interruption: Interruption, *, without_model: bool
    ) -> ChatCompactionResult:
        """Compacts, reopens the input, then continues the interrupted run or reports its end."""
        result: CompactionResult | None = None
        try:
            result = await self.agent.keeper.compact(instructions, abort, without_model=without_model)
            self.emit(await self.agent.window_usage())
        finally:
            continues = interruption.should_continue and result is not None and result.outcome is not Outcome.ABORTED
            self._reopen_input(steer=continues)
            self._interruption = None
            if continues:
                self._queue_prompt(None, urgent=True)
            elif interruption.finished is not None:
                self.emit(interruption.finished)
                self._dispatch_undelivered(interruption.finished)
        return chat_compaction_result(result, continued=continues)

    def _reopen_input(self, *, steer: bool) -> None:
        """Drains the input buffer: as steering of the agent that continues, or as prompts."""
        for text in self._input_buffer.drain():
            if steer:
                self.agent.steer(text)
            else:
                self._queue_prompt(text)
