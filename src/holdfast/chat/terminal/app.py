"""The chat application for a terminal: screen and key bindings."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.widgets import Static
from textual.worker import WorkerFailed

from ...agent.mentions import quote_mention
from ...agent.tools import MODES
from ...errors import HoldfastError
from ..commands import Choices, again, all_commands, complete_line
from ..mention_completion import MentionIndex, dropped_image, unfinished_mention
from .approval import ApprovalPrompt
from .attention import Attention
from .clipboard import copy_by_programs
from .conversation import Conversation
from .ctrl_c import DOUBLE_PRESS_SECONDS, CtrlCState
from .driver import make_driver_class, terminal_exists
from .entries import NoteEntry
from .footer import Footer
from .handover import Handover
from .input_box import CompletionList, InputBox
from .picker import Picker
from .theme import ChatTheme
from .view import TranscriptView
from .watchdog import ScreenStalled

_ACTIONS = {
    "ctrl+c": "interrupt",
    "ctrl+d": "leave_or_delete",
    "escape": "stop",
    "ctrl+o": "unfold_all",
    "shift+tab": "next_mode",
    "alt+up": "select_entry",
    "ctrl+z": "suspend_process",
    "ctrl+g": "list_archived",
    "ctrl+l": "redraw",
    "ctrl+t": "print_transcript",
    "pageup": "page(-1)",
    "pagedown": "page(1)",
    "ctrl+home": "home",
    "ctrl+end": "end",
}
BINDINGS = [Binding(key, action, show=False, priority=True) for key, action in _ACTIONS.items()]


_QUIT_NOTICE = "Ctrl-C again quits"
REDRAW_INTERVAL = 0.05
"""Minimum seconds between redraws; events in between are drawn together."""
_SPINNER_INTERVAL = 0.2
"""Seconds between spinner frames."""
_OTHERS_INTERVAL = 1.0
"""Seconds between two looks for what others added to the session."""
_TYPING_PAUSE = 0.7
"""Seconds without a key press before an approval prompt may replace a non-empty input."""


class ChatTerminal(App[None]):
    """Textual application that draws a conversation and handles input."""

    CSS = """
    Screen { background: ansi_default; color: ansi_default; overflow: hidden; }
    #typing {
        height: auto; border-top: solid ansi_bright_black; border-bottom: solid ansi_bright_black;
        background: ansi_default;
    }
    #prompt-symbol { width: 2; color: ansi_cyan; background: ansi_default; }
    """
    BINDINGS = BINDINGS  # type: ignore[assignment]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "holdfast chat"

    def __init__(self, conversation: Conversation, theme: ChatTheme, first_lines: Sequence[str] = ()) -> None:
        super().__init__(driver_class=make_driver_class(self._report_terminal_lost), ansi_color=True)
        self.chat_theme = theme
        self.terminal_lost = False
        """True once the terminal has closed or a signal asked to exit."""
        self.heartbeat: Callable[[], object] = lambda: None
        """Called every second while the event loop is alive."""
        self.conversation = conversation
        self.view = TranscriptView(conversation.transcript, theme)
        self.completions = CompletionList(theme)
        self.input = InputBox(self.completions, self._take_key, self._replace_paste)
        self.approval = ApprovalPrompt()
        self.picker = Picker(theme)
        self.footer = Footer(conversation.footer_state, theme)
        self.handover = Handover(self)
        self._first_lines = first_lines
        """Run as if typed, once the screen is there."""
        self._typed_early: list[events.Key | events.Paste] | None = []
        """Typed before the input had the focus; None once that is handled."""
        self.attention = Attention(self.write_to_terminal)
        self._held_prompt = ""
        """Sent after the next /compact."""
        self._ctrl_c = CtrlCState()
        self._leaving = False
        self._last_key = 0.0
        self._file_index: MentionIndex | None = None

    def handle_terminal_lost(self) -> None:
        """Starts an orderly exit after the terminal closed or a signal arrived."""
        self.terminal_lost = True
        self.conversation.redraw_needed.set()

    def _report_terminal_lost(self) -> None:
        if not self.terminal_lost and (loop := self._loop) is not None:
            loop.call_soon_threadsafe(self.handle_terminal_lost)

    def restore_terminal(self) -> None:
        """Leaves the full screen at once, for a program that ends without its event loop."""
        if self._driver is not None:
            self._driver.stop_application_mode()
            self._driver.close()

    def _handle_exception(self, error: Exception) -> None:
        """Keeps what was typed, and names the place of a stall in one line instead of a traceback."""
        with suppress(Exception):
            self.input.input_history.add(self.input.text)
        cause = error.error if isinstance(error, WorkerFailed) else error
        if isinstance(cause, ScreenStalled):
            self.exit(return_code=1, message=f"holdfast: {cause}. All that was said is stored.")
        else:
            super()._handle_exception(error)

    # -- screen ------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.picker
        yield self.completions
        with Horizontal(id="typing"):
            yield Static(f"{self.chat_theme.symbols.prompt} ", id="prompt-symbol", markup=False)
            yield self.input
        yield self.approval
        yield self.footer

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self.chat_theme.filters]

    def on_mount(self) -> None:
        commands = all_commands(self.conversation.chat)
        self.completions.set_descriptions({f"/{command.name}": command.about for command in commands})
        self.input.focus()
        self.call_after_refresh(self._replay_typed_early)
        self.run_worker(self._redraw_loop(), group="drawing")
        self.run_worker(self._run_first_lines(), group="commands")
        self.set_interval(_SPINNER_INTERVAL, self._tick)
        self.set_interval(_OTHERS_INTERVAL, self._look_for_others)
        if not self.is_headless:
            self.set_interval(1.0, self._check_terminal)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())

    async def _redraw_loop(self) -> None:
        while True:
            await self.conversation.redraw_needed.wait()
            self.conversation.redraw_needed.clear()
            if self.terminal_lost and not self._leaving:
                self.leave()
            await self._refresh_conversation()
            self._show_approval()
            self._call_attention()
            if self.view.redraw():
                self.conversation.redraw_needed.set()
            if self.view.shows_earlier_place:
                await self.conversation.show_earlier()
            self.footer.waiting = len(self.conversation.transcript.waiting)
            self.footer.below = self.view.below if self.view.display else 0
            self.footer.refresh()
            await asyncio.sleep(REDRAW_INTERVAL)

    async def _refresh_conversation(self) -> None:
        while self.conversation.returned_input:
            self.input.restore_unsent(self.conversation.returned_input.pop())
        if (prompts := await self.conversation.refresh()) is not None:
            self.input.input_history.seed(prompts)

    def _show_approval(self) -> None:
        """Replaces the input with a pending approval, or restores it; waits while the user is typing."""
        question = self.conversation.pending_approval.question
        if question is self.approval.question or self.picker.display:
            return
        idle_seconds = time.monotonic() - self._last_key
        if question is not None and not self.approval.display and self.input.text and idle_seconds < _TYPING_PAUSE:
            self.set_timer(_TYPING_PAUSE - idle_seconds, self.conversation.redraw_needed.set)
            return
        self.approval.ask(question)
        self.query_one("#typing").display = question is None
        self.screen.set_focus(self.input if question is None else self.approval)
        self.conversation.presenter.show_approval(question)

    def write_to_terminal(self, data: str) -> None:
        if self._driver is not None:
            self._driver.write(data)

    def _call_attention(self) -> None:
        self.attention.focused = self.app_focus
        self.attention.update(*self.conversation.attention)

    def _tick(self) -> None:
        if self.conversation.footer_state.activity:
            self.conversation.presenter.tick()
            self.footer.refresh()

    def _look_for_others(self) -> None:
        self.run_worker(self.conversation.show_others(), group="others", exclusive=True)

    def _check_terminal(self) -> None:
        self.heartbeat()
        if sys.__stdin__ is not None and not terminal_exists(sys.__stdin__.fileno()):
            self.handle_terminal_lost()

    # -- input -------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Holds back what is typed while the program starts: there is no input yet to take it."""
        if isinstance(event, events.Key | events.Paste) and self._typed_early is not None:
            self._typed_early.append(event)
        else:
            await super().on_event(event)

    async def _replay_typed_early(self) -> None:
        early, self._typed_early = self._typed_early or (), None
        for event in early:
            # Enter that the terminal had taken before the program did is a line feed
            is_enter = isinstance(event, events.Key) and event.key == "ctrl+j"
            await super().on_event(events.Key("enter", "\r") if is_enter else event)

    def _take_key(self, key: str) -> bool:
        """Sees each key before the input; returns True if the transcript consumed it."""
        self._last_key = time.monotonic()
        self.attention.key_pressed()
        self._ctrl_c.reset()
        self.conversation.footer_state.notice = ""
        return self.view.handle_selection_key(key)

    def _replace_paste(self, text: str) -> str:
        """Turns the path of an image that was dropped onto the terminal into a mention that attaches it."""
        if (image := dropped_image(text)) is None:
            return text
        self.conversation.chat.dropped_files.add(image)
        return f"{quote_mention(str(image))} "

    @on(InputBox.Changed)
    def _input_changed(self) -> None:
        text = self.input.text
        if self.input.is_searching:  # a change from before the search must not close its list
            return
        if text.startswith("/") and "\n" not in text:
            self.run_worker(self._update_completions(text), group="completing", exclusive=True)
        elif mention := unfinished_mention(self.input.text_before_cursor):
            self.run_worker(self._update_mentions(mention), group="completing", exclusive=True)
        else:
            self.completions.set_candidates(())

    async def _update_completions(self, text: str) -> None:
        candidates = await complete_line(self.conversation.chat, text)
        if text == self.input.text and text not in self.completions.candidates and not self.input.is_searching:
            self.completions.set_candidates([one for one in candidates if one != text])

    async def _update_mentions(self, mention: str) -> None:
        if self._file_index is None:
            self._file_index = MentionIndex(self.conversation.chat.folder)
        candidates = await self._file_index.complete(mention)
        if unfinished_mention(self.input.text_before_cursor) == mention and not self.input.is_searching:
            self.completions.set_mentions(mention, () if mention in candidates else candidates)

    @on(InputBox.Sent)
    def _input_sent(self, message: InputBox.Sent) -> None:
        self.completions.set_candidates(())
        self.view.scroll_end(animate=False)
        self.run_worker(self._run_line(message.text), group="commands")

    async def _run_first_lines(self) -> None:
        for line in self._first_lines:
            await self._run_line(line)

    async def _run_line(self, line: str) -> None:
        held, self._held_prompt = self._held_prompt, ""
        if held and not line.startswith("/compact"):
            self.input.restore_unsent(held)
            held = ""
        if not await self._may_send(line):
            return
        result = await self.conversation.run_line(line)
        if result.choices is not None:
            await self._offer(result.choices)
        if result.draft is not None:
            self.input.set_text(result.draft)
        if result.copied is not None:
            await self._copy(result.copied)
        if result.opened is not None:
            await self._hand_over(self.handover.open_in_editor(result.opened))
        if result.quit:
            self.leave()
        if held:
            await self._run_line(held)

    async def _may_send(self, line: str) -> bool:
        """Asks what to do if the line is a prompt before which an undone compaction would run again."""
        chat = self.conversation.chat
        if line.startswith(("/", "!")) or not line or self.conversation.busy:
            return True
        if (choices := await again.again_choices(chat)) is None:
            return True
        match await self._choose(choices):
            case None:
                self.input.restore_unsent(line)
                return False
            case again.KEEP:
                self._held_prompt = line
                self.input.set_text("/compact keep ")
                return False
            case again.AGAIN:
                return True
            case restraint:
                await self.conversation.run_line(f"{choices.command} {restraint}")
                return True

    async def _copy(self, text: str) -> None:
        self.copy_to_clipboard(text)
        await copy_by_programs(text)

    async def _hand_over(self, work: Awaitable[None]) -> None:
        """Waits for others to use the terminal, then draws the screen anew."""
        try:
            await work
        except HoldfastError as problem:
            self.conversation.transcript.add(NoteEntry(str(problem), "problem"))
        self.refresh(layout=True)

    async def _offer(self, choices: Choices) -> None:
        """Shows a list, and runs the command of what is chosen."""
        if (chosen := await self._choose(choices)) is not None:
            await self._run_line(f"{choices.command} {chosen}")

    async def _choose(self, choices: Choices) -> str | None:
        """Shows a list in place of transcript and input; returns what is chosen."""
        replaced = (self.view, self.query_one("#typing"))
        for widget in replaced:
            widget.display = False
        try:
            return await self.picker.choose(choices)
        finally:
            for widget in replaced:
                widget.display = True
            self.input.focus()
            self.conversation.redraw_needed.set()

    @on(ApprovalPrompt.Answered)
    def _approval_answered(self, message: ApprovalPrompt.Answered) -> None:
        self.conversation.pending_approval.answer(message.permission, message.words)

    @on(events.TextSelected)
    def _copy_selection(self) -> None:
        if text := self.screen.get_selected_text():
            self.run_worker(self._copy(text), group="copying")
            lines = text.count("\n") + 1
            self.conversation.footer_state.notice = f"copied {lines:,} lines" if lines > 1 else "copied"
            self.conversation.redraw_needed.set()

    # -- keys ------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An open list takes all keys but those that redraw, suspend or quit."""
        return not self.picker.display or action in ("redraw", "suspend_process", "leave_or_delete", "quit")

    def action_stop(self) -> None:
        if self.input.cancel_search() or self.approval.cancel_words():
            return
        if self.completions.display:
            self.completions.set_candidates(())
        elif self.view.selected is not None:
            self.view.clear_selection()
        elif self.conversation.busy:
            self.conversation.chat.abort()
        elif self.approval.display:  # a question that no run has asked: whether a server may be started
            self.conversation.pending_approval.answer("no")

    def action_interrupt(self) -> None:
        if self.input.cancel_search():
            return
        match self._ctrl_c.press(busy=self.conversation.busy, typed=bool(self.input.text)):
            case "leave":
                self.leave()
            case "stop":
                self.conversation.chat.abort()
            case "clear":
                self.input.input_history.add(self.input.text)
                self.input.clear()
            case "warn":
                self.conversation.footer_state.notice = _QUIT_NOTICE
                self.set_timer(DOUBLE_PRESS_SECONDS, self._clear_quit_notice)
        self.conversation.redraw_needed.set()

    def _clear_quit_notice(self) -> None:
        if self.conversation.footer_state.notice == _QUIT_NOTICE and not self._ctrl_c.would_quit:
            self.conversation.footer_state.notice = ""
            self.conversation.redraw_needed.set()

    def action_leave_or_delete(self) -> None:
        if self.input.text and self.input.has_focus:
            self.input.action_delete_right()
        else:
            self.leave()

    async def action_quit(self) -> None:
        self.leave()

    def action_unfold_all(self) -> None:
        self.conversation.transcript.toggle_all()

    def action_next_mode(self) -> None:
        permissions = self.conversation.chat.permissions
        permissions.mode = MODES[(MODES.index(permissions.mode) + 1) % len(MODES)]
        self.conversation.footer_state.mode = permissions.mode
        self.conversation.redraw_needed.set()

    def action_select_entry(self) -> None:
        self.view.select(-1)

    def action_page(self, direction: int) -> None:
        if self.approval.display:
            self.approval.page(direction)
        else:
            (self.view.scroll_page_up if direction < 0 else self.view.scroll_page_down)(animate=False)

    def action_home(self) -> None:
        self.view.scroll_home(animate=False)

    def action_end(self) -> None:
        self.view.scroll_end(animate=False)

    def action_print_transcript(self) -> None:
        """Prints the conversation as it was written into the terminal's own buffer."""
        self.run_worker(self._hand_over(self.handover.print_text(self.conversation.transcript.text)), group="commands")

    def action_list_archived(self) -> None:
        self.run_worker(self._run_line("/archived"), group="commands")

    def action_redraw(self) -> None:
        """Draws the whole screen, of which the terminal may have kept nothing."""
        self.refresh(layout=True)

    def leave(self) -> None:
        """Aborts what is running, waits for it to be stored, and exits; called twice, exits at once."""
        if self._leaving:
            self.exit()
            return
        self._leaving = True
        self.run_worker(self._leave(), group="leaving")

    async def _leave(self) -> None:
        await self.conversation.stop()
        self.attention.close()
        self.exit()
