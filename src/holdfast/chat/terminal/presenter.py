"""Turns agent events into transcript entries and footer state."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...agent.events import (
    AgentEvent,
    Attached,
    ErrorEvent,
    Queued,
    ReplyStored,
    Retrying,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    WindowUsage,
)
from ...agent.tools import PermissionRequest
from ...hooks.events import (
    CompactionBoundary,
    CompactionCompleted,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
)
from ..chat import SHELL_CALL
from ..state import compaction_failure_reason, may_succeed_again
from .approval import approval_preview
from .entries import CompactionEntry, CompactionProgressEntry, NoteEntry, NoteTone, TerminalEntry
from .footer import COMPACTING, FooterState
from .reply_entries import ReasoningEntry, ReplyEntry, ToolCallEntry
from .transcript import TerminalTranscript

CONTINUE_HINT = "Enter continues"
_RETRY_ACTIONS = "/compact tries again, /compact --without-model needs no model"
_NEW_SESSION_ACTIONS = "/clear starts a new session"
QUEUED, STEERING, AWAITING = "queued", "after this step", "waiting for you"


class EventPresenter:
    """Applies every event, in order, to the transcript and the footer state; draws nothing itself."""

    def __init__(self, transcript: TerminalTranscript, footer_state: FooterState) -> None:
        self.transcript = transcript
        self.footer_state = footer_state
        self._reply: ReplyEntry | None = None
        self._reasoning: ReasoningEntry | None = None
        self._reply_start: TerminalEntry | None = None
        """First entry of the reply that is being streamed."""
        self._tools: dict[str, ToolCallEntry] = {}
        self._shell: ToolCallEntry | None = None
        """Live output of a command that the user ran."""
        self._progress: CompactionProgressEntry | None = None
        self._divider: CompactionEntry | None = None
        self._failure: NoteEntry | None = None
        """The last compaction, if it failed: the next attempt takes its place in the transcript."""
        self._failure_reason = ""
        self._asked_tool = ""
        """The tool of the last approval prompt."""
        self._problem = ""
        """Last error shown in the current run."""
        self._activity_before = ""
        """Footer activity before the compaction started."""
        self.compactions_ended = 0
        """Number of compactions whose end has been shown."""

    def handle_event(self, event: AgentEvent) -> None:
        match event:
            case RunStarted():
                if event.prompt is not None:
                    self.transcript.deliver(event.prompt)
                else:
                    self._add_note("The agent continues.")
                self.footer_state.busy = True
                self.footer_state.set_activity("thinking")
            case TextDelta():
                self._handle_delta(event)
            case ReplyStored():
                self._handle_reply(event)
            case ToolStarted():
                self._tools[event.call] = line = ToolCallEntry(event.call, event.name, event.summary)
                self.transcript.add(line)
                self.footer_state.set_activity(event.name)
            case ToolOutput(call=call) if call == SHELL_CALL:
                self._show_shell_output(event.text)
            case ToolOutput():
                if (running := self._tools.get(event.call)) is not None:
                    running.add_output(event.text)
            case ToolFinished():
                if (known := self._tools.pop(event.call, None)) is not None:
                    known.finish(event.text, failed=event.is_error)
                self.footer_state.set_activity("thinking")
            case WindowUsage():
                self.footer_state.update_usage(event)
            case Retrying():
                self._end_reasoning()
                self._end_reply("broken off" if event.streamed else "")
                self._add_note(f"{event.line[:1].upper()}{event.line[1:]}.", "warning")
                self.footer_state.wait_for_retry(event.seconds)
            case Queued():
                self.transcript.add_waiting(event.text, QUEUED)
            case Attached():
                if event.files:
                    self._add_note(f"Attached {', '.join(event.files)}")
                for problem in event.problems:
                    self._add_note(problem, "warning")
            case RunFinished():
                self._handle_run_finished(event)
            case ErrorEvent():
                self._problem = event.error
                self._add_note(event.error, "problem")
            case _:
                self._handle_compaction(event)
        self.transcript.notify()

    def _show_shell_output(self, text: str) -> None:
        if self._shell is None:
            self._shell = ToolCallEntry(SHELL_CALL, SHELL_CALL, "")
            self.transcript.add(self._shell)
        self._shell.add_output(text)

    def end_shell(self) -> None:
        """Removes the live output of a command of the user, whose whole output is shown next."""
        if self._shell is not None:
            self.transcript.remove(self._shell)
        self._shell = None

    def sync_pending(self, texts: Sequence[str]) -> None:
        """Shows these steering texts as waiting for the next step; the others were delivered."""
        if not self.footer_state.busy:
            return
        left = list(texts)
        for prompt in list(self.transcript.waiting):
            if prompt.text in left:
                left.remove(prompt.text)
                prompt.set_waiting(STEERING)
            elif prompt.waiting == STEERING:
                self.transcript.deliver(prompt.text)
        for text in left:
            self.transcript.add_waiting(text, STEERING)

    def show_approval(self, question: PermissionRequest | None) -> None:
        """Marks the tool call awaiting approval, and keeps what was asked in its entry; None clears the mark."""
        for line in self._tools.values():
            line.set_awaiting_approval(question is not None and line.call == question.call.id)
            if question is not None and line.call == question.call.id:
                line.set_preview(approval_preview(question))
        if question is not None:
            self._asked_tool = question.tool
            self.footer_state.set_activity(AWAITING)
        elif self.footer_state.activity == AWAITING:
            self.footer_state.set_activity(self._asked_tool if self.footer_state.busy else "")
        self.transcript.notify()

    def reset(self) -> None:
        """Clears everything on a change of session."""
        self._reply = self._reasoning = self._reply_start = self._progress = self._divider = self._shell = (
            self._failure
        ) = None
        self._tools.clear()
        self.footer_state.busy = False
        self.footer_state.set_activity("")
        self.transcript.clear()

    # -- replies -----------------------------------------------------------------------------------

    def _handle_delta(self, event: TextDelta) -> None:
        match event.kind:
            case "text":
                self._end_reasoning()
                if self._reply is None:
                    self._reply = ReplyEntry()
                    self._add_to_reply(self._reply)
                self._reply.append(event.text)
                self.footer_state.set_activity("writing")
            case "reasoning":
                if self._reasoning is None:
                    self._reasoning = ReasoningEntry()
                    self._add_to_reply(self._reasoning)
                self._reasoning.append(event.text)
                self.footer_state.set_activity("thinking")
            case "call":
                self.footer_state.set_activity(f"calling {event.text}")

    def _handle_reply(self, event: ReplyStored) -> None:
        self._end_reasoning()
        if self._reply is None and event.text:
            self._add_to_reply(ReplyEntry(event.text))
        if self._reply_start is None:
            self.transcript.number_next(event.number)
        else:
            self._reply_start.number = event.number
        self._end_reply("cut off" if event.finish == "length" else "")

    def _end_reply(self, remark: str = "") -> None:
        if self._reply is not None:
            self._reply.finish(remark)
        self._reply = self._reply_start = None

    def _add_to_reply(self, entry: TerminalEntry) -> None:
        self._reply_start = self._reply_start or entry
        self.transcript.add(entry)

    def _end_reasoning(self) -> None:
        if self._reasoning is not None:
            self._reasoning.finish()
        self._reasoning = None

    def _handle_run_finished(self, event: RunFinished) -> None:
        stopped = event.status == "aborted"
        self._end_reasoning()
        self._end_reply("stopped" if stopped else "")
        for line in self._tools.values():
            line.stop()
        self._tools.clear()
        self.footer_state.busy = False
        self.footer_state.set_activity("")
        if stopped:
            self._add_note(f"Stopped. Everything so far is kept. {CONTINUE_HINT}.")
        elif event.status != "done" and event.why != self._problem:
            tone: NoteTone = "problem" if event.status == "failed" else "warning"
            why = event.why.rstrip(".") or event.status.replace("_", " ")
            self._add_note(f"{why[:1].upper()}{why[1:]}. {CONTINUE_HINT}.", tone)
        self._problem = ""

    # -- compactions -------------------------------------------------------------------------------

    def _handle_compaction(self, event: AgentEvent) -> None:
        match event:
            case CompactionStarted():
                self._end_reasoning()
                self._end_reply()
                self._activity_before = self.footer_state.activity
                self._progress = CompactionProgressEntry(event.tokens, event.origin == "manual")
                if self._failure is not None:
                    self.transcript.remove(self._failure)
                self.transcript.add(self._progress)
                self.footer_state.set_activity(COMPACTING)
            case CompactionProgress() if self._progress is not None:
                self._progress.what, self._progress.characters = event.what, event.characters
                self._progress.invalidate()
            case CompactionCompleted():
                if self._failure is not None:
                    first = f"an earlier attempt failed: {self._failure_reason}"
                    event = msgspec.structs.replace(event, remarks=(first, *event.remarks))
                self._divider, self._failure = CompactionEntry(event), None
                self._finish_compaction(self._divider)
                self.footer_state.tokens, self.footer_state.known = event.tokens_after, "unknown"
            case CompactionBoundary() if self._divider is not None:
                self._divider.notice = event.notice
                self._divider.invalidate()
            case CompactionFailed() if event.outcome == "aborted":
                self._finish_compaction(NoteEntry("The compaction was stopped. Nothing has changed."))
            case CompactionFailed():
                self._failure_reason = why = compaction_failure_reason(event.outcome, event.why)
                again = "" if self._failure is None else " again"
                actions = _RETRY_ACTIONS if may_succeed_again(event.outcome) else _NEW_SESSION_ACTIONS
                self._failure = NoteEntry(
                    f"The compaction failed{again}: {why}. Nothing has changed; {actions}.", "problem"
                )
                self._finish_compaction(self._failure)
            case CompactionSkipped():
                why = event.why or event.outcome.replace("_", " ")
                self._finish_compaction(NoteEntry(f"Not compacted: {why}."))
            case Continued():
                self._add_note(event.text, "aside")

    def _finish_compaction(self, shown: TerminalEntry) -> None:
        if self._progress is not None:
            self.transcript.replace(self._progress, shown)
        else:
            self.transcript.add(shown)
        self._progress = None
        self.compactions_ended += 1
        self.footer_state.set_activity(self._activity_before if self.footer_state.busy else "")

    def tick(self) -> None:
        """Redraws elapsed times."""
        if self._progress is not None:
            self._progress.invalidate()
            self.transcript.notify()

    def _add_note(self, text: str, tone: NoteTone = "quiet") -> None:
        self.transcript.add(NoteEntry(text, tone))
