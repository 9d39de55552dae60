"""`Keeper`: calls an agent loop makes before a step, after a step and on overflow to stay inside its model's window."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..compaction import Abort, CompactionResult, Policy, PolicyLike
from ..compaction.policy import find_policy
from ..compaction.presets import DEFAULT_PRESET
from ..context import Request, interrupted_result
from ..context.events import Event
from ..errors import InvalidInput
from ..hooks.events import CompactionEvent, Continued
from ..messages import (
    Message,
    copy_json,
    decode_all,
    encode_all,
    framed_message,
    replace_lone_surrogates,
    reply_usage,
    unpack_reply,
)
from ..messages.frameworks import restore_objects
from ..models import failure_from_exception
from ..models.calls import Failure, StepReply
from ..sessions import Context, SessionService
from ..sessions.compactor import compact_session
from ..sessions.message_list import MessageListSession
from ..stores import MemoryStore
from ..strategies import KeepLedger
from ..triggers import always
from .continuation import LengthRecovery, OverflowRecovery, continue_prompt, drop_incomplete_calls
from .events import emit
from .window import ContextWindow

if TYPE_CHECKING:
    from ..types import MessageLike, SummarizerLike, SystemLike, ToolsLike, UsageLike


log = logging.getLogger("holdfast")
AUTO_COMPACTION_OFF = "automatic compaction is off: compact by hand, or turn it on"
_FULL_UTILIZATION = 0.80
"""Below this utilization a reply was not cut off by the window."""
READY_TIMEOUT_SECONDS = 300.0
"""How long a step waits for a running compaction; no compaction job takes longer."""


class Keeper:
    """Keeps one conversation inside its model's window; a failed compaction never raises.

    With `sessions` and `session_id` it works on a stored session; a list passed to `prepare_step` then continues it.
    Without, it tracks the list of messages passed to `prepare_step` and returns the list to send. `system` and `tools`
    count as well: send them with the messages, as the context's `request` does; a prompt that is a message of the list
    stays one.
    """

    def __init__(
        self,
        sessions: SessionService | None = None,
        session_id: str | None = None,
        *,
        model: str | None = None,
        window: int | ContextWindow | None = None,
        preset: PolicyLike | None = None,
        summarizer: SummarizerLike | None = None,
        auto: bool = True,
        system: SystemLike | None = None,
        tools: ToolsLike | None = None,
        format: str | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        if session_id is not None and sessions is None:
            raise InvalidInput("session_id= needs a service: pass the one that stores the session as sessions=.")
        if session_id is not None and (system is not None or tools is not None):
            raise InvalidInput("A session has its own system prompt and tools: pass them to create(), not to Keeper().")
        self._message_list = None
        self._given_policy = None if preset is None else find_policy(preset)
        self.preset = self._given_policy or (sessions and sessions.preset) or find_policy(DEFAULT_PRESET)
        if session_id is None or sessions is None:
            sessions_of_list = sessions or SessionService(MemoryStore(), preset=self.preset)
            self._message_list = MessageListSession(
                sessions_of_list, format, owned=sessions is None, system=system, tools=tools, model=model
            )
            sessions = self._message_list.sessions
        self.sessions = sessions
        self._session_id = session_id
        self.window = (
            window if isinstance(window, ContextWindow) else ContextWindow(window, model, self.preset.usual_window)
        )
        self.summarizer = summarizer
        self.auto = auto
        """Whether automatic compaction is on; if off, only `compact()` compacts."""
        self.format = format
        self.listen = listen
        self.abort = Abort()
        self._retried_version: int | None = None
        """Session version after the last overflow recovery; unchanged means that the retry overflowed, too."""
        self._length_recovered = False
        self._made_on: str | None = None
        """The checkpoint that the next reply is requested with."""

    @property
    def session_id(self) -> str:
        """Id of the stored session; of a message list, the id of its session in memory, or of the fork it made."""
        return (self._message_list.session_id if self._message_list else "") or self._session_id or ""

    # -- before and after a step ----------------------------------------------------------------------

    async def prepare_step(self, messages: Sequence[MessageLike] | None = None) -> Context:
        """Returns the context to send: waits for a running compaction, and compacts if the trigger fires.

        A context that is over the window even so is compacted without a model, whatever the preset does on failure:
        the provider would refuse it.
        """
        if self._message_list is None and messages is not None:
            self._message_list = MessageListSession(self.sessions, self.format, self._session_id)
        if self._message_list is not None:
            if messages is None:
                raise InvalidInput(
                    "No messages: pass them to prepare_step(), or create the keeper with sessions= and session_id=."
                )
            await self._message_list.follow(messages)
        await self.sessions.ready(self.session_id, READY_TIMEOUT_SECONDS)
        if self._message_list is None:
            await self._close_interrupted_calls()
        compacted = await self.compact_if_due()
        context, shrunk = await self._context_within_window()
        return await self._with_continue_prompt(context, compacted=compacted or shrunk)

    async def on_step_finish(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> list[Event]:
        """Stores a reply with the provider's token usage, which a whole reply of an SDK contains.

        A keeper of a message list only records the usage here; the reply is stored with the next list.
        """
        self._length_recovered = False
        return await self.store(reply, usage)

    async def store(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> list[Event]:
        """Stores a reply without incomplete tool calls; shielded from cancellation, because the user has seen it."""
        messages = drop_incomplete_calls(self._decode_reply(reply)[0])
        usage = usage or reply_usage(reply)
        if self._message_list is not None:
            self._message_list.usage = usage
            return []
        events: list[Event] = []
        with anyio.CancelScope(shield=True):
            if messages:
                model = reply.model if isinstance(reply, StepReply) else None
                events = await self.sessions.append(
                    self.session_id, messages, usage=usage, model=model, made_on=self._made_on
                )
        return events

    async def compact_if_due(self) -> bool:
        """Compacts if the preset's trigger fires; returns whether tokens were saved."""
        if not self.auto:
            return False
        result = await self._compact_automatically(None, self.window.size)
        return result is not None and result.tokens_saved > 0

    async def compact(
        self, instructions: str | None = None, abort: Abort | None = None, *, without_model: bool = False
    ) -> CompactionResult:
        """Compacts now, regardless of the trigger and of `auto`; `without_model` by the ledger, not by the preset."""
        strategy = KeepLedger() if without_model else None
        return await self._compact(always, self.window.size, strategy, instructions=instructions, abort=abort)

    # -- overflow and cut-off replies ------------------------------------------------------------------

    async def on_overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> OverflowRecovery:
        """Compacts after the provider rejected the prompt as too long; allows one retry."""
        failure = problem if isinstance(problem, Failure) else failure_from_exception(problem)
        if failure.kind != "overflow":
            return OverflowRecovery(False, f"not a context overflow ({failure.kind}): {failure.why}")
        before = await self.context()
        sent = before.tokens
        self.window.learn(failure.window, sent, failure.why)
        if streamed:
            return OverflowRecovery(False, "part of the reply was already shown: a retry would show it twice")
        if not self.auto:
            return OverflowRecovery(False, AUTO_COMPACTION_OFF)
        if self._retried_version == before.version:
            return OverflowRecovery(False, "the prompt was too long again after it had been compacted")
        budget = max(1, min(self.window.size, sent - 1))
        result = await self._compact_automatically(_fires_always, budget)
        if result is None or result.tokens_after >= sent:
            result = await self._compact_automatically(_fires_always, budget, KeepLedger(), urgent=True)
        if (after := await self.context()).tokens >= sent:
            why = result.why if result is not None else "the compaction failed"
            return OverflowRecovery(False, f"it could not be made smaller: {why}")
        context = await self._with_continue_prompt(after, compacted=True)
        self._retried_version = context.version
        return OverflowRecovery(True, context=context)

    async def on_length(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> LengthRecovery:
        """Stores a cut-off reply with its complete calls; compacts and continues if the window was full."""
        decoded, format = self._decode_reply(reply)
        kept = drop_incomplete_calls(decoded)
        events = await self.store(reply, usage)
        status, why = await self.compact_if_full()
        calls = tuple(call for message in kept for call in message.calls)
        return LengthRecovery(status, encode_all(kept, format), calls, events, why)

    async def compact_if_full(self) -> tuple[Literal["go_on", "max_tokens"], str]:
        """Compacts once if a stored reply was cut off in a full window; else returns `max_tokens` and the reason."""
        full = self.window.utilization(await self.context(), self.sessions.estimator)
        if full <= _FULL_UTILIZATION:
            return "max_tokens", f"the reply is too long, with {full:.0%} of the window in use"
        if not self.auto:
            return "max_tokens", AUTO_COMPACTION_OFF
        if self._length_recovered:
            return "max_tokens", "the reply was cut off again after a compaction"
        result = await self._compact_automatically(_fires_always, self.window.size)
        if result is None or not result.tokens_saved:
            return "max_tokens", f"nothing could be compacted: {result.why if result else 'the compaction failed'}"
        self._length_recovered = True
        await self._with_continue_prompt(await self.context(), compacted=True)
        return "go_on", ""

    # -- internals -------------------------------------------------------------------------------------

    async def policy(self) -> Policy:
        """Returns the session's policy; the one given to the keeper becomes the session's, for every process."""
        if self._given_policy is not None:
            await self.sessions.set_policy(self.session_id, self._given_policy)
            self._given_policy = None
        return await self.sessions.policy(self.session_id)

    async def context(self) -> Context:
        """Returns the session's current context in the keeper's format."""
        return await self.sessions.context(self.session_id, format=self.format)

    async def _close_interrupted_calls(self) -> None:
        """Appends an error result for each interrupted tool call: providers reject calls without results."""
        if calls := await self.sessions.waiting(self.session_id):
            closing = Message("tool", tuple(interrupted_result(call) for call in calls))
            await self.sessions.append(self.session_id, closing)

    async def _with_continue_prompt(self, context: Context, *, compacted: bool) -> Context:
        """Returns the context to send, with a prompt to continue if the model was interrupted."""
        if text := continue_prompt(context, compacted=compacted, stored=self._message_list is None):
            await self.sessions.append(self.session_id, framed_message(text, aside=True), aside=True)
            if self.listen is not None and compacted:
                emit(self.listen, Continued(self.session_id, text))
            context, _ = await self._context_within_window()
        self._made_on = context.checkpoint
        if self._message_list is not None:
            return self._message_list.returned(context, compacted)
        context.messages = restore_objects(context.messages, context.format, None)
        return context

    def _decode_reply(self, reply: StepReply | MessageLike | Sequence[MessageLike]) -> tuple[list[Message], str]:
        given: Any = reply.messages if isinstance(reply, StepReply) else reply
        given = given if isinstance(given, list | tuple) else [given]
        payloads = [payload for item in given for payload in unpack_reply(item)]
        return decode_all([replace_lone_surrogates(copy_json(payload)) for payload in payloads], self.format)

    async def _compact_automatically(
        self, trigger: Callable[[Request], bool] | None, budget: int, strategy: Any = None, *, urgent: bool = False
    ) -> CompactionResult | None:
        """Compacts without a request from the user; logs exceptions and returns None."""
        try:
            return await self._compact(trigger, budget, strategy, urgent=urgent)
        except Exception:
            log.exception("compaction of session %s failed: the conversation continues uncompacted", self.session_id)
            return None

    async def _context_within_window(self) -> tuple[Context, bool]:
        """Returns the context, and whether the ledger had to compact it because it was over the window.

        The circuit breaker does not apply: the provider would refuse the context as it is.
        """
        context, size = await self.context(), self.window.size
        if not self.auto or context.tokens <= size:
            return context, False
        strategy = KeepLedger()
        result = await self._compact_automatically(_fires_unless_undone, size, strategy, urgent=True)
        if result is None or not result.tokens_saved:
            return context, False
        return await self.context(), True

    async def _compact(
        self,
        trigger: Callable[[Request], bool] | None,
        budget: int,
        strategy: Any = None,
        *,
        instructions: str | None = None,
        abort: Abort | None = None,
        urgent: bool = False,
    ) -> CompactionResult:
        compact = partial(compact_session, self.sessions, urgent=True) if urgent else self.sessions.compact
        policy = await self.policy()
        return await compact(
            self.session_id,
            trigger,
            on_conflict="rebase",
            preset=policy.changed(window=self.window.size, strategy=strategy),
            budget=budget if budget < self.window.size else None,
            instructions=instructions,
            summarizer=self.summarizer,
            abort=abort or self.abort,
            listen=self.listen,
        )


def _fires_always(request: Request) -> bool:
    """Always fires, but unlike `always` respects the circuit breaker."""
    return True


def _fires_unless_undone(request: Request) -> bool:
    """Fires unless the user has undone a compaction and not written since."""
    return not request.view.undone
