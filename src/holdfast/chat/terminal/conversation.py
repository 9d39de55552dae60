"""State of the conversation behind the terminal: transcript, footer, pending approval, and typed lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

import anyio

from ...agent.events import AgentEvent, ErrorEvent, RunFinished, SessionChanged, Unsent
from ...agent.tools import Permission, PermissionRequest, refusal
from ...errors import HoldfastError
from ...hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped
from ...sessions.session_ids import shorten_id
from ..chat import Chat
from ..commands import CommandResult, hidden_command_notes, run_command
from ..commands.sessions import describe_session
from . import entries
from .attention import Status
from .footer import FooterState
from .history import entries_of, load_history
from .presenter import CONTINUE_HINT, EventPresenter
from .transcript import TerminalTranscript


class PendingApproval:
    """The question awaiting the user's answer; one at a time, since tools run one after the other."""

    def __init__(self, on_change: Callable[[], object]) -> None:
        self.question: PermissionRequest | None = None
        self._answer: asyncio.Future[Permission] | None = None
        self._on_change = on_change

    async def ask(self, question: PermissionRequest) -> Permission:
        """Waits for the answer, or until the agent is aborted."""
        self.question, self._answer = question, asyncio.get_running_loop().create_future()
        self._on_change()
        try:
            return await self._answer
        finally:
            self.question = self._answer = None
            self._on_change()

    def answer(self, permission: Permission, words: str = "") -> None:
        """Answers the open question, a refusal with words for the model; ignored if there is none."""
        if self._answer is None or self._answer.done():
            return
        if words:
            self._answer.set_exception(refusal(words))
        else:
            self._answer.set_result(permission)


ANOTHER = "another chat"
_SHUTDOWN_TIMEOUT = 5.0
"""Seconds to wait for a running job on exit."""
_STATE_CHANGING_EVENTS = RunFinished | SessionChanged | CompactionCompleted | CompactionFailed | CompactionSkipped


class Conversation:
    """Applies events to the transcript at once; the screen draws them at its own pace.

    It outlives the screen: `handle_event` and `pending_approval.ask` may be called before it exists and after it is
    closed. Set `chat` before sending prompts.
    """

    chat: Chat

    def __init__(self) -> None:
        self.redraw_needed = asyncio.Event()
        """Set when there is something to draw."""
        self.transcript = TerminalTranscript(self.redraw_needed.set)
        self.footer_state = FooterState()
        self.presenter = EventPresenter(self.transcript, self.footer_state)
        self.pending_approval = PendingApproval(self.redraw_needed.set)
        self.returned_input: list[str] = []
        """Unsent texts to put back into the input."""
        self._session_change: SessionChanged | None = None
        self._seen: int | None = None
        """Number of the newest event that was looked at; None before the session is shown."""
        self._state_stale = True
        self._commands = 0
        self._ended: tuple[Status, str] = ("", "")
        """How the last run ended."""

    @property
    def busy(self) -> bool:
        return self.chat.activity != "idle" or bool(self._commands)

    @property
    def attention(self) -> tuple[Status, str, str]:
        """What the chat does, the name of its folder, and a description."""
        name = self.chat.folder.root.name
        if (question := self.pending_approval.question) is not None:
            return "waiting", name, f"may it use {question.tool}? {question.line}"
        if activity := self.footer_state.activity:
            return "busy", name, activity
        return self._ended[0], name, self._ended[1]

    def handle_event(self, event: AgentEvent) -> None:
        """Applies an event; draws nothing."""
        match event:
            case RunFinished() if event.status != "aborted":
                failed = event.status != "done"
                self._ended = ("failed", event.why or event.status) if failed else ("done", "done")
            case RunFinished() | SessionChanged():
                self._ended = ("", "")
        match event:
            case SessionChanged():
                self.presenter.reset()
                self._seen = None
                self._session_change = event
            case Unsent():
                self.transcript.withdraw(event.text)
                self.returned_input.append(event.text)
            case _:
                self.presenter.handle_event(event)
        self._state_stale |= isinstance(event, _STATE_CHANGING_EVENTS)
        self._sync_pending_input()

    async def refresh(self) -> Sequence[str] | None:
        """Loads what events do not carry: the history of a new session, and the chat's state.

        Returns the user's prompts if the session has changed.
        """
        prompts = None
        try:
            while (change := self._session_change) is not None:
                shown, prompts, newest = await load_history(self.chat)
                self.footer_state.session = await shorten_id(self.chat.sessions, self.chat.record.id)
                title, folder, age = await describe_session(self.chat)
                if change is not self._session_change:
                    continue  # the session changed again meanwhile
                self._session_change, self._seen = None, newest
                header = entries.SessionHeaderEntry(change.how, title, folder, self.chat.model.name, age)
                self.transcript.prepend_history([header, *self._start_notes(), *shown])
                if change.how == "resumed" and await self.chat.is_unfinished():
                    self.transcript.add(entries.NoteEntry(f"The last message has no answer yet: {CONTINUE_HINT}."))
            if self._state_stale:
                self._state_stale = False
                self.footer_state.update_session(await self.chat.state())
                self.footer_state.threshold = (await self.chat.agent.keeper.size()).threshold
        except (HoldfastError, OSError) as problem:
            self.presenter.handle_event(ErrorEvent(str(problem)))
        return prompts

    async def show_earlier(self) -> None:
        """Shows the page of the conversation before the first one shown."""
        if (place := self.transcript.earlier) is None:
            return
        try:
            shown = (await load_history(self.chat, place.before))[0]
        except (HoldfastError, OSError) as problem:
            shown = [entries.NoteEntry(str(problem), "problem")]
        self.transcript.insert_earlier(place, shown)

    async def show_others(self) -> None:
        """Shows what other processes added to the session, and whether one of them is in a turn."""
        if self._seen is None or self._session_change is not None:
            return
        session_id = self.chat.record.id
        try:
            events, version, in_turn = await self.chat.sessions.others(session_id, self._seen)
        except (HoldfastError, OSError):
            return  # what reads the session next says why
        if session_id != self.chat.record.id or self._session_change is not None:
            return
        self._seen = version
        for entry in entries_of(events, origin=ANOTHER):
            self.transcript.add(entry)
        self._state_stale |= bool(events)
        other = ANOTHER if in_turn and self.chat.activity != "running" else ""
        if events or other != self.footer_state.other:
            self.footer_state.other = other
            self.redraw_needed.set()

    def _start_notes(self) -> list[entries.TerminalEntry]:
        """Returns what was read at the start, and what of it was cut or left out."""
        read = [file.summary for file in self.chat.instructions]
        lines = [entries.NoteEntry(f"Project instructions: {', '.join(read)}")] if read else []
        notes = (*self.chat.notes, *hidden_command_notes(self.chat))
        return [*lines, *(entries.NoteEntry(note, "warning") for note in notes)]

    async def run_line(self, line: str) -> CommandResult:
        """Runs a prompt, a command, or Enter alone."""
        is_command = line.startswith(("/", "!")) and not line.startswith("//")
        command, ended = entries.PromptEntry(line), self.presenter.compactions_ended
        if is_command:
            self.transcript.add(command)
        self._commands += is_command
        try:
            result = await run_command(self.chat, line, width=sys.maxsize)
        finally:
            self._commands -= is_command
            if line.startswith("!"):
                self.presenter.end_shell()
        if result.choices is not None:
            self.transcript.remove(command)
        if (
            result.choices is None
            and result.text
            and not (line.startswith("/compact") and self.presenter.compactions_ended > ended)
        ):
            self.transcript.add_after(command, entries.CommandOutputEntry(*(result.blocks or [result.text])))
        self._state_stale = True
        self._sync_pending_input()
        return result

    async def stop(self) -> None:
        """Aborts what is running and waits until it is stored."""
        self.chat.abort()
        with anyio.move_on_after(_SHUTDOWN_TIMEOUT):
            await self.chat.wait_idle()

    def _sync_pending_input(self) -> None:
        if hasattr(self, "chat"):
            self.presenter.sync_pending(self.chat.agent.undelivered)
        self.redraw_needed.set()
