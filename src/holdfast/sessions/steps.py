"""Keeps a stored session inside its model's window around each model call: before it, on overflow, on a cut-off reply.

`Turn` and `Keeper` call these functions, and so does background compaction where no worker makes room in time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec

from ..compaction import Abort, CompactionResult, Policy
from ..compaction.size import Size
from ..context import Request, interrupted_result
from ..context.events import Event
from ..errors import NoRoom, Outcome
from ..hooks import Hooks
from ..hooks.emitter import emit
from ..hooks.events import CompactionEvent, Continued, WindowLowered
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
from ..strategies import KeepLedger
from ..tokens.budget import Reserve
from ..triggers import always
from .continuation import LengthRecovery, OverflowRecovery, continue_prompt, drop_incomplete_calls
from .live import Context

if TYPE_CHECKING:
    from ..types import MessageLike, Strategy, SummarizerLike, UsageLike
    from .service import SessionService


log = logging.getLogger("holdfast")
AUTO_COMPACTION_OFF = "automatic compaction is off: compact by hand, or turn it on"
_FULL_UTILIZATION = 0.80
"""Below this utilization a reply was not cut off by the window."""
READY_TIMEOUT_SECONDS = 300.0
"""How long a step waits for a running compaction; no compaction job takes longer."""


class SessionSteps:
    """The steps of one session's model calls; a failed compaction never raises."""

    def __init__(
        self,
        sessions: SessionService,
        session_id: str,
        *,
        window: int | None = None,
        model: str | None = None,
        policy: Policy | None = None,
        summarizer: SummarizerLike | None = None,
        auto: bool = True,
        format: str | None = None,
        hooks: Hooks | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.sessions = sessions
        self._session_id = session_id
        self._given_policy = policy
        self._given_window = window
        self._given_model = model
        self.summarizer = summarizer
        self.auto = auto
        """Whether automatic compaction is on; if off, only `compact()` compacts."""
        self.until_full = False
        """Whether automatic compaction waits until the context leaves no room for the reply."""
        self.format = format
        self.hooks = hooks
        """Hooks around its compactions, after those of the service."""
        self.listen = listen
        self.abort = Abort()
        self.prompt_id: str | None = None
        """Event id of the next prompt to continue, so that a retry does not append a second one."""
        self._last_result: CompactionResult | None = None
        """Of the last compaction without a model; it has the smallest context even where that was not committed."""
        self._retried_version: int | None = None
        """Session version after the last overflow recovery; unchanged means that the retry overflowed, too."""
        self._length_recovered = False
        self._made_on: str | None = None
        """The checkpoint that the next reply is requested with."""

    @property
    def session_id(self) -> str:
        """Id of the stored session."""
        return self._session_id

    async def policy(self) -> Policy:
        """Returns the session's policy; policy, window and model that were given become the session's."""
        if self._given_policy is not None:
            await self.sessions.set_policy(self.session_id, self._given_policy)
            self._given_policy = None
        if self._given_window is not None or self._given_model is not None:
            try:
                await self.sessions.set_window(self.session_id, self._given_window, model=self._given_model)
                self._given_window = self._given_model = None
            except Exception:
                log.exception("the window of session %s could not be stored", self.session_id)
        return await self.sessions.policy(self.session_id)

    async def context(self) -> Context:
        """Returns the session's current context in the format of the steps."""
        return await self.sessions.context(self.session_id, format=self.format)

    async def size(self) -> Size:
        """Returns the size of the session's context, with the window and threshold of its policy."""
        await self.policy()
        return await self.sessions.size(self.session_id)

    # -- before and after a model call -------------------------------------------------------------------

    async def prepare(self) -> Context:
        """Returns the context to send: waits for a running compaction, closes interrupted calls, compacts if due.

        A context that is over the window even so is compacted without a model, whatever the preset does on failure:
        the provider would refuse it.
        """
        await self.policy()
        ready = await self.sessions.ready(self.session_id, READY_TIMEOUT_SECONDS)
        await self._close_interrupted_calls()
        compacted = ready and await self.compact_if_due()
        context, shrunk = await self.make_room()
        return await self._with_continue_prompt(context, compacted=compacted or shrunk)

    async def store(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> list[Event]:
        """Stores a reply without incomplete tool calls; shielded from cancellation, because the user has seen it."""
        messages = drop_incomplete_calls(self.decode_reply(reply)[0])
        with anyio.CancelScope(shield=True):
            if messages:
                model = reply.model if isinstance(reply, StepReply) else None
                return await self.sessions.append(
                    self.session_id,
                    messages,
                    usage=usage or reply_usage(reply),
                    model=model,
                    made_on=self._made_on,
                )
        return []

    def decode_reply(self, reply: StepReply | MessageLike | Sequence[MessageLike]) -> tuple[list[Message], str]:
        """Returns the messages of a reply as an SDK returned it, and their format."""
        given: Any = reply.messages if isinstance(reply, StepReply) else reply
        given = given if isinstance(given, list | tuple) else [given]
        payloads = [payload for item in given for payload in unpack_reply(item)]
        return decode_all([replace_lone_surrogates(copy_json(payload)) for payload in payloads], self.format)

    async def _close_interrupted_calls(self) -> None:
        """Appends an error result for each interrupted tool call: providers reject calls without results."""
        if calls := await self.sessions.waiting(self.session_id):
            closing = Message("tool", tuple(interrupted_result(call) for call in calls))
            await self.sessions.append(self.session_id, closing)

    async def _with_continue_prompt(self, context: Context, *, compacted: bool) -> Context:
        """Returns the context to send, with a prompt to continue if the model was interrupted."""
        if text := continue_prompt(context, compacted=compacted, stored=self._stored):
            prompt = framed_message(text, aside=True)
            await self.sessions.append(self.session_id, prompt, id=self.prompt_id, aside=True)
            if self.listen is not None and compacted:
                emit(self.listen, Continued(self.session_id, text))
            context, _ = await self.make_room()
        self._made_on = context.checkpoint
        return self._returned(context, compacted)

    @property
    def _stored(self) -> bool:
        """Whether the messages come from a session, not from a caller's list."""
        return True

    def _returned(self, context: Context, compacted: bool) -> Context:
        context.messages = restore_objects(context.messages, context.format, None)
        return context

    # -- compaction -----------------------------------------------------------------------------------------

    async def compact_if_due(self) -> bool:
        """Compacts if the preset's trigger fires; returns whether tokens were saved."""
        if not self.auto or (self.until_full and not await self._is_full()):
            return False
        result = await self._compact_automatically(None)
        return result is not None and result.tokens_saved > 0

    async def _is_full(self) -> bool:
        """Whether the context leaves less room for the reply than the policy reserves."""
        policy, size = await self.policy(), await self.size()
        return size.window is None or size.tokens > size.window - policy.reply.of(size.window)

    async def compact(
        self, instructions: str | None = None, abort: Abort | None = None, *, without_model: bool = False
    ) -> CompactionResult:
        """Compacts now, regardless of the trigger and of `auto`; `without_model` by the ledger, not by the preset."""
        strategy = KeepLedger() if without_model else None
        return await self._compact(always, strategy=strategy, instructions=instructions, abort=abort)

    async def make_room(self, limit: int | None = None) -> tuple[Context, bool]:
        """Returns the context, and whether the ledger had to compact it because it was over the window or `limit`.

        The circuit breaker does not apply, and no other process is waited for: the provider would refuse the context
        as it is.
        """
        context, size = await self.context(), await self.size()
        most = size.window if limit is None else limit
        if not self.auto or most is None or size.tokens <= most:
            return context, False
        self._last_result = result = await self._compact_without_model(_fires_unless_undone)
        if result is None or not result.tokens_saved:
            return context, False
        return await self.context(), True

    async def require_room(self, context: Context) -> None:
        """Raises NoRoom, with the smallest valid context, if the context exceeds the window."""
        window = (await self.size()).window
        if window is None or context.tokens <= window:
            return
        result, tokens, messages = self._last_result, context.tokens, context.messages
        if result is not None and result.tokens_after < tokens:
            tokens, messages = result.tokens_after, list(result.messages)
        raise NoRoom(self.session_id, tokens, window, messages=messages)

    # -- overflow and cut-off replies ------------------------------------------------------------------------

    async def on_overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> OverflowRecovery:
        """Compacts after the provider rejected the prompt as too long; allows one retry."""
        failure = problem if isinstance(problem, Failure) else failure_from_exception(problem)
        if failure.kind != "overflow":
            return OverflowRecovery(False, f"not a context overflow ({failure.kind}): {failure.why}")
        await self.policy()
        before = await self.context()
        sent = before.tokens
        known, window = await self.sessions.note_overflow(self.session_id, failure, sent)
        if self.listen is not None and window != known:
            emit(self.listen, WindowLowered(self.session_id, known.tokens, window.tokens, failure.why))
        if streamed:
            return OverflowRecovery(False, "part of the reply was already shown: a retry would show it twice")
        if not self.auto:
            return OverflowRecovery(False, AUTO_COMPACTION_OFF)
        if self._retried_version == before.version:
            return OverflowRecovery(False, "the prompt was too long again after it had been compacted")
        budget = max(1, min(window.tokens, sent - 1))
        result = await self._compact_automatically(_fires_always, budget)
        if result is None or result.tokens_after >= sent:
            result = await self._compact_without_model(_fires_always, budget)
        if (after := await self.context()).tokens >= sent:
            least = f"{after.tokens:,} tokens are the least, and {sent:,} were refused"
            why = (result.why or least) if result is not None else "the compaction failed"
            return OverflowRecovery(False, f"it could not be made smaller: {why}")
        context = await self._with_continue_prompt(after, compacted=True)
        self._retried_version = context.version
        return OverflowRecovery(True, context=context)

    async def on_length(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> LengthRecovery:
        """Stores a cut-off reply with its complete calls; compacts and continues if the window was full."""
        decoded, format = self.decode_reply(reply)
        kept = drop_incomplete_calls(decoded)
        events = await self.store(reply, usage)
        status, why = await self.compact_if_full()
        calls = tuple(call for message in kept for call in message.calls)
        return LengthRecovery(status, encode_all(kept, format), calls, events, why)

    async def compact_if_full(self) -> tuple[Literal["go_on", "max_tokens"], str]:
        """Compacts once if a stored reply was cut off in a full window; else returns `max_tokens` and the reason."""
        full = (await self.size()).utilization
        if full <= _FULL_UTILIZATION:
            return "max_tokens", f"the reply is too long, with {full:.0%} of the window in use"
        if not self.auto:
            return "max_tokens", AUTO_COMPACTION_OFF
        if self._length_recovered:
            return "max_tokens", "the reply was cut off again after a compaction"
        result = await self._compact_automatically(_fires_always)
        if result is None or not result.tokens_saved:
            return "max_tokens", f"nothing could be compacted: {result.why if result else 'the compaction failed'}"
        self._length_recovered = True
        await self._with_continue_prompt(await self.context(), compacted=True)
        return "go_on", ""

    # -- internals ---------------------------------------------------------------------------------------------

    async def _compact_without_model(
        self, trigger: Callable[[Request], bool], budget: int | None = None
    ) -> CompactionResult | None:
        """Compacts by the ledger, without waiting for others; down to the budget where nothing leaves room for more.

        A context that leaves less than the usual room for a reply is sent all the same: the alternative is no reply.
        """
        result = await self._compact_automatically(trigger, budget, KeepLedger(), urgent=True)
        most = (await self.size()).window if budget is None else budget
        if result is None or most is None or result.tokens_after > most:
            return result
        if result.outcome is Outcome.CANNOT_FIT:
            return await self._compact_automatically(trigger, budget, KeepLedger(), Reserve(), urgent=True)
        return result

    async def _compact_automatically(
        self,
        trigger: Callable[[Request], bool] | None,
        budget: int | None = None,
        strategy: Strategy | None = None,
        reply: Reserve | None = None,
        *,
        urgent: bool = False,
    ) -> CompactionResult | None:
        """Compacts without a request from the user; logs exceptions and returns None."""
        try:
            return await self._compact(trigger, budget, strategy, reply, urgent=urgent)
        except Exception:
            log.exception("compaction of session %s failed: the conversation continues uncompacted", self.session_id)
            return None

    async def _compact(
        self,
        trigger: Callable[[Request], bool] | None,
        budget: int | None = None,
        strategy: Strategy | None = None,
        reply: Reserve | None = None,
        *,
        instructions: str | None = None,
        abort: Abort | None = None,
        urgent: bool = False,
    ) -> CompactionResult:
        policy = (await self.policy()).changed(strategy=strategy)
        if reply is not None:
            policy = msgspec.structs.replace(policy, reply=reply)
        return await self.sessions.compact(
            self.session_id,
            trigger,
            on_conflict="rebase",
            preset=policy,
            budget=budget,
            instructions=instructions,
            summarizer=self.summarizer,
            abort=abort or self.abort,
            hooks=self.hooks,
            listen=self.listen,
            urgent=urgent,
        )


def _fires_always(request: Request) -> bool:
    """Always fires, but unlike `always` respects the circuit breaker."""
    return True


def _fires_unless_undone(request: Request) -> bool:
    """Fires unless the user has undone a compaction and not written since."""
    return not request.view.undone
