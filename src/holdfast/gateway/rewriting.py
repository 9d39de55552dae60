"""Decides what is sent in place of a client's request: its own bytes, or its compacted context."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Literal

import anyio
import msgspec

from ..agent import Keeper
from ..compaction import acompact, preset
from ..compaction.presets import DEFAULT_PRESET
from ..errors import Conflict, CorruptLog, StoreError, UnknownSession
from ..hooks.events import CompactionEvent
from ..messages import Json, decode_one
from ..models.calls import Failure, Model
from ..sessions import Context, SessionService
from ..tokens import Usage
from .client_sessions import Caller, ClientSession, ClientSessions, MessageList, SessionMatch
from .protocols import CallKind, RequestBody, has_side_call_prompt, with_cache_marks

log = logging.getLogger("holdfast.gateway")
Outcome = Literal[
    "unchanged",
    "compacted",
    "continued",
    "redacted",
    "recovered",
    "side_call",
    "failed",
    "too_large",
    "refused",
    "other",
]
PREPARE_SECONDS = 60.0
"""Longest time that a request waits for a compaction; then it is forwarded as it is."""
_STORE_SECONDS = 10.0
"""Longest time that a request waits for the store; then it is forwarded as it is."""
_WRITES_BEHIND = 256
"""Requests whose messages are on their way to the log; further ones wait for the store before they are forwarded."""
_TOKENS_AROUND = 16
"""Most tokens that a message takes beside those of its text, of which each has at least a byte."""
_MAY_BE_LARGE = re.compile(rb'"(?:image|file|document|input_audio|inline|audio|video|encrypted)')
"""Fields by which a message may take more tokens than it has bytes."""
_BACKGROUND_SECONDS = 120.0
"""Longest time of a compaction in the background: requests over the hard threshold wait for it."""
_STORE_SLOTS = 64
"""Requests that use the store at once: of a thousand at the same time, the first should not wait for the last."""
_SESSION_TRIES = 10
"""Sessions of one conversation that may be deleted while a request looks for them."""
_RETRY_STORE_SECONDS = 5.0
"""Time in which a store that failed is not asked again: an agent should not wait for it with each request."""

_SCOPE: ContextVar[anyio.CancelScope] = ContextVar("holdfast_gateway_wait")
"""How long a request waits for the store."""


class RewriteDecision(msgspec.Struct):
    """What to forward for one request."""

    outcome: Outcome = "unchanged"
    body: bytes | None = None
    """The compacted request; None forwards what the client sent."""
    session_id: str = ""
    checkpoint: str = ""
    """Id of the compaction under which the request is sent; empty without one."""
    owner: str = ""
    reply_id: str = ""
    """Id of the reply, if a later request may name it."""
    why: str = ""
    """Why the decision failed, for the log."""
    tokens_before: int = 0
    tokens_after: int = 0
    conversation: ClientSession | None = None
    given: MessageList | None = None
    summarizer: Model | None = None
    """Writes the summaries of this client, if not the service's model."""
    writing: asyncio.Task[bool] | None = None
    """Writes the new messages to the log, and is true if that succeeded: the request does not wait for it."""

    async def written(self) -> bool:
        """Waits until the log has the messages of the request; false if that failed."""
        return self.writing is None or await asyncio.shield(self.writing)


def failed(problem: Exception) -> RewriteDecision:
    """Returns the decision to forward a request as it is, because of a failure."""
    return RewriteDecision("failed", why=type(problem).__name__)


class Rewriter:
    """Follows conversations in the log and replaces requests whose conversation is compacted.

    Over the soft threshold, the preset's trigger, a compaction runs in the background after the request was forwarded.
    Over the hard one, where no room is left for a reply, it runs before.
    """

    def __init__(
        self,
        sessions: SessionService,
        on_event: Callable[[CompactionEvent, str], object] = lambda event, owner: None,
        unwritten: Callable[[], object] = lambda: None,
        store_seconds: float | None = None,
    ) -> None:
        """`unwritten` is called when a request that was forwarded could not be written."""
        self._given_seconds = store_seconds
        self.sessions = sessions
        self.conversations = ClientSessions(sessions, self.waiting)
        self.policy = sessions.preset or preset(DEFAULT_PRESET)
        self._store_failed_until = self._answered_at = -math.inf
        self._store_slots = anyio.Semaphore(_STORE_SLOTS)
        self.on_event = on_event
        self.unwritten = unwritten
        self._running: set[str] = set()
        self.writing: set[asyncio.Task[bool]] = set()
        """Writes of requests that were forwarded first."""

    @property
    def _store_seconds(self) -> float:
        return self._given_seconds or _STORE_SECONDS

    async def decide(
        self, body: RequestBody, kind: CallKind, caller: Caller, summarizer: Model | None = None
    ) -> RewriteDecision:
        """Returns what to forward. Never raises: on any failure, the request as it is."""
        return await self.guard(lambda: self._decide(body, kind, caller, summarizer))

    async def guard(self, work: Callable[[], Awaitable[RewriteDecision]]) -> RewriteDecision:
        """Runs a decision, again if its session is deleted meanwhile; a failure forwards the request as it is.

        The store has ten seconds in all, those of a compaction apart.
        """
        if anyio.current_time() < self._store_failed_until:
            return RewriteDecision("failed", why="the store has just failed")
        try:
            with anyio.fail_after(PREPARE_SECONDS), anyio.CancelScope() as scope:
                _SCOPE.set(scope)
                self._wait_for_store(scope)
                for _ in range(_SESSION_TRIES):
                    try:
                        return await work()
                    except UnknownSession as gone:  # deleted by another process: what the client sends starts anew
                        self.conversations.forget(gone.session_id or "")
                raise Conflict("The session was deleted again and again.")
            raise self._no_answer()
        except Exception as problem:
            self._note_failure("the request is forwarded as it is", problem)
            return failed(problem)

    def _wait_for_store(self, scope: anyio.CancelScope) -> None:
        scope.deadline = anyio.current_time() + self._store_seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Lets the request wait for more than the store: a compaction, its own or one that is running, or its turn."""
        if (scope := _SCOPE.get(None)) is None:
            yield
            return
        scope.deadline = math.inf
        try:
            yield
        finally:
            self._wait_for_store(scope)

    def _no_answer(self) -> Exception:
        """Returns the failure of a request whose time is over: that of the store only if it answers nobody."""
        if anyio.current_time() - self._answered_at < self._store_seconds:
            return TimeoutError("The request waited too long for the store.")
        return StoreError(f"The store did not answer in {self._store_seconds:.0f} s.")

    @asynccontextmanager
    async def _store_slot(self) -> AsyncIterator[None]:
        """Waits for a turn at the store; that time is not the store's."""
        with self.waiting():
            await self._store_slots.acquire()
        try:
            if anyio.current_time() < self._store_failed_until:
                raise TimeoutError("The store has failed for a request before this one.")
            with anyio.move_on_after(self._store_seconds) as scope:
                yield
                self._answered_at = anyio.current_time()
            if scope.cancelled_caught:
                raise self._no_answer()
        finally:
            self._store_slots.release()

    def _note_failure(self, what: str, problem: Exception) -> None:
        if isinstance(problem, StoreError) and not isinstance(problem, CorruptLog):
            self._store_failed_until = anyio.current_time() + _RETRY_STORE_SECONDS
        is_bug = not isinstance(problem, StoreError | TimeoutError)
        log.warning("%s: %s", what, type(problem).__name__, exc_info=is_bug)

    async def _forward_first(self, match: SessionMatch, body: RequestBody) -> RewriteDecision | None:
        """Decides about a request that only extends its conversation and fits for certain: it is written behind.

        None if it needs more. A gateway that is killed loses what the client's next request brings again.
        """
        conversation, new = match.conversation, match.given.items
        size = None if conversation is None else conversation.size
        if conversation is None or size is None or size.is_compacted or len(self.writing) >= _WRITES_BEHIND:
            return None
        if size.limit is not None and (
            size.tokens + sum(map(len, new)) + _TOKENS_AROUND * len(new) > size.limit
            or any(map(_MAY_BE_LARGE.search, new))
        ):
            return None
        if not await self.conversations.is_extended(match, body):
            return None
        conversation.sent_after = size.checkpoint
        decision = RewriteDecision(
            owner=match.caller.owner,
            session_id=conversation.session_id,
            checkpoint=size.checkpoint,
            tokens_before=size.tokens,
            tokens_after=size.tokens,
            conversation=conversation,
            given=match.given,
        )
        if new:
            decision.writing = conversation.writing = asyncio.create_task(self._write_behind(match, body))
            self.writing.add(decision.writing)
            decision.writing.add_done_callback(self.writing.discard)
        return decision

    async def _write_behind(self, match: SessionMatch, body: RequestBody) -> bool:
        try:
            await self._write(match, body)
        except UnknownSession as gone:
            self.conversations.forget(gone.session_id or "")
        except Exception as problem:
            self._note_failure("a request that was forwarded is not in the log", problem)
        else:
            return True
        self.unwritten()
        if match.conversation is not None:
            match.conversation.size = None
        return False

    async def _write(self, match: SessionMatch, body: RequestBody) -> ClientSession | None:
        """Writes what is new in a list to the log of its conversation."""
        async with self._store_slot():
            conversation = await self.conversations.follow(match, body)
            if conversation is not None:
                conversation.size = await self.sessions.size(conversation.session_id)
        return conversation

    async def _decide(
        self, body: RequestBody, kind: CallKind, caller: Caller, summarizer: Model | None
    ) -> RewriteDecision:
        if not body.has_all_messages:
            return RewriteDecision("other")
        match = await self.conversations.match(caller, body)
        if kind != "generate" or self.is_side_call(match, body):
            return await self.decide_aside(match, body)
        if (first := await self._forward_first(match, body)) is not None:
            first.summarizer = summarizer
            return first
        decision = await self.follow(match, body, summarizer)
        await self.replace(body, decision)
        return decision

    def is_side_call(self, match: SessionMatch, body: RequestBody) -> bool:
        """Whether a client asks for a title or a summary of its own: by its prompt, or by the form of the request."""
        last, leading = match.given.messages[-1:], match.given.leading_messages
        return self.conversations.has_side_call_form(match, body) or has_side_call_prompt(body, last, leading)

    async def decide_aside(self, match: SessionMatch, body: RequestBody, *, continues: bool = False) -> RewriteDecision:
        """Decides about a request that is about a conversation and no part of it: nothing is written."""
        async with self._store_slot():
            conversation = await self.conversations.find(match)
        decision = RewriteDecision("side_call", given=match.given)
        if conversation is None:
            return decision
        size = await self.sessions.size(conversation.session_id)
        decision.session_id, decision.owner = conversation.session_id, match.caller.owner
        decision.tokens_before = decision.tokens_after = size.tokens
        if size.is_compacted or continues or conversation.is_redacted:
            context = await self.keeper(body, decision).context()
            extra = match.given.after(conversation.log.match(match.given.given).known)
            self._show(body, decision, context, extra)
        return decision

    async def follow(self, match: SessionMatch, body: RequestBody, summarizer: Model | None) -> RewriteDecision:
        """Writes what is new in a list to its session; decides to forward it as it is."""
        conversation = await self._write(match, body)
        if conversation is None:
            return RewriteDecision()
        return RewriteDecision(
            owner=match.caller.owner,
            session_id=conversation.session_id,
            conversation=conversation,
            given=match.given,
            summarizer=summarizer,
        )

    async def replace(
        self,
        body: RequestBody,
        decision: RewriteDecision,
        *,
        continues: bool = False,
        mark: Callable[[list[Json]], object] = lambda messages: None,
    ) -> None:
        """Decides to forward the session's context where it differs from the client's list, or if that `continues` it.

        Compacts before, if no room is left for the reply. `mark` sets marks on the messages.
        """
        if (conversation := decision.conversation) is None:
            return
        size = conversation.size or await self.sessions.size(conversation.session_id)
        decision.tokens_before = decision.tokens_after = size.tokens
        context: Context | None = None
        is_another = continues or conversation.is_redacted
        if size.limit is not None and size.tokens > size.limit:
            with self.waiting():
                context = await self.keeper(body, decision).prepare_step()
        elif size.is_compacted or is_another:
            context = await self.keeper(body, decision).context()
        if context is not None and (context.is_compacted or is_another):
            mark(context.messages)
            decision.outcome = "compacted" if context.is_compacted or continues else "redacted"
            self._show(body, decision, context)
        decision.checkpoint = conversation.sent_after = size.checkpoint if context is None else context.checkpoint

    def _show(self, body: RequestBody, decision: RewriteDecision, context: Context, extra: Sequence[Json] = ()) -> None:
        assert decision.given is not None
        decision.body = _replace_messages(body, context, decision.given, extra)
        decision.checkpoint = context.checkpoint
        decision.tokens_after = context.tokens
        decision.tokens_before = _estimate_before(body, decision)

    def measure(self, body: RequestBody) -> Callable[[Json], int]:
        """Returns an estimate of the tokens of a message."""
        estimator, format = self.sessions.estimator, body.protocol.format
        return lambda message: estimator.tokens(estimator.measure(decode_one(message, format)))

    # -- overflow -----------------------------------------------------------------------------------------

    async def recover(self, body: RequestBody, decision: RewriteDecision, failure: Failure) -> RewriteDecision | None:
        """Returns a smaller request after the provider refused one as too long; None if there is none.

        Without a session, or if that takes too long, the list alone is compacted, by the ledger.
        """
        try:
            with anyio.move_on_after(PREPARE_SECONDS):
                if decision.conversation is not None and await decision.written():
                    return await self._recover_session(body, decision, failure)
        except Exception as problem:
            log.warning("a session that is too long is not compacted: %s", type(problem).__name__, exc_info=True)
        try:
            return await self._recover_without_session(body, decision, failure)
        except Exception as problem:
            log.warning("a request that is too long is not compacted: %s", type(problem).__name__, exc_info=True)
            return None

    async def _recover_session(
        self, body: RequestBody, decision: RewriteDecision, failure: Failure
    ) -> RewriteDecision | None:
        recovery = await self.keeper(body, decision).on_overflow(failure)
        if recovery.context is None or decision.conversation is None or decision.given is None:
            log.warning("a request that is too long cannot be recovered: %s", recovery.why)
            return None
        decision.conversation.sent_after = recovery.context.checkpoint
        smaller = _replace_messages(body, recovery.context, decision.given)
        return msgspec.structs.replace(
            decision,
            outcome="recovered",
            body=smaller,
            checkpoint=recovery.context.checkpoint,
            tokens_after=recovery.context.tokens,
        )

    async def _recover_without_session(
        self, body: RequestBody, decision: RewriteDecision, failure: Failure
    ) -> RewriteDecision | None:
        """Compacts the list alone: the store cannot be used, or the call belongs to no session."""
        if not body.has_all_messages:
            return None
        window = self.window(body.model)
        if failure.window:
            self.sessions.stated.note(body.model, learned=failure.window)
            window = failure.window
        sent = body if decision.body is None else RequestBody(body.protocol, decision.body)
        messages = msgspec.json.decode(sent.messages)
        result = await acompact(
            messages,
            budget=window,
            format=body.protocol.format,
            system=body.system,
            tools=body.value("tools"),
            trigger=lambda _: True,
        )
        if result.tokens_after >= result.tokens_before:
            return None
        smaller = body.with_messages(msgspec.json.encode(result.messages))
        return RewriteDecision(
            "recovered", smaller, tokens_before=result.tokens_before, tokens_after=result.tokens_after
        )

    async def finish(self, body: RequestBody, decision: RewriteDecision, usage: Usage | None) -> None:
        """Records the usage of a reply, and compacts in the background if the preset's trigger fires."""
        conversation = decision.conversation
        if conversation is None or not await decision.written():
            return
        if usage is not None:
            conversation.usage = usage
        if conversation.session_id in self._running or conversation.not_due_at == conversation.version:
            return
        self._running.add(conversation.session_id)
        try:
            version = conversation.version
            async with self._store_slot():
                is_due = await self.sessions.due(conversation.session_id)
            if not is_due:
                conversation.not_due_at = version
            else:
                with anyio.fail_after(_BACKGROUND_SECONDS):
                    await self.keeper(body, decision).compact_if_due()
        except UnknownSession:
            self.conversations.forget(conversation.session_id)
        except Exception as problem:
            log.warning("a compaction in the background failed: %s", type(problem).__name__, exc_info=True)
        finally:
            self._running.discard(conversation.session_id)

    def window(self, model: str) -> int:
        """Returns the window of a model, for a request without a session."""
        facts = self.sessions.stated.of(model)
        window = facts.window(self.sessions.window or self.policy.window, self.policy.usual_window)
        return self.policy.usual_window if window is None else window.tokens

    def keeper(self, body: RequestBody, decision: RewriteDecision) -> Keeper:
        """Returns the keeper of a request's session."""
        return Keeper(
            self.sessions,
            decision.session_id,
            summarizer=decision.summarizer or self.sessions.model,
            format=body.protocol.format,
            listen=lambda event: self.on_event(event, decision.owner),
        )


def _estimate_before(body: RequestBody, decision: RewriteDecision) -> int:
    """Returns the tokens of the client's list, at as many for a byte as the compacted one has."""
    assert decision.body is not None
    return round(decision.tokens_after * max(1.0, len(body.raw) / len(decision.body)))


def _replace_messages(body: RequestBody, context: Context, given: MessageList, extra: Sequence[Json] = ()) -> bytes:
    shown = with_cache_marks([*context.messages, *extra], given.messages)
    return body.with_messages(msgspec.json.encode([*given.leading_messages, *shown]))
