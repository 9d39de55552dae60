"""The chat on a terminal: transcript, input and footer of a conversation, and what keys do there."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from textual import events, on
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.widgets import Static

from ..chat.commands import COMMANDS, completions
from .approving import Approval
from .completing import Completions
from .conversation import Conversation
from .driver import driver_class, is_there
from .footer import Footer
from .input_box import InputBox
from .keys import BINDINGS, Interrupts
from .look import Look
from .view import TranscriptView

PACE = 0.05
"""Seconds between two pictures: what is told faster than that is drawn together."""
_TURN = 0.2
"""Seconds between two pictures of what turns."""
_REST = 0.7
"""Seconds without a key before a question takes the place of somebody's typing."""


class ChatTerminal(App[None]):
    """Draws a picture of the conversation when it is time, and takes what the person types."""

    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #typing {
        height: auto; border-top: solid ansi_bright_black; border-bottom: solid ansi_bright_black;
        background: ansi_default;
    }
    #sign { width: 2; color: ansi_cyan; background: ansi_default; }
    """
    BINDINGS = BINDINGS  # type: ignore[assignment]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "holdfast chat"

    def __init__(self, conversation: Conversation, look: Look) -> None:
        super().__init__(driver_class=driver_class(self._lost_wire), ansi_color=True)
        self.look = look
        self.gone = False
        """Is the terminal no longer there?"""
        self.conversation = conversation
        self.view = TranscriptView(conversation.transcript, look)
        self.completions = Completions(look)
        self.input = InputBox(self.completions, self._take_key)
        self.approval = Approval()
        self.footer = Footer(conversation.standing, look)
        self._interrupts = Interrupts()
        self._leaving = False
        self._last_key = 0.0

    def vanish(self) -> None:
        """The terminal is gone, or somebody wants the program to end: leave, with all that is stored."""
        self.gone = True
        self.conversation.changed.set()

    def _lost_wire(self) -> None:
        if not self.gone and (loop := self._loop) is not None:
            loop.call_soon_threadsafe(self.vanish)

    # -- the screen ------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.completions
        with Horizontal(id="typing"):
            yield Static(f"{self.look.signs.prompt} ", id="sign", markup=False)
            yield self.input
        yield self.approval
        yield self.footer

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self.look.filters]

    def on_mount(self) -> None:
        self.completions.explain({f"/{command.name}": command.about for command in COMMANDS})
        self.input.focus()
        self.run_worker(self._draw(), group="drawing")
        self.set_interval(_TURN, self._turn)
        if not self.is_headless:
            self.set_interval(1.0, self._look_for_terminal)

    async def _draw(self) -> None:
        while True:
            await self.conversation.changed.wait()
            self.conversation.changed.clear()
            if self.gone and not self._leaving:
                self.leave()
            await self._look_up()
            self._show_question()
            if self.view.redraw():
                self.conversation.changed.set()
            self.footer.waiting, self.footer.below = len(self.conversation.transcript.waiting), self.view.below
            self.footer.refresh()
            await asyncio.sleep(PACE)

    async def _look_up(self) -> None:
        while self.conversation.given_back:
            self.input.give_back(self.conversation.given_back.pop())
        if (said := await self.conversation.look_up()) is not None:
            self.input.past.fill(said)

    def _show_question(self) -> None:
        """The input gives its place to a question, and takes it back; not while somebody types into it."""
        question = self.conversation.questions.open
        if question is self.approval.question:
            return
        resting = time.monotonic() - self._last_key
        if question is not None and not self.approval.display and self.input.text and resting < _REST:
            self.set_timer(_REST - resting, self.conversation.changed.set)
            return
        self.approval.ask(question)
        self.query_one("#typing").display = question is None
        self.screen.set_focus(self.input if question is None else self.approval)
        self.conversation.hearing.asked(question.call.id if question is not None else None)

    def _turn(self) -> None:
        if self.conversation.standing.doing:
            self.conversation.hearing.tick()
            self.footer.refresh()

    def _look_for_terminal(self) -> None:
        if sys.__stdin__ is not None and not is_there(sys.__stdin__.fileno()):
            self.vanish()

    # -- what the person does --------------------------------------------------------------------------

    def _take_key(self, key: str) -> bool:
        """Before the input has it: it may be for the transcript."""
        self._last_key = time.monotonic()
        self._interrupts.forget()
        self.conversation.standing.remark = ""
        return self.view.take(key)

    @on(InputBox.Changed)
    def _typed(self) -> None:
        text = self.input.text
        if text.startswith("/") and "\n" not in text:
            self.run_worker(self._complete(text), group="completing", exclusive=True)
        else:
            self.completions.offer(())

    async def _complete(self, text: str) -> None:
        found = await completions(self.conversation.chat, text)
        if text == self.input.text and text not in self.completions.found:
            self.completions.offer([one for one in found if one != text])

    @on(InputBox.Sent)
    def _sent(self, message: InputBox.Sent) -> None:
        self.completions.offer(())
        self.view.scroll_end(animate=False)
        self.run_worker(self._do(message.text), group="commands")

    async def _do(self, line: str) -> None:
        page = await self.conversation.do(line)
        if page.draft is not None:
            self.input.put(page.draft)
        if page.quit:
            self.leave()

    @on(Approval.Answered)
    def _answered(self, message: Approval.Answered) -> None:
        self.conversation.questions.answer(message.permission)

    @on(events.TextSelected)
    def _copy(self) -> None:
        if text := self.screen.get_selected_text():
            self.copy_to_clipboard(text)
            self.conversation.standing.remark = "copied"
            self.conversation.changed.set()

    # -- keys ------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        if self.completions.display:
            self.completions.offer(())
        elif self.view.chosen is not None:
            self.view.unchoose()
        elif self.conversation.busy:
            self.conversation.chat.abort()

    def action_interrupt(self) -> None:
        match self._interrupts.meaning(busy=self.conversation.busy, typed=bool(self.input.text)):
            case "leave":
                self.leave()
            case "stop":
                self.conversation.chat.abort()
            case "clear":
                self.input.past.add(self.input.text)
                self.input.clear()
            case "warn":
                self.conversation.standing.remark = "Ctrl-C again leaves"
        self.conversation.changed.set()

    def action_leave_or_delete(self) -> None:
        if self.input.text and self.input.has_focus:
            self.input.action_delete_right()
        else:
            self.leave()

    async def action_quit(self) -> None:
        self.leave()

    def action_unfold_all(self) -> None:
        self.conversation.transcript.toggle_all()

    def action_choose(self) -> None:
        self.view.choose(-1)

    def action_page(self, direction: int) -> None:
        if self.approval.display:
            self.approval.page(direction)
        else:
            (self.view.scroll_page_up if direction < 0 else self.view.scroll_page_down)(animate=False)

    def action_home(self) -> None:
        self.view.scroll_home(animate=False)

    def action_end(self) -> None:
        self.view.scroll_end(animate=False)

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def leave(self) -> None:
        """Stop what runs, let it be stored, and go; asked twice, go at once."""
        if self._leaving:
            self.exit()
            return
        self._leaving = True
        self.run_worker(self._leave(), group="leaving")

    async def _leave(self) -> None:
        await self.conversation.come_to_rest()
        self.exit()
