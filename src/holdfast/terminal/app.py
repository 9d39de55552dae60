"""The chat on a terminal: transcript, input and footer, and what connects them with the conversation."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

import anyio
from textual import events, on
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.widgets import Static

from ..agent.events import AgentEvent, Problem, RunFinished, SessionChanged, Unsent
from ..agent.tools import Permission, Question
from ..chat import Chat
from ..chat.commands import COMMANDS, completions, run_command
from ..errors import HoldfastError
from ..hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped
from .approving import Approval
from .completing import Completions
from .driver import driver_class, is_there
from .earlier import earlier
from .entries import Note, Page, Prompt, Welcome
from .footer import Footer
from .hearing import Hearing
from .input_box import InputBox
from .keys import BINDINGS, Interrupts
from .look import Look
from .questions import Questions
from .standing import Standing
from .transcript import Transcript
from .view import TranscriptView

PACE = 0.05
"""Seconds between two pictures: what is told faster than that is drawn together."""
_TURN = 0.2
"""Seconds between two pictures of what turns."""
_REST = 0.7
"""Seconds without a key before a question takes the place of somebody's typing."""
_PATIENCE = 5.0
"""Seconds for what runs to come to rest when the person leaves."""
_SETTLING = RunFinished | SessionChanged | CompactionCompleted | CompactionFailed | CompactionSkipped


class ChatTerminal(App[None]):
    """What the conversation tells changes the transcript at once; a picture of it is drawn when it is time.

    The conversation lives outside of the app: `tell` and `approve` may be called before the screen is there and
    after it is gone. Set `chat` before the app runs.
    """

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
    chat: Chat

    def __init__(self, look: Look, notes: Sequence[str] = ()) -> None:
        super().__init__(driver_class=driver_class(self._lost_wire), ansi_color=True)
        self.look = look
        self.gone = False
        """Is the terminal no longer there?"""
        self._changed = asyncio.Event()
        self.transcript = Transcript(self._changed.set)
        self.standing = Standing()
        self.hearing = Hearing(self.transcript, self.standing)
        self.questions = Questions(self._changed.set)
        self.view = TranscriptView(self.transcript, look)
        self.completions = Completions(look)
        self.input = InputBox(self.completions, self._take_key)
        self.approval = Approval()
        self.footer = Footer(self.standing, look)
        self._notes = notes
        self._interrupts = Interrupts()
        self._arrived: SessionChanged | None = None
        self._given_back: list[str] = []
        self._unsettled = True
        self._commands = 0
        self._leaving = False
        self._last_key = 0.0

    # -- what the conversation says --------------------------------------------------------------------

    def tell(self, event: AgentEvent) -> None:
        """Take in what happened; nothing is drawn here."""
        match event:
            case SessionChanged():
                self.hearing.forget()
                self._arrived = event
            case Unsent():
                self.transcript.taken_back(event.text)
                self._given_back.append(event.text)
            case _:
                self.hearing.hear(event)
        self._unsettled |= isinstance(event, _SETTLING)
        self._catch_up_with_agent()

    async def approve(self, question: Question) -> Permission:
        """Ask the person before something is changed."""
        return await self.questions.ask(question)

    def vanish(self) -> None:
        """The terminal is gone, or somebody wants the program to end: leave, with all that is stored."""
        self.gone = True
        self._changed.set()

    def _lost_wire(self) -> None:
        if not self.gone and (loop := self._loop) is not None:
            loop.call_soon_threadsafe(self.vanish)

    def _catch_up_with_agent(self) -> None:
        if hasattr(self, "chat"):
            self.hearing.unheard(self.chat.agent.waiting)
        self._changed.set()

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
        for note in self._notes:
            self.transcript.add(Note(note, "warning"))
        self.input.focus()
        self.run_worker(self._draw(), group="drawing")
        self.set_interval(_TURN, self._turn)
        if not self.is_headless:
            self.set_interval(1.0, self._look_for_terminal)

    async def _draw(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self.gone and not self._leaving:
                self.leave()
            await self._look_up()
            self._show_question()
            if self.view.redraw():
                self._changed.set()
            self.footer.waiting, self.footer.below = len(self.transcript.waiting), self.view.below
            self.footer.refresh()
            await asyncio.sleep(PACE)

    async def _look_up(self) -> None:
        """What the events do not say: what another session shows its model, and where this one stands."""
        while self._given_back:
            self.input.give_back(self._given_back.pop())
        try:
            if (arrived := self._arrived) is not None:
                self._arrived = None
                entries, said = await earlier(self.chat)
                self.input.past.fill(said)
                welcome = Welcome(arrived.how, self.chat.folder.root.name, self.chat.model.name)
                self.transcript.begin_with([welcome, *entries])
            if self._unsettled:
                self._unsettled = False
                self.standing.settle(await self.chat.state())
        except (HoldfastError, OSError) as problem:
            self.hearing.hear(Problem(str(problem)))

    def _show_question(self) -> None:
        """The input gives its place to a question, and takes it back; not while somebody types into it."""
        question = self.questions.open
        if question is self.approval.question:
            return
        resting = time.monotonic() - self._last_key
        if question is not None and not self.approval.display and self.input.text and resting < _REST:
            self.set_timer(_REST - resting, self._changed.set)
            return
        self.approval.ask(question)
        self.query_one("#typing").display = question is None
        self.screen.set_focus(self.input if question is None else self.approval)
        self.hearing.asked(question.call.id if question is not None else None)

    def _turn(self) -> None:
        if self.standing.doing:
            self.hearing.tick()
            self.footer.refresh()

    def _look_for_terminal(self) -> None:
        if sys.__stdin__ is not None and not is_there(sys.__stdin__.fileno()):
            self.vanish()

    # -- what the person does --------------------------------------------------------------------------

    def _take_key(self, key: str) -> bool:
        """Before the input has it: it may be for the transcript."""
        self._last_key = time.monotonic()
        self._interrupts.forget()
        self.standing.remark = ""
        return self.view.take(key)

    @on(InputBox.Changed)
    def _typed(self) -> None:
        text = self.input.text
        if text.startswith("/") and "\n" not in text:
            self.run_worker(self._complete(text), group="completing", exclusive=True)
        else:
            self.completions.offer(())

    async def _complete(self, text: str) -> None:
        found = await completions(self.chat, text)
        if text == self.input.text and text not in self.completions.found:
            self.completions.offer([one for one in found if one != text])

    @on(InputBox.Sent)
    def _sent(self, message: InputBox.Sent) -> None:
        self.completions.offer(())
        self.view.scroll_end(animate=False)
        self.run_worker(self._do(message.text), group="commands")

    async def _do(self, line: str) -> None:
        """A prompt, a command, or nothing but Enter."""
        is_command = line.startswith("/") and not line.startswith("//")
        asked, ended = Prompt(line), self.hearing.ended
        if is_command:
            self.transcript.add(asked)
        self._commands += is_command
        try:
            page = await run_command(self.chat, line)
        finally:
            self._commands -= is_command
        if page.text and not (line.startswith("/compact") and self.hearing.ended > ended):
            self.transcript.add_after(asked, Page(page.text))
        if page.draft is not None:
            self.input.put(page.draft)
        self._unsettled = True
        self._catch_up_with_agent()
        if page.quit:
            self.leave()

    @on(Approval.Answered)
    def _answered(self, message: Approval.Answered) -> None:
        self.questions.answer(message.permission)

    @on(events.TextSelected)
    def _copy(self) -> None:
        if text := self.screen.get_selected_text():
            self.copy_to_clipboard(text)
            self.standing.remark = "copied"
            self._changed.set()

    # -- keys ------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self.chat.activity != "idle" or bool(self._commands)

    def action_stop(self) -> None:
        if self.completions.display:
            self.completions.offer(())
        elif self.view.chosen is not None:
            self.view.unchoose()
        elif self.busy:
            self.chat.abort()

    def action_interrupt(self) -> None:
        match self._interrupts.meaning(busy=self.busy, typed=bool(self.input.text)):
            case "leave":
                self.leave()
            case "stop":
                self.chat.abort()
            case "clear":
                self.input.past.add(self.input.text)
                self.input.clear()
            case "warn":
                self.standing.remark = "Ctrl-C again leaves"
        self._changed.set()

    def action_leave_or_delete(self) -> None:
        if self.input.text and self.input.has_focus:
            self.input.action_delete_right()
        else:
            self.leave()

    async def action_quit(self) -> None:
        self.leave()

    def action_unfold_all(self) -> None:
        self.transcript.toggle_all()

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
        self.chat.abort()
        with anyio.move_on_after(_PATIENCE):
            await self.chat.wait_idle()
        self.exit()
