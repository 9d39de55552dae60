"""The conversation as the terminal knows it: what it told, where it stands, and what the person does in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import anyio

from ..agent.events import AgentEvent, Problem, RunFinished, SessionChanged, Unsent
from ..chat import Chat
from ..chat.commands import Page, run_command
from ..errors import HoldfastError
from ..hooks.events import CompactionCompleted, CompactionFailed, CompactionSkipped
from . import entries
from .earlier import earlier
from .hearing import Hearing
from .questions import Questions
from .standing import Standing
from .transcript import Transcript

_PATIENCE = 5.0
"""Seconds for what runs to come to rest when the person leaves."""
_SETTLING = RunFinished | SessionChanged | CompactionCompleted | CompactionFailed | CompactionSkipped


class Conversation:
    """What is told changes the transcript at once; the screen draws it when it is time.

    It lives longer than the screen: `tell` and `questions.ask` may be called before that is there and after it is
    gone. Set `chat` before anything is said.
    """

    chat: Chat

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """There is something to draw."""
        self.transcript = Transcript(self.changed.set)
        self.standing = Standing()
        self.hearing = Hearing(self.transcript, self.standing)
        self.questions = Questions(self.changed.set)
        self.given_back: list[str] = []
        """Never heard: the person may say it again."""
        self._arrived: SessionChanged | None = None
        self._unsettled = True
        self._commands = 0

    @property
    def busy(self) -> bool:
        return self.chat.activity != "idle" or bool(self._commands)

    def tell(self, event: AgentEvent) -> None:
        """Take in what happened; nothing is drawn here."""
        match event:
            case SessionChanged():
                self.hearing.forget()
                self._arrived = event
            case Unsent():
                self.transcript.taken_back(event.text)
                self.given_back.append(event.text)
            case _:
                self.hearing.hear(event)
        self._unsettled |= isinstance(event, _SETTLING)
        self._catch_up_with_agent()

    async def look_up(self) -> Sequence[str] | None:
        """What the events do not say: what another session shows its model, and where this one stands.

        Where it is another session, what the person has said in it.
        """
        said = None
        try:
            if (arrived := self._arrived) is not None:
                self._arrived = None
                shown, said = await earlier(self.chat)
                welcome = entries.Welcome(arrived.how, self.chat.folder.root.name, self.chat.model.name)
                self.transcript.begin_with([welcome, *shown])
            if self._unsettled:
                self._unsettled = False
                self.standing.settle(await self.chat.state())
        except (HoldfastError, OSError) as problem:
            self.hearing.hear(Problem(str(problem)))
        return said

    async def do(self, line: str) -> Page:
        """A prompt, a command, or nothing but Enter."""
        is_command = line.startswith("/") and not line.startswith("//")
        asked, ended = entries.Prompt(line), self.hearing.ended
        if is_command:
            self.transcript.add(asked)
        self._commands += is_command
        try:
            page = await run_command(self.chat, line)
        finally:
            self._commands -= is_command
        if page.text and not (line.startswith("/compact") and self.hearing.ended > ended):
            self.transcript.add_after(asked, entries.Page(page.text))
        self._unsettled = True
        self._catch_up_with_agent()
        return page

    async def come_to_rest(self) -> None:
        """Stop what runs, and let it be stored."""
        self.chat.abort()
        with anyio.move_on_after(_PATIENCE):
            await self.chat.wait_idle()

    def _catch_up_with_agent(self) -> None:
        if hasattr(self, "chat"):
            self.hearing.unheard(self.chat.agent.waiting)
        self.changed.set()
