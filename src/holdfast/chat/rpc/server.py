"""`serve`: an RPC connection that dispatches requests to a chat and sends responses, events and approvals."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Callable
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import BinaryIO, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from ...agent.events import AgentEvent
from ...agent.tools import Mode, Permission, PermissionRequest, Sandbox, approve_all, refusal
from ...context.events import Event, EventKind, SessionRecord, try_message_in
from ...errors import HoldfastError, InvalidInput, Outcome
from ...io.processes import stop_on_signals
from ...io.streams import MAX_LINE_BYTES, JsonLinesWriter, OversizedLine, read_descriptor, split_lines
from ...models import resolve_chat_model, scrub
from ...recall.passage import resolve_reference
from ...sessions.history import user_message_in
from ...settings import Settings
from ...transcripts.exporting import export_session
from ..chat import Chat
from ..open_chat import open_chat
from ..prompt_runner import PromptRunner
from ..state import ChatCompactionResult, compaction_error_event, compaction_failure_message, may_succeed_again
from .records import (
    AbortData,
    ApprovalRequest,
    AutoCompactionData,
    EmptyData,
    ExportData,
    HandoffData,
    Hello,
    LoggedMessage,
    MessagesData,
    ModeData,
    ModelData,
    RpcError,
    RpcResponse,
    SessionData,
    SessionListData,
    SessionListing,
    UndoData,
)
from .requests import (
    AbortRequest,
    ApproveRequest,
    BranchRequest,
    CompactRequest,
    ContinueRequest,
    ExportRequest,
    ForkRequest,
    GetCostRequest,
    GetMessagesRequest,
    GetStateRequest,
    HandoffRequest,
    InvalidRequest,
    ListSessionsRequest,
    NewSessionRequest,
    PromptRequest,
    RpcRequest,
    SetAutoCompactionRequest,
    SetModelRequest,
    SetModeRequest,
    SteerRequest,
    SwitchSessionRequest,
    UndoRequest,
    parse_request,
)


class _OpenApproval:
    """An approval request without an answer yet."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.permission: Permission = "no"
        self.message = ""


class ClientApprovals:
    """Asks the client before a tool changes something; an abort withdraws the request."""

    def __init__(self, send: Callable[[ApprovalRequest], object]) -> None:
        self._send = send
        self._open: dict[str, _OpenApproval] = {}
        self._numbers = count(1)

    async def ask(self, question: PermissionRequest) -> Permission:
        """Sends an approval request and waits for the client's answer."""
        name = f"approval-{next(self._numbers)}"
        pending = self._open[name] = _OpenApproval()
        call = question.call
        try:
            self._send(
                ApprovalRequest(
                    name,
                    question.tool,
                    question.line,
                    call.id,
                    call.arguments_dict,
                    question.rule,
                    question.about,
                    "" if question.change is None else question.change.diff,
                )
            )
            await pending.answered.wait()
            if pending.message:
                raise refusal(pending.message)
            return pending.permission
        finally:
            del self._open[name]

    def resolve(self, name: str, permission: Permission, message: str = "") -> None:
        """Answers an open request, a refusal with words for the model; raises `InvalidInput` if it is not open."""
        if message and permission != "no":
            raise InvalidInput("A message goes with the permission no: send it as a prompt, or steer.")
        if name not in self._open:
            raise InvalidInput(f"No approval {name!r} is pending: it was already answered, or aborted.")
        self._open[name].permission, self._open[name].message = permission, message
        self._open[name].answered.set()


async def context_messages(chat: Chat) -> MessagesData:
    """Returns the messages that would be sent to the model now."""
    context = await chat.sessions.context(chat.record.id)
    return MessagesData(context.messages, context.format)


async def logged_messages(chat: Chat) -> MessagesData:
    """Returns all user and assistant messages of the session, archived ones included."""
    events = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="")
    archived = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="", archived=True)
    archived_ids = {event.id for event in archived}
    return MessagesData(
        [line for event in events if (line := _logged_message(event, event.id in archived_ids)) is not None], None
    )


async def list_sessions(chat: Chat, limit: int) -> SessionListData:
    if limit < 1:
        raise InvalidInput(f"limit is how many sessions to list: at least 1, not {limit}.")
    found = await chat.sessions.list(limit=limit)
    return SessionListData([SessionListing(one.id, one.created, one.version, one.parent, one.model) for one in found])


async def resolve_event(chat: Chat, at: str | int, *, of_user: bool = False) -> str:
    """Returns the id of the event with this id or number; with `of_user`, it must be a user message."""
    record = await chat.sessions.get(chat.record.id)
    place = await resolve_reference(chat.sessions.store, record, str(at))
    if place.first.id != place.last.id or place.offset:
        raise InvalidInput(f"{at!r} names more than one event, or a part of one: give the number or the id of one.")
    if of_user and user_message_in(place.first) is None:
        raise InvalidInput(f"{at!r} is not a user message: branch from a user message, or fork at any event.")
    return place.first.id


def _logged_message(event: Event, archived: bool) -> LoggedMessage | None:
    """Returns None for tool results and messages written by a program."""
    message = try_message_in(event)
    if message is None or (user_message_in(event) is None and message.role != "assistant"):
        return None
    role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
    return LoggedMessage(event.seq, event.id, role, message.text, len(message.calls), archived)


log = logging.getLogger("holdfast")
SendRecord = Callable[[msgspec.Struct], object]
_LONG_RUNNING = (PromptRequest, ContinueRequest, CompactRequest)
"""Run concurrently: other requests are read meanwhile."""


class RpcConnection:
    """Handles requests in order; each is answered before the next is read, except long-running ones."""

    def __init__(self, chat: Chat, approvals: ClientApprovals, send: SendRecord) -> None:
        self._chat = chat
        self._approvals = approvals
        self._send = send
        self._runner = PromptRunner()
        self._compacting = False

    def handle_event(self, event: AgentEvent) -> None:
        """Forwards an event of the chat to the client."""
        self._runner.handle_event(event)
        self._send(event)
        if not self._compacting and (problem := compaction_error_event(event, _possible_requests)) is not None:
            self._send(problem)

    async def run(self, chunks: AsyncIterable[bytes]) -> None:
        """Handles lines until the input ends, then aborts what is running."""
        async with anyio.create_task_group() as group:
            async for line in split_lines(chunks):
                await self._handle_line(line, group)
            self._runner.abort(self._chat)

    # -- one request ------------------------------------------------------------------------------------

    async def _handle_line(self, line: bytes | OversizedLine, group: TaskGroup) -> None:
        """Answers every line with one response or one error."""
        try:
            if isinstance(line, OversizedLine):
                raise InvalidRequest(f"This line has more than {MAX_LINE_BYTES:,} bytes: send a shorter one.")
            request = parse_request(line)
        except InvalidRequest as problem:
            self._send(RpcError(str(problem), problem.id))
            return
        if isinstance(request, _LONG_RUNNING):
            await group.start(self._start_long_request, request)
        else:
            await self._handle_request(request)

    async def _start_long_request(self, request: RpcRequest, *, task_status: TaskStatus[None]) -> None:
        """Signals its start before running, so that a following abort finds it."""
        task_status.started()
        await self._handle_request(request)

    async def _handle_request(self, request: RpcRequest) -> None:
        try:
            data = await self._dispatch(request)
        except HoldfastError as problem:
            self._send(RpcError(str(problem), request.id))
        except Exception as problem:
            log.exception("request %s failed", request.command)
            self._send(RpcError(f"The request {request.command!r} failed: {scrub(repr(problem))}.", request.id))
        else:
            self._send(RpcResponse(id=request.id, command=request.command, data=data))

    async def _dispatch(self, request: RpcRequest) -> msgspec.Struct:
        chat = self._chat
        match request:
            case PromptRequest():
                return await self._runner.run_prompt(chat, _require_text(request.text))
            case ContinueRequest():
                return await self._runner.run_prompt(chat, None)
            case SteerRequest():
                return self._steer(_require_text(request.text))
            case AbortRequest():
                return AbortData(chat.activity, self._runner.abort(chat))
            case CompactRequest():
                return await self._compact(request)
            case SetAutoCompactionRequest():
                chat.configure(auto=request.enabled)
                return AutoCompactionData(request.enabled)
            case ApproveRequest():
                self._approvals.resolve(request.request, request.permission, request.message)
                return EmptyData()
            case SetModeRequest():
                chat.permissions.mode = request.mode
                return ModeData(request.mode)
            case GetStateRequest():
                state = await chat.state()
                return msgspec.structs.replace(state, waiting=state.waiting + self._runner.pending)
            case GetCostRequest():
                return await chat.costs()
            case GetMessagesRequest():
                return await (logged_messages(chat) if request.whole else context_messages(chat))
            case ListSessionsRequest():
                return await list_sessions(chat, request.limit)
            case ExportRequest():
                exported = await export_session(chat.sessions, chat.record.id, request.format)
                return ExportData(request.format, exported.data.decode(), exported.warnings)
        return await self._change_session(request)

    async def _change_session(self, request: RpcRequest) -> msgspec.Struct:
        """Handles requests that switch the session or its view; refused while the agent works."""
        chat = self._chat
        if not self._runner.idle:
            raise InvalidInput("The agent is working: wait until it is done, or stop it first.")
        match request:
            case BranchRequest():
                return _session_data(await chat.fork(await resolve_event(chat, request.at, of_user=True)))
            case ForkRequest():
                return _session_data(
                    await chat.fork(None if request.at is None else await resolve_event(chat, request.at))
                )
            case UndoRequest():
                return UndoData(await chat.undo())
            case NewSessionRequest():
                return _session_data(await chat.new())
            case SwitchSessionRequest():
                return _session_data(await chat.switch(request.session))
            case SetModelRequest():
                chat.configure(model=resolve_chat_model(request.model))
                return ModelData(chat.model.name, (await chat.agent.keeper.size()).window or 0)
            case HandoffRequest():
                return await self._hand_off(_require_text(request.goal))
        raise AssertionError(request.command)

    async def _hand_off(self, goal: str) -> HandoffData:
        """Drafts the first message of a new session with this goal, and switches to that session."""
        chat = self._chat
        with chat.abortable() as abort:
            drafted = await chat.sessions.handoff(chat.record.id, goal, summarizer=chat.summary_model, abort=abort)
        record = await chat.new(how="handed_off")
        return HandoffData(record.id, drafted.message, tuple(drafted.remarks))

    def _steer(self, text: str) -> EmptyData:
        if self._chat.activity == "idle":
            raise InvalidInput("The agent is idle and cannot be steered: send a prompt.")
        self._chat.send(text)
        return EmptyData()

    async def _compact(self, request: CompactRequest) -> ChatCompactionResult:
        if self._compacting:
            raise InvalidInput("A compaction is already running: wait until it is done, or stop it.")
        self._compacting = True
        try:
            done = await self._chat.compact(request.instructions, without_model=request.without_model)
        finally:
            self._compacting = False
        if done.outcome in _FAILED_OUTCOMES and done.tokens_after >= done.tokens_before:
            raise HoldfastError(compaction_failure_message(done.outcome, done.why, _possible_requests(done.outcome)))
        return done


def _possible_requests(outcome: str) -> str:
    """Names the requests that would change something after a compaction that failed in this way."""
    again = "compact to try again, compact with without_model to do it without a model, " * may_succeed_again(outcome)
    return f"send {again}new_session to start over, or prompt to continue unchanged"


_FAILED_OUTCOMES = (Outcome.SUMMARY_FAILED, Outcome.CANNOT_FIT)


def _session_data(record: SessionRecord) -> SessionData:
    return SessionData(record.id, record.parent)


def _require_text(text: str) -> str:
    if not text.strip():
        raise InvalidInput("The text is empty: send some text.")
    return text


async def serve(
    settings: Settings,
    descriptor: int,
    stream: BinaryIO,
    *,
    folder: str | Path,
    session: str | None = None,
    yes: bool = False,
    mode: Mode = "ask",
    sandbox: Sandbox | None = None,
) -> int:
    """Reads requests from a descriptor and writes records to a stream; returns the exit code."""
    out = JsonLinesWriter(stream)
    approvals = ClientApprovals(out.send)
    early: list[AgentEvent] = []
    connection: RpcConnection | None = None

    def on_event(event: AgentEvent) -> None:
        if connection is None:
            early.append(event)
        else:
            connection.handle_event(event)

    approve = approve_all if yes else approvals.ask
    async with open_chat(
        settings, folder=folder, on_event=on_event, approve=approve, session=session, mode=mode, sandbox=sandbox
    ) as chat:
        connection = RpcConnection(chat, approvals, out.send)
        out.send(Hello(version=version("holdfast-context"), session=chat.record.id))
        for event in early:
            out.send(event)
        async with out.running(), read_descriptor(descriptor) as incoming, stop_on_signals(incoming.close) as stopped:
            await connection.run(incoming)
    if out.broken:
        raise BrokenPipeError
    return stopped.exit_code or 0
