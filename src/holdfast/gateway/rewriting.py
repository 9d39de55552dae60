"""Decides what is sent in place of a client's request: its own bytes, or its compacted context."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import anyio
import msgspec

from ..agent import Keeper
from ..compaction import acompact, preset
from ..compaction.presets import DEFAULT_PRESET
from ..errors import CorruptLog, StoreError, UnknownSession
from ..follow import count_leading_system
from ..hooks.events import CompactionEvent
from ..messages import Json, decode_one
from ..models.calls import Failure, Model
from ..sessions import Context, SessionService
from ..tokens import Usage
from ..triggers import always
from .client_sessions import Caller, ClientSession, ClientSessions, MessageList, SessionMatch
from .context_editing import ContextEdits
from .protocols import CallKind, RequestBody, has_side_call_prompt, mark_last_block, with_cache_marks
from .vendor_requests import CompactedContext, CompactionRequest

log = logging.getLogger("holdfast.gateway")
Outcome = Literal["unchanged", "compacted", "redacted", "recovered", "side_call", "failed", "too_large", "other"]
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


class RewriteDecision(msgspec.Struct):
    """What to forward for one request."""

    outcome: Outcome = "unchanged"
    body: bytes | None = None
    """The compacted request; None forwards what the client sent."""
    session_id: str = ""
    checkpoint: str = ""
    """Id of the compaction that is sent; empty for the client's own list."""
    owner: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    conversation: ClientSession | None = None
    given: MessageList | None = None
    summarizer: Model | None = None
    """Writes the summaries of this client, if not the service's model."""
    compacted: CompactedContext | None = None
    """The compaction that the client asked for."""
    writing: asyncio.Task[bool] | None = None
    """Writes the new messages to the log, and is true if that succeeded: the request does not wait for it."""

    async def written(self) -> bool:
        """Waits until the log has the messages of the request; false if that failed."""
        return self.writing is None or await asyncio.shield(self.writing)


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
        self._store_seconds = store_seconds
        self.sessions = sessions
        self.conversations = ClientSessions(sessions)
        self._policy = sessions.preset or preset(DEFAULT_PRESET)
        self._store_failed_until = float("-inf")
        self._store_slots = anyio.Semaphore(_STORE_SLOTS)
        self._on_event = on_event
        self.unwritten = unwritten
        self._running: set[str] = set()
        self.writing: set[asyncio.Task[bool]] = set()
        """Writes of requests that were forwarded first."""

    async def decide(
        self,
        body: RequestBody,
        kind: CallKind,
        caller: Caller,
        asked: CompactionRequest | None = None,
        summarizer: Model | None = None,
    ) -> RewriteDecision:
        """Returns what to forward. Never raises: on any failure, the request as it is."""
        if anyio.current_time() < self._store_failed_until:
            return RewriteDecision("failed")
        try:
            with anyio.fail_after(PREPARE_SECONDS):
                for _ in range(_SESSION_TRIES):
                    try:
                        return await self._decide(body, kind, caller, asked, summarizer)
                    except UnknownSession as gone:  # deleted by another process: what the client sends starts anew
                        self.conversations.forget(gone.session_id or "")
            return RewriteDecision("failed")
        except Exception as problem:
            self._note_failure("the request is forwarded as it is", problem)
            return RewriteDecision("failed")

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
            await self._follow(match, body)
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

    async def _follow(self, match: SessionMatch, body: RequestBody) -> ClientSession | None:
        """Writes what is new in a list to the log of its conversation, within the time for the store."""
        async with self._store_slots:
            with _store_deadline(self._store_seconds or _STORE_SECONDS):
                conversation = await self.conversations.follow(match, body)
                if conversation is not None:
                    conversation.size = await self.sessions.size(conversation.session_id)
        return conversation

    async def _decide(
        self,
        body: RequestBody,
        kind: CallKind,
        caller: Caller,
        asked: CompactionRequest | None,
        summarizer: Model | None,
    ) -> RewriteDecision:
        if not body.has_all_messages:
            return RewriteDecision("other")
        returned, now = (None, False) if asked is None else (asked.returned, asked.now)
        match = None if returned is None else await self.conversations.match_returned(caller, returned)
        continues = match is not None
        match = match or await self.conversations.match(caller, body)
        last, leading = match.given.messages[-1:], match.given.leading_messages
        own = now or (kind == "generate" and not self._is_side_call(body, match, last, leading))
        if own and asked is None and (first := await self._forward_first(match, body)) is not None:
            first.summarizer = summarizer
            return first
        async with self._store_slots:
            with _store_deadline(self._store_seconds or _STORE_SECONDS):
                if now and await self.conversations.has_more(match):
                    return RewriteDecision("other")
                conversation = None if own else await self.conversations.find(match)
        if own:
            conversation = await self._follow(match, body)
        if conversation is None:
            return RewriteDecision("unchanged" if own else "side_call")
        size = conversation.size if own else await self.sessions.size(conversation.session_id)
        assert size is not None
        given = match.given
        decision = RewriteDecision(
            "unchanged" if own else "side_call",
            owner=caller.owner,
            session_id=conversation.session_id,
            conversation=conversation if own else None,
            given=given,
            summarizer=summarizer,
        )
        decision.tokens_before = decision.tokens_after = size.tokens
        context: Context | None = None
        if own and asked is not None and asked.is_any:
            context = await self._keeper(body, decision).context()
            shown = context.messages
            if asked.is_due(context.tokens, lambda: shown, self._measure(body)):
                usage = await self._compact_as_asked(conversation.session_id, asked, context, summarizer)
                context = await self._keeper(body, decision).context()
                if usage is not None:
                    decision.compacted = await self._compacted(conversation, given, context, usage)
            size = await self.sessions.size(conversation.session_id)
        if own and size.limit is not None and size.tokens > size.limit:
            context = await self._keeper(body, decision).prepare_step()
        elif size.is_compacted or continues or conversation.is_redacted:
            context = context or await self._keeper(body, decision).context()
        if context is not None and (context.is_compacted or continues or conversation.is_redacted):
            extra = [] if own else given.after(conversation.log.match(given.given).known)
            if returned is not None and returned.mark is not None:
                mark_last_block(context.messages, returned.messages, returned.mark)
            decision.body = _replace_messages(body, context, given, extra)
            compacted: Outcome = "compacted" if context.is_compacted or continues else "redacted"
            decision.outcome = compacted if own else "side_call"
            decision.checkpoint = context.checkpoint
            decision.tokens_after = context.tokens
            decision.tokens_before = _estimate_before(body, decision)
        if own:
            conversation.sent_after = size.checkpoint if context is None else context.checkpoint
        return decision

    def _is_side_call(
        self, body: RequestBody, match: SessionMatch, last: Sequence[Json], leading: Sequence[Json]
    ) -> bool:
        """Whether a client asks for a title or a summary of its own: by its prompt, or by the form of the request."""
        return self.conversations.has_side_call_form(match, body) or has_side_call_prompt(body, last, leading)

    # -- compactions that clients ask for -----------------------------------------------------------------

    async def _compact_as_asked(
        self,
        session_id: str,
        asked: CompactionRequest,
        context: Context,
        summarizer: Model | None,
    ) -> Usage | None:
        """Compacts a session; returns the summarizer's usage, or None if a threshold was exceeded to no avail."""
        window = (await self.sessions.size(session_id)).window or context.tokens
        budget = max(1, min(context.tokens, window, asked.threshold or window))
        result = await self.sessions.compact(
            session_id,
            always if asked.now else lambda request: True,
            on_conflict="rebase",
            preset=self._policy,
            budget=budget,
            instructions=asked.instructions,
            summarizer=summarizer or self.sessions.model,
        )
        if not asked.now and result.tokens_after >= result.tokens_before:
            return None
        return Usage() if result.cost is None else result.cost.usage

    async def _compacted(
        self, conversation: ClientSession, given: MessageList, context: Context, usage: Usage
    ) -> CompactedContext:
        newest = await self.sessions.events(conversation.session_id, kind="compaction", last=1)
        return CompactedContext(
            context.messages,
            context.tokens,
            usage,
            session=conversation.session_id,
            last=conversation.log.ids[-1],
            checkpoint=newest[0].id if newest else "",
        )

    async def compact_list(self, body: RequestBody, asked: CompactionRequest) -> CompactedContext:
        """Compacts the messages of a request without a session."""
        messages: list[Json] = msgspec.json.decode(body.messages)
        messages = messages[count_leading_system(messages) :]
        measure = self._measure(body)
        window = self._window(body.model)
        budget = max(1, min(window, sum(map(measure, messages))))
        result = await acompact(
            messages,
            budget=budget,
            preset=self._policy.changed(window=window),
            format=body.protocol.format,
            system=body.system,
            tools=body.value("tools"),
            trigger=always,
            summarizer=self.sessions.model,
            instructions=asked.instructions,
        )
        usage = Usage() if result.cost is None else result.cost.usage
        return CompactedContext(list(result.messages), result.tokens_after, usage)

    def apply_edits(self, body: RequestBody, edits: ContextEdits, decision: RewriteDecision) -> list[Json]:
        """Clears from the forwarded request what its edits name; returns the edits that were applied."""
        forwarded = body if decision.body is None else RequestBody(body.protocol, decision.body)
        messages: list[Json] = msgspec.json.decode(forwarded.messages)
        measure = self._measure(body)
        tokens = decision.tokens_after or sum(map(measure, messages))
        edited, applied = edits.apply(messages, tokens, measure)
        if applied:
            decision.body = body.with_messages(msgspec.json.encode(edited))
            decision.tokens_after = tokens - sum(edit["cleared_input_tokens"] for edit in applied)
        return applied

    def _measure(self, body: RequestBody) -> Callable[[Json], int]:
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
        recovery = await self._keeper(body, decision).on_overflow(failure)
        if recovery.context is None or decision.conversation is None or decision.given is None:
            log.warning("a request that is too long cannot be recovered: %s", recovery.why)
            return None
        decision.conversation.sent_after = recovery.context.checkpoint
        smaller = _replace_messages(body, recovery.context, decision.given, [])
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
        window = self._window(body.model)
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
            with _store_deadline(self._store_seconds or _STORE_SECONDS):
                is_due = await self.sessions.due(conversation.session_id)
            if not is_due:
                conversation.not_due_at = version
            else:
                with anyio.fail_after(_BACKGROUND_SECONDS):
                    await self._keeper(body, decision).compact_if_due()
        except UnknownSession:
            self.conversations.forget(conversation.session_id)
        except Exception as problem:
            log.warning("a compaction in the background failed: %s", type(problem).__name__, exc_info=True)
        finally:
            self._running.discard(conversation.session_id)

    def _window(self, model: str) -> int:
        """Returns the window of a model, for a request without a session."""
        facts = self.sessions.stated.of(model)
        window = facts.window(self.sessions.window or self._policy.window, self._policy.usual_window)
        return self._policy.usual_window if window is None else window.tokens

    def _keeper(self, body: RequestBody, decision: RewriteDecision) -> Keeper:
        return Keeper(
            self.sessions,
            decision.session_id,
            summarizer=decision.summarizer or self.sessions.model,
            format=body.protocol.format,
            listen=lambda event: self._on_event(event, decision.owner),
        )


@contextmanager
def _store_deadline(seconds: float) -> Iterator[None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise StoreError(f"The store did not answer in {seconds:.0f} s.") from None


def _estimate_before(body: RequestBody, decision: RewriteDecision) -> int:
    """Returns the tokens of the client's list, at as many for a byte as the compacted one has."""
    assert decision.body is not None
    return round(decision.tokens_after * max(1.0, len(body.raw) / len(decision.body)))


def _replace_messages(body: RequestBody, context: Context, given: MessageList, extra: list[Json]) -> bytes:
    shown = with_cache_marks([*context.messages, *extra], given.messages)
    return body.with_messages(msgspec.json.encode([*given.leading_messages, *shown]))
