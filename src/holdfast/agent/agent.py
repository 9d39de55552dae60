"""A small agent: calls a model, runs its tools, and keeps the conversation inside the model's window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio

from ..compaction import Abort
from ..context.events import Event
from ..hooks.emitter import emit
from ..hooks.events import CompactionEvent, CompactionSkipped
from ..messages import (
    CUT_OFF_MARK,
    INTERRUPTED_MARK,
    Json,
    Message,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    encode_tools,
    replace_lone_surrogates,
)
from ..models import RetryWait, step_with_retry
from ..models.calls import RETRY_SECONDS, ChatModel, Failure, Limits, ReplyDelta, StepCall, StepReply, retry_limits
from ..sessions import Context
from .events import (
    AgentEvent,
    Attached,
    EventListener,
    ReplyStored,
    Retrying,
    RunFinished,
    RunStarted,
    RunStatus,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    Unsent,
    WindowUsage,
)
from .keeper import Keeper
from .mentions import AttachFiles, Attachments
from .tools import INVALID_JSON, Toolbox

MAX_STEPS = 500
_STOPPED_RESULT = "(Stopped by the user before it was done.)"
SYSTEM = """\
You are a careful assistant that works in one folder of the user's machine. Look before you change something, change \
as little as needed, and check that it works. Say in the end, in a few sentences, what you did and what is left. \
When the conversation grows long, its older part is replaced by notes: what they point at can be searched with \
recall_search, read with recall_read, word for word, and put back with recall_restore."""
"""Default system prompt of the agent."""


class Agent:
    """One conversation with a model that may use tools. Emits an event for everything it does and stores it at once."""

    def __init__(
        self,
        keeper: Keeper,
        model: ChatModel,
        toolbox: Toolbox,
        *,
        on_event: EventListener,
        system: str = SYSTEM,
        limits: Limits | None = None,
        max_steps: int = MAX_STEPS,
        attach: AttachFiles | None = None,
    ) -> None:
        self.keeper = keeper
        self.model = model
        self.toolbox = toolbox
        self.on_event = on_event
        self.system = system
        self.limits = limits or retry_limits(RETRY_SECONDS)
        self.max_steps = max_steps
        self._attach = attach
        self.running = False
        keeper.format, keeper.listen = model.format, self._on_compaction_event
        self._abort = Abort()
        self._steering: deque[str] = deque()
        self._steps = 0
        self._partial: list[str] = []
        self._in_reply = False
        """Whether the model is being called."""
        self._last_skipped = ""
        self._offered: tuple[Tool, ...] = ()

    @property
    def session(self) -> str:
        """Id of the session."""
        return self.keeper.session_id

    def steer(self, text: str) -> None:
        """Queues a user message for a running agent; it is delivered before the next step."""
        self._steering.append(text)

    @property
    def undelivered(self) -> tuple[str, ...]:
        """Steering messages not delivered yet."""
        return tuple(self._steering)

    def abort(self) -> None:
        """Stops the run now and keeps the replies and results so far. Thread-safe."""
        self._abort()

    async def run(self, prompt: str | None = None) -> RunFinished:
        """Runs the loop until the prompt is answered; without a prompt, continues unfinished work."""
        self._abort = self.keeper.abort = Abort()
        self._steps, self.running, self._in_reply = 0, True, False
        self._emit(RunStarted(self.session, prompt))
        try:
            if prompt is not None:
                await self._append_prompt(prompt)
            finished = await self._run_abortable()
            while finished.status == "done" and await self._compact_after_run():
                finished = await self._run_abortable()
        finally:
            self.running = False
            with anyio.CancelScope(shield=True):
                await self._store_partial()
        self._emit(finished)
        return finished

    def take_undelivered(self) -> list[str]:
        """Removes and returns steering messages that came too late for the last run."""
        texts, self._steering = list(self._steering), deque()
        return texts

    async def window_usage(self) -> WindowUsage:
        """Returns how full the window is now."""
        size = await self.keeper.size()
        return WindowUsage(self.session, size.tokens, size.window or 0, size.certainty, self.keeper.auto)

    # -- the loop --------------------------------------------------------------------------------------

    async def _run_abortable(self) -> RunFinished:
        with self._abort.scope():
            return await self._loop()
        return self._finish("aborted", "stopped by the user")

    async def _loop(self) -> RunFinished:
        while self._steps < self.max_steps:
            while self._steering:
                await self._append_prompt(self._steering[0])
                self._steering.popleft()
            await self._note_tools()
            context = await self.keeper.prepare_step()
            self._emit(await self.window_usage())
            if self._steering:  # steered during the compaction: deliver after the summary, before the reply
                continue
            answer = await self._call_model(context)
            if isinstance(answer, Failure):
                if (why := await self._recover(answer)) is not None:
                    return self._finish("failed", why)
                continue
            self._steps += 1
            if calls := await self._store_reply(answer):
                await self._run_tools(calls)
            elif not answer.text.strip() and answer.finish == "stop":
                return self._finish("failed", "the model replied with nothing")
            elif answer.finish == "refused":
                return self._finish("failed", "the model refused to answer")
            elif answer.finish == "length":
                status, why = await self.keeper.compact_if_full()
                if status == "max_tokens":
                    return self._finish("max_tokens", why)
            elif not self._steering:
                return self._finish("done")
        return self._finish("max_steps", f"{self.max_steps} steps in one run")

    async def _note_tools(self) -> None:
        """Counts tools that came since the last step: a server of them may connect at any time."""
        if (offered := self.toolbox.definitions) != self._offered:
            tools = encode_tools(self.model.format, offered)
            await self.keeper.sessions.set_prompt(self.session, system=self.system, tools=tools)
            self._offered = offered

    async def _compact_after_run(self) -> bool:
        """Compacts after the last reply if due; never changes the run's status. True if it was steered meanwhile."""
        with self._abort.scope():
            if await self.keeper.compact_if_due():
                self._emit(await self.window_usage())
        return bool(self._steering) and not self._abort.aborted

    async def _call_model(self, context: Context) -> StepReply | Failure:
        call = StepCall(context.messages, self.system, self.toolbox.definitions)

        asks_again = False

        def on_delta(delta: ReplyDelta) -> None:
            nonlocal asks_again
            if delta.kind == "text":
                if asks_again:  # what broke off is kept until there is something in its place
                    self._partial.clear()
                asks_again = False
                self._partial.append(delta.text)
            self._emit(TextDelta(self.session, delta.kind, delta.text))

        def on_wait(wait: RetryWait) -> None:
            nonlocal asks_again
            asks_again = True
            self._emit(Retrying(self.session, wait.why, wait.seconds, wait.streamed))

        self._in_reply = True
        answer = await step_with_retry(self.model, call, self.limits, on_delta, on_wait)
        self._in_reply = False
        return answer

    async def _recover(self, failure: Failure) -> str | None:
        """Returns None to retry, else the reason to end the run."""
        if failure.kind != "overflow":
            wait = f"; the provider asks to wait {failure.retry_after:,.0f} s" if failure.retry_after else ""
            broke_off = self._partial and failure.is_retryable
            return f"{f'the reply broke off: {failure.why}' if broke_off else failure.reason}{wait}"
        recovery = await self.keeper.on_overflow(failure, streamed=bool(self._partial))
        return None if recovery.retry else f"the prompt is too long for the model, and {recovery.why}"

    async def _store_reply(self, reply: StepReply) -> Sequence[ToolCall]:
        """Stores a reply and returns the calls to run; shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            if reply.finish == "length":
                events = await self.keeper.store(reply)
            else:
                events = await self.keeper.on_step_finish(self._with_invalid_calls(reply), reply.usage)
            self._partial.clear()
            calls = await self.keeper.sessions.waiting(self.session)
            if events:
                model = reply.model or self.model.name
                stored = ReplyStored(
                    self.session, events[-1].id, reply.text, len(calls), reply.finish, model, reply.usage, events[0].seq
                )
                self._emit(stored)
            self._emit(await self.window_usage())
        return calls

    def _with_invalid_calls(self, reply: StepReply) -> StepReply | list[Json]:
        """Returns a reply whose calls with invalid arguments can be stored and answered with an error."""
        invalid = [call for call in reply.calls if isinstance(call.arguments, str) and call.kind != "custom"]
        if not invalid:
            return reply
        names = {call.id for call in invalid}
        messages = decode_all(list(reply.messages), self.model.format)[0] or [Message("assistant", ())]
        kept = [
            message.with_parts(
                tuple(part for part in message.parts if not (isinstance(part, ToolCall) and part.id in names))
            )
            for message in messages
        ]
        calls = tuple(ToolCall(call.id, call.name, {INVALID_JSON: call.arguments_text}) for call in invalid)
        kept[-1] = kept[-1].with_parts((*kept[-1].parts, *calls))
        return encode_all(kept, self.model.format)

    async def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        """Runs calls in order and stores all results in one message; calls that were stopped get an error result."""
        results: list[ToolResult] = []
        try:
            for call in calls:
                self._emit(ToolStarted(self.session, call.id, call.name, self.toolbox.describe(call)))
                answer = await self.toolbox.run(call, partial(self._emit_output, call.id))
                results.append(ToolResult(call.id, (Text(answer.text), *answer.media), answer.is_error, call.name))
                self._emit(ToolFinished(self.session, call.id, call.name, answer.text, answer.is_error))
        finally:
            missing = calls[len(results) :]
            results += [ToolResult(call.id, (Text(_STOPPED_RESULT),), True, call.name) for call in missing]
            with anyio.CancelScope(shield=True):
                await self._append(Message("tool", tuple(results)))

    # -- internals -------------------------------------------------------------------------------------

    async def _append_prompt(self, text: str) -> None:
        """Stores a user message, shielded from cancellation; returns it as an `Unsent` event if the store fails.

        The content of files it names comes first, in a message that does not count as the user's words.
        """
        try:
            with anyio.CancelScope(shield=True):
                attached = await self._attach(text) if self._attach is not None else Attachments()
                if attached.text:
                    content = Message("user", (Text(replace_lone_surrogates(attached.text)),))
                    await self._append(content, aside=True)
                await self._append(Message("user", (Text(replace_lone_surrogates(text)), *attached.images)))
            if attached.files or attached.problems:
                self._emit(Attached(self.session, attached.files, attached.problems))
        except Exception:
            self._emit(Unsent(self.session, text))
            raise

    async def _append(self, message: Message, *, aside: bool = False) -> list[Event]:
        return await self.keeper.sessions.append(self.session, message, aside=aside)

    async def _store_partial(self) -> None:
        """Stores the streamed part of an interrupted reply and says for the model how it ended.

        It has no usage, so that it never affects token counts.
        """
        text, self._partial = replace_lone_surrogates("".join(self._partial).strip()), []
        stopped = self._abort.aborted and self._in_reply
        if text or stopped:
            mark = INTERRUPTED_MARK if stopped else CUT_OFF_MARK
            with suppress(OSError):
                await self._append(Message("assistant", (Text(f"{text}\n\n{mark}".strip()),)))

    def _emit(self, event: AgentEvent) -> None:
        emit(self.on_event, event)

    def _emit_output(self, call_id: str, text: str) -> None:
        self._emit(ToolOutput(self.session, call_id, replace_lone_surrogates(text)))

    def _on_compaction_event(self, event: CompactionEvent) -> None:
        skipped = event.why if isinstance(event, CompactionSkipped) else ""
        if not skipped or skipped != self._last_skipped:  # repeated at every step: emitted once
            self._emit(event)
        self._last_skipped = skipped

    def _finish(self, status: RunStatus, why: str = "") -> RunFinished:
        return RunFinished(self.session, status, why, self._steps)
