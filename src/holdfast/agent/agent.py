"""A small agent, real enough to use: asks a model, runs its tools, and keeps its conversation inside the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import anyio

from ..calls import Delta, Failure, Limits, StepCall, Stepper, StepReply
from ..compaction import Abort
from ..events import Event
from ..hooks.events import CompactionCompleted, CompactionEvent, CompactionSkipped
from ..messages import Message, Text, ToolCall, ToolResult, whole_characters
from ..models import Waiting, persistently
from ..service import Context
from .events import (
    AgentEvent,
    Gauged,
    Known,
    Replied,
    Retrying,
    RunFinished,
    RunStarted,
    Said,
    Status,
    Tell,
    ToolFinished,
    ToolStarted,
    Unsent,
    told,
)
from .keeper import Keeper
from .tools import Toolbox

MOST_STEPS = 500
_STOPPED = "(Stopped by the user before it was done.)"
SYSTEM = """\
You are a careful assistant that works in one folder of the user's machine. Look before you change something, change \
as little as needed, and check that it works. Say in the end, in a few sentences, what you did and what is left. \
When the conversation grows long, its older part is replaced by notes: what they point at can be searched with \
recall_search and read with recall_read, word for word."""


class Agent:
    """One conversation with a model that may use tools. All that happens is told, and stored as it happens."""

    def __init__(
        self,
        keeper: Keeper,
        model: Stepper,
        toolbox: Toolbox,
        *,
        tell: Tell,
        system: str = SYSTEM,
        limits: Limits | None = None,
        max_steps: int = MOST_STEPS,
    ) -> None:
        self.keeper = keeper
        self.model = model
        self.toolbox = toolbox
        self.tell = tell
        self.system = system
        self.limits = limits or Limits()
        self.max_steps = max_steps
        self.running = False
        self.size: Known = "estimated"
        keeper.format, keeper.listen = model.format, self._heard
        self._abort = Abort()
        self._steering: deque[str] = deque()
        self._steps = 0
        self._partial: list[str] = []
        self._skipped = ""

    @property
    def session(self) -> str:
        return self.keeper.session_id

    def steer(self, text: str) -> None:
        """Say something to an agent that works: it hears it before its next step."""
        self._steering.append(text)

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was said to it and not heard yet."""
        return tuple(self._steering)

    def abort(self) -> None:
        """Stop now; what was said and done so far is kept. Any thread may call it."""
        self._abort()

    async def run(self, prompt: str | None = None) -> RunFinished:
        """Answer a prompt to its end; without one, go on with what is unfinished."""
        self._abort = self.keeper.abort = Abort()
        self._steps, self.running = 0, True
        self._tell(RunStarted(self.session, prompt))
        try:
            if prompt is not None:
                await self._hear(prompt)
            finished = await self._answer()
            while finished.status == "done" and await self._rest():
                finished = await self._answer()
        finally:
            self.running = False
            with anyio.CancelScope(shield=True):
                await self._keep_partial()
        self._tell(finished)
        return finished

    def unheard(self) -> list[str]:
        """What was said too late for the last run to hear."""
        texts, self._steering = list(self._steering), deque()
        return texts

    async def gauge(self) -> Gauged:
        context = await self.keeper.context()
        return Gauged(self.session, context.tokens, self.keeper.window.size, self.size, self.keeper.auto)

    # -- the loop --------------------------------------------------------------------------------------

    async def _answer(self) -> RunFinished:
        with self._abort.scope():
            return await self._work()
        return self._finish("aborted", "stopped by the user")

    async def _work(self) -> RunFinished:
        while self._steps < self.max_steps:
            while self._steering:
                await self._hear(self._steering[0])
                self._steering.popleft()
            context = await self.keeper.prepare_step()
            self._tell_size(context)
            if self._steering:  # said while it was compacted: it belongs behind the summary, and before the reply
                continue
            answer = await self._ask(context)
            if isinstance(answer, Failure):
                if (why := await self._recover(answer)) is not None:
                    return self._finish("failed", why)
                continue
            self._steps += 1
            if calls := await self._take(answer):
                await self._run_tools(calls)
            elif answer.finish == "refused":
                return self._finish("failed", "the model refused to answer")
            elif answer.finish == "length":
                status, why = await self.keeper.make_room()
                if status == "max_tokens":
                    return self._finish("max_tokens", why)
            elif not self._steering:
                return self._finish("done")
        return self._finish("max_steps", f"{self.max_steps} steps in one run: say go on if it should")

    async def _rest(self) -> bool:
        """P2: after the last reply, too. The work is done whatever comes of it. True if more was said meanwhile."""
        with self._abort.scope():
            if await self.keeper.compact_if_due():
                self._tell(await self.gauge())
        return bool(self._steering) and not self._abort.aborted

    async def _ask(self, context: Context) -> StepReply | Failure:
        call = StepCall(context.messages, self.system, self.toolbox.told)

        def on_delta(delta: Delta) -> None:
            if delta.kind == "text":
                self._partial.append(delta.text)
            self._tell(Said(self.session, delta.kind, delta.text))

        def waiting(wait: Waiting) -> None:
            self._tell(Retrying(self.session, wait.why, wait.seconds))

        return await persistently(self.model, call, self.limits, on_delta, waiting)

    async def _recover(self, failure: Failure) -> str | None:
        """None if it is worth asking again, else why the run must end."""
        if failure.kind != "overflow":
            return f"{failure.kind}: {failure.why}"
        recovery = await self.keeper.on_overflow(failure, streamed=bool(self._partial))
        return None if recovery.retry else f"the prompt is too long for the model, and {recovery.why}"

    async def _take(self, reply: StepReply) -> Sequence[ToolCall]:
        """Store a reply, and give the calls that are to be run. Nothing may come between the two."""
        with anyio.CancelScope(shield=True):
            cut = reply.finish == "length"
            events = await (self.keeper.store(reply) if cut else self.keeper.on_step_finish(reply))
            self._partial.clear()
            calls = await self.keeper.sessions.waiting(self.session)
            if reply.usage is not None:
                self.size = "known"
            if events:
                self._tell(Replied(self.session, events[-1].id, reply.text, len(calls), reply.finish))
            self._tell_size(await self.keeper.context())
        return calls

    async def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        """Run calls in their order and store all results at once, those of calls that were stopped, too."""
        results: list[ToolResult] = []
        try:
            for call in calls:
                self._tell(ToolStarted(self.session, call.id, call.name, self.toolbox.line(call)))
                answer = await self.toolbox.run(call)
                results.append(ToolResult(call.id, (Text(answer.text),), answer.is_error, call.name))
                self._tell(ToolFinished(self.session, call.id, call.name, answer.text, answer.is_error))
        finally:
            missing = calls[len(results) :]
            results += [ToolResult(call.id, (Text(_STOPPED),), True, call.name) for call in missing]
            with anyio.CancelScope(shield=True):
                await self._append(Message("tool", tuple(results)))

    # -- for the above ---------------------------------------------------------------------------------

    async def _hear(self, text: str) -> None:
        """Store what a person said. Nobody stops it in the middle; what cannot be stored is given back."""
        try:
            with anyio.CancelScope(shield=True):
                await self._append(Message("user", (Text(whole_characters(text)),)))
        except Exception:
            self._tell(Unsent(self.session, text))
            raise

    async def _append(self, message: Message) -> list[Event]:
        self.size = "estimated" if self.size == "known" else self.size
        return await self.keeper.sessions.append(self.session, message)

    async def _keep_partial(self) -> None:
        """What a person saw of a reply that was stopped stays in the conversation; it counts for nothing (P3)."""
        text, self._partial = whole_characters("".join(self._partial).strip()), []
        if text:
            with suppress(OSError):
                await self._append(Message("assistant", (Text(text),)))

    def _tell(self, event: AgentEvent) -> None:
        told(self.tell, event)

    def _heard(self, event: CompactionEvent) -> None:
        if isinstance(event, CompactionCompleted):
            self.size = "unknown"
        skipped = event.why if isinstance(event, CompactionSkipped) else ""
        if not skipped or skipped != self._skipped:  # that it has to wait is so at every step, and worth saying once
            self._tell(event)
        self._skipped = skipped

    def _tell_size(self, context: Context) -> None:
        self._tell(Gauged(self.session, context.tokens, self.keeper.window.size, self.size, self.keeper.auto))

    def _finish(self, status: Status, why: str = "") -> RunFinished:
        return RunFinished(self.session, status, why, self._steps)
