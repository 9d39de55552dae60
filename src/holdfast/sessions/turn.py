"""`sessions.turn(session_id, id=request_id)`: one turn of a conversation, idempotent and resumable on any process.

The lease named `turn` keeps two processes from doing the same turn. It only saves work: event ids deduplicate what is
stored, and every write names the version it was made for. A turn that was interrupted goes on where its log ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from ..context.events import Event, EventKind, message_in
from ..errors import DuplicateEvent, InvalidInput, StaleVersion, TurnSuperseded
from ..messages import (
    CUT_OFF_MARK,
    Json,
    Message,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    framed_message,
    reply_usage,
    user,
)
from ..models.calls import Failure, StepReply
from ..stores import Slice
from .continuation import CONTINUE_PROMPT, LengthRecovery, OverflowRecovery, drop_incomplete_calls
from .lease import LeaseTaken
from .message_events import message_events
from .steps import SessionSteps
from .turn_state import SAY, TurnState, fold_turn, is_unanswered, require_turn_id

if TYPE_CHECKING:
    from ..types import MessageLike, UsageLike
    from .live import LiveSession
    from .service import SessionService


class Turn:
    """One turn, inside its `async with` block: one at a time per session, over all processes.

        async with sessions.turn(session_id, id=request_id) as turn:
            if turn.done:
                return turn.reply  # a retry of a request that was answered
            await turn.say({"role": "user", "content": text})
            while True:
                await turn.results(await run(turn.calls))  # none at first; after a crash, those still open
                reply = await client.create(**await turn.request())
                if not await turn.receive(reply):
                    return turn.reply

    Entering waits until no other turn of the session runs. Models and tools run at least once: `key(call)` tells a
    tool that it ran before.
    """

    def __init__(self, sessions: SessionService, session_id: str, id: str) -> None:
        self.id = require_turn_id(id)
        self.session_id = session_id
        self.interrupted = False
        """Whether an earlier attempt at this turn ended without its reply: what it streamed to a person is lost."""
        self._sessions = sessions
        self._lease = sessions._leases.lease(session_id, "turn")
        self._live: LiveSession
        self._steps: SessionSteps
        self._events: list[Event] = []
        """Message events of the lane from `T/say` on."""
        self._state = TurnState("new")
        self._version = 0
        """Version of the session that the state was folded from."""
        self._made: tuple[int, str | None] | None = None
        """Version and checkpoint that the last request was made from."""

    async def __aenter__(self) -> Self:
        try:
            while True:
                try:
                    await self._lease.acquire()
                    break
                except LeaseTaken:
                    await self._sessions._leases.wait_released(self.session_id, "turn")
            self._live = await self._sessions._live(self.session_id)
            self._steps = SessionSteps(self._sessions, self.session_id)
            await self._fold()
        except BaseException:
            await self._lease.release()
            raise
        self.interrupted = self._state.status in ("asked", "called")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lease.release()

    # -- what the turn has ------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether the model has given its last reply, now or in an earlier attempt."""
        return self._state.status == "done"

    @property
    def reply(self) -> Json | None:
        """The last stored reply, as the provider's message."""
        return None if self._state.reply is None else self._state.reply.message

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls to run: those of the last reply that have no stored result."""
        return tuple(self._state.calls.values())

    def key(self, call: ToolCall) -> str:
        """Returns the same key for the same call in every attempt, for tools that deduplicate what they do."""
        return f"{self.session_id}/{self.id}/{self._state.replies}/{self._place(call.id)}"

    # -- the steps of a turn ----------------------------------------------------------------------------

    async def say(self, message: MessageLike) -> None:
        """Stores the user's message, once; closes what an earlier turn left open, in the same append.

        Raises DuplicateEvent if this turn has another message, TurnSuperseded if a newer turn has begun.
        """
        name = f"{self.id}{SAY}"
        given = user(message) if isinstance(message, str) else message
        (words,), _ = decode_all([given], self._live.record.format)
        while self._state.status == "new":
            view = await self._live.view()
            lost = bool(view.ids) and not view.pending_calls and is_unanswered(view.ids[-1])
            mark = Message("assistant", (Text(CUT_OFF_MARK),))
            messages, ids = ([mark, words], [f"{name}~", name]) if lost else ([words], [name])
            if await self._append(messages, ids, self._version):
                return
        self._require_current()
        if words.parts != message_in(self._events[0]).parts:
            raise DuplicateEvent(name, self.session_id)

    async def request(self) -> Json:
        """Returns what to send: keyword arguments for the provider's call in the session's format.

        Waits for a running compaction, at most a lease for one whose process died, and compacts if due, without a
        model if need be. Calls that are still open are closed as interrupted. Raises NoRoom, with the smallest
        context, if nothing more can be archived.
        """
        await self._fold()
        self._require_current()
        if self._state.status not in ("asked", "called"):
            raise InvalidInput("Nothing to send: call say() first, and stop when receive() returned False.")
        self._steps.prompt_id = f"{self.id}/{self._state.replies}~{self._version}"
        context = await self._steps.prepare()
        await self._steps.require_room(context)
        self._made = context.version, context.checkpoint
        return context.request

    async def receive(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> bool:
        """Stores a reply with its usage; returns False when the model is done.

        Takes what the SDK returned, or its message with `usage`. A reply to an outdated context is not stored: True is
        returned, and `request` has the newer one.
        """
        with anyio.CancelScope(shield=True):
            await self._store(drop_incomplete_calls(self._steps.decode_reply(reply)[0]), reply, usage)
        return not self.done

    async def results(self, results: Sequence[MessageLike | ToolResult]) -> None:
        """Stores results of open calls, each once: messages in the session's format, or `ToolResult` objects."""
        given = [Message("tool", (item,)) if isinstance(item, ToolResult) else item for item in results]
        messages = decode_all(given, self._live.record.format)[0] if given else []
        while new := [message for message in messages if any(self._is_open(result) for result in message.results)]:
            ids = [f"{self.id}/{self._state.replies}/{self._first_place(message)}" for message in new]
            with anyio.CancelScope(shield=True):
                if await self._append(new, ids, self._version):
                    return

    async def overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> OverflowRecovery:
        """Compacts after the provider rejected the request as too long; `retry` says whether to send a new one."""
        self._steps.prompt_id = f"{self.id}/{self._state.replies}~{self._live.version}"
        return await self._steps.on_overflow(problem, streamed=streamed)

    async def cut_off(
        self, reply: StepReply | MessageLike | Sequence[MessageLike], usage: UsageLike | None = None
    ) -> LengthRecovery:
        """Stores a reply that was cut off at its length limit, in place of `receive`.

        If the window was full it compacts, and the status is `go_on`: the next request lets the model continue.
        """
        decoded, format = self._steps.decode_reply(reply)
        kept = drop_incomplete_calls(decoded)
        with anyio.CancelScope(shield=True):
            events = await self._store(kept, reply, usage)
        self._steps.prompt_id = f"{self.id}/{self._state.replies}~"
        status, why = await self._steps.compact_if_full()
        await self._fold()
        if status == "go_on" and self.done:  # the compaction archived the reply, and needed no prompt to continue
            prompt = framed_message(CONTINUE_PROMPT, aside=True)
            await self._sessions.append(self.session_id, prompt, id=self._steps.prompt_id, aside=True)
            await self._fold()
        calls = tuple(call for message in kept for call in message.calls)
        return LengthRecovery(status, encode_all(kept, format), calls, events, why)

    # -- internals -------------------------------------------------------------------------------------------

    async def _store(self, messages: list[Message], reply: Any, usage: UsageLike | None) -> list[Event]:
        """Stores a reply to the last request; returns nothing if the conversation has moved on since."""
        self._require_current()
        if self._state.status == "new":
            raise InvalidInput("There is nothing to answer yet: call say() before receive().")
        if not messages:
            raise InvalidInput("The reply has no text and no complete call: call the model again.")
        if self._state.status != "asked":
            return []
        after, made_on = self._made or (self._version, self._live.tip(None).epoch)
        model = reply.model if isinstance(reply, StepReply) else None
        id, usage = f"{self.id}/{self._state.replies + 1}", usage or reply_usage(reply)
        ids = [f"{id}.{index}" if index else id for index in range(len(messages))]
        return await self._append(messages, ids, after, usage=usage, model=model, made_on=made_on or "")

    async def _append(
        self, messages: list[Message], ids: list[str], after: int, made_on: str | None = None, **fields: Any
    ) -> list[Event]:
        """Appends messages made for the version `after`; returns none if other messages came first.

        Marks alone (compactions, pins) do not matter: the append is tried again. In any case the state is folded anew.
        """
        while True:
            live = self._live
            try:
                view = await live.view()
                ready = message_events(
                    messages, view, lane=None, ids=ids, format=live.record.format, made_on=made_on, **fields
                )
                events = await self._sessions._append(live, ready, None, after=after)
            except (StaleVersion, DuplicateEvent) as problem:
                await self._fold()
                self._require_current()
                if isinstance(problem, DuplicateEvent) or await self._has_messages_after(after):
                    return []
                after = self._version
            else:
                await self._fold()
                return events

    async def _fold(self) -> None:
        """Reads what was appended since the last time, and folds the state."""
        await self._live.refresh()
        live, first = self._live, f"{self.id}{SAY}"
        if not self._events:
            self._events = [event for event in await live.events([first]) if event.lane is None]
        if self._events:
            new = Slice(after=self._events[-1].seq, until=live.version, kinds=(EventKind.MESSAGE,))
            self._events += await live.with_media(await live.store.read(live.id, new))
        self._state = fold_turn(self.id, self._events, (await live.view()).pending_calls)
        self._version = live.version

    async def _has_messages_after(self, version: int) -> bool:
        since = Slice(after=version, kinds=(EventKind.MESSAGE,), limit=1)
        return bool(await self._live.store.read(self.session_id, since))

    def _require_current(self) -> None:
        if self._state.status == "superseded":
            raise TurnSuperseded(self.session_id, self.id)

    def _place(self, call_id: str) -> int:
        place = next((place for place, call in self._state.calls.items() if call.id == call_id), None)
        if place is None:
            raise InvalidInput(f"Turn {self.id!r} has no open call {call_id!r}: use the calls of `turn.calls`.")
        return place

    def _is_open(self, result: ToolResult) -> bool:
        return any(call.id == result.call_id for call in self._state.calls.values())

    def _first_place(self, message: Message) -> int:
        return min(self._place(result.call_id) for result in message.results if self._is_open(result))
