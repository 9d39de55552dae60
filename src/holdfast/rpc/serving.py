"""One client and one chat: requests in, responses and events out, until there are no more (P9, P11)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Callable

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from ..agent.events import AgentEvent
from ..chat import Chat, Compacted, Turns, problem_in
from ..chat.problems import failed
from ..errors import HoldfastError, InvalidInput
from ..events import SessionRecord
from ..lines import LONGEST, TooLong, lines_of
from ..models import scrub
from ..outcome import Outcome
from . import requests as ask
from .approvals import Approvals
from .looking import context_of, event_at, said_in, sessions_of
from .reading import Unreadable, read_request
from .records import AutoCompaction, Done, Entered, Refused, Response, Stopped, Undone

log = logging.getLogger("holdfast")
Send = Callable[[msgspec.Struct], object]
_LONG = (ask.Prompt, ask.GoOn, ask.Compact)
"""Answered when they are done; meanwhile others are heard."""


class Serving:
    """Requests are taken in their order, and each is answered before the next one is read, but for the long ones."""

    def __init__(self, chat: Chat, approvals: Approvals, send: Send) -> None:
        self._chat = chat
        self._approvals = approvals
        self._send = send
        self._turns = Turns()
        self._compacting = False

    def tell(self, event: AgentEvent) -> None:
        """An event of the chat."""
        self._turns.hear(event)
        self._send(event)
        if not self._compacting and (problem := problem_in(event)) is not None:
            self._send(problem)

    async def run(self, chunks: AsyncIterable[bytes]) -> None:
        """Until the input ends: what is running then is stopped, since nobody is left who could want it."""
        async with anyio.create_task_group() as group:
            async for line in lines_of(chunks):
                await self._hear(line, group)
            self._turns.stop(self._chat)

    # -- one request ------------------------------------------------------------------------------------

    async def _hear(self, line: bytes | TooLong, group: TaskGroup) -> None:
        """Every line gets one response or one error."""
        try:
            if isinstance(line, TooLong):
                raise Unreadable(f"This line has more than {LONGEST:,} bytes: send a shorter one.")
            request = read_request(line)
        except Unreadable as problem:
            self._send(Refused(str(problem), problem.id))
            return
        if isinstance(request, _LONG):
            await group.start(self._begin, request)
        else:
            await self._reply(request)

    async def _begin(self, request: ask.Request, *, task_status: TaskStatus[None]) -> None:
        """The next line is read once this has begun, so that an abort finds something to stop."""
        task_status.started()
        await self._reply(request)

    async def _reply(self, request: ask.Request) -> None:
        try:
            data = await self._answer(request)
        except HoldfastError as problem:
            self._send(Refused(str(problem), request.id))
        except Exception as problem:
            log.exception("the request %s broke", request.command)
            self._send(Refused(f"The request {request.command!r} broke: {scrub(repr(problem))}.", request.id))
        else:
            self._send(Response(id=request.id, command=request.command, data=data))

    async def _answer(self, request: ask.Request) -> msgspec.Struct:
        chat = self._chat
        match request:
            case ask.Prompt():
                return await self._turns.ask(chat, _said(request.text))
            case ask.GoOn():
                return await self._turns.ask(chat, None)
            case ask.Steer():
                return self._steer(_said(request.text))
            case ask.Abort():
                return Stopped(chat.activity, self._turns.stop(chat))
            case ask.Compact():
                return await self._compact(request.instructions)
            case ask.SetAutoCompaction():
                chat.use(auto=request.enabled)
                return AutoCompaction(request.enabled)
            case ask.Approve():
                self._approvals.settle(request.request, request.permission)
                return Done()
            case ask.GetState():
                state = await chat.state()
                return msgspec.structs.replace(state, waiting=state.waiting + self._turns.waiting)
            case ask.GetMessages():
                return await (said_in(chat) if request.whole else context_of(chat))
            case ask.ListSessions():
                return await sessions_of(chat, request.limit)
        return await self._move(request)

    async def _move(self, request: ask.Request) -> msgspec.Struct:
        """To another session, or to another view of this one."""
        chat = self._chat
        if not self._turns.idle:
            raise InvalidInput("The agent is working: wait until it is done, or stop it first.")
        match request:
            case ask.Branch():
                return _entered(await chat.fork(await event_at(chat, request.at, of_user=True)))
            case ask.Fork():
                return _entered(await chat.fork(None if request.at is None else await event_at(chat, request.at)))
            case ask.Undo():
                return Undone(await chat.undo())
            case ask.NewSession():
                return _entered(await chat.new())
            case ask.SwitchSession():
                return _entered(await chat.switch(request.session))
        raise AssertionError(request.command)

    def _steer(self, text: str) -> Done:
        if self._chat.activity == "idle":
            raise InvalidInput("The agent is at rest, and would not hear this: send a prompt.")
        self._chat.say(text)
        return Done()

    async def _compact(self, instructions: str | None) -> Compacted:
        if self._compacting:
            raise InvalidInput("A compaction is running already: wait for it, or stop it first.")
        self._compacting = True
        try:
            done = await self._chat.compact(instructions)
        finally:
            self._compacting = False
        if done.outcome in _FAILED and done.tokens_after >= done.tokens_before:
            raise HoldfastError(failed(done.outcome, done.why))
        return done


_FAILED = (Outcome.SUMMARY_FAILED, Outcome.CANNOT_FIT)


def _entered(record: SessionRecord) -> Entered:
    return Entered(record.id, record.parent)


def _said(text: str) -> str:
    if not text.strip():
        raise InvalidInput("The text is empty: say something.")
    return text
