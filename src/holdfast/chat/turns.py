"""Asking a chat and waiting for the end of it: one prompt after the other, for callers that are programs."""

from __future__ import annotations

import anyio
import msgspec

from ..agent.events import AgentEvent, Replied, RunFinished, RunStarted, Status
from .chat import Chat


class Answered(msgspec.Struct, frozen=True):
    """How a prompt was answered, once the agent is at rest."""

    session: str
    status: Status
    why: str = ""
    steps: int = 0
    text: str = ""
    """The last that the model said."""


class Turns:
    """Prompts are answered in the order in which they came, each by itself.

    After a stop nothing begins that was asked for before it: neither what waits, nor what the chat was just handed.
    """

    def __init__(self) -> None:
        self._order = anyio.Lock()
        self._asked = self._stops = self._begun = 0
        self._text = ""
        self._finished: RunFinished | None = None
        self._chat: Chat | None = None

    @property
    def waiting(self) -> int:
        """How many are not begun."""
        return self._asked - self._order.locked()

    @property
    def idle(self) -> bool:
        return not self._asked

    async def ask(self, chat: Chat, text: str | None) -> Answered:
        """Answer a prompt to the end, or go on with what is unfinished: returns when the agent is at rest again."""
        self._asked += 1
        stops = self._stops
        try:
            async with self._order:
                if stops != self._stops:
                    return Answered(chat.record.id, "aborted", "stopped before it began")
                self._chat, self._begun, self._text, self._finished = chat, stops, "", None
                if text is None:
                    chat.go_on()
                else:
                    chat.say(text)
                await chat.wait_idle()
                last = self._finished or RunFinished(chat.record.id, "aborted", "stopped while it was compacted")
                return Answered(last.session, last.status, last.why, last.steps, self._text)
        finally:
            self._asked -= 1

    def stop(self, chat: Chat) -> int:
        """Stop what runs, and drop what waits: how much that is."""
        self._stops += 1
        chat.abort()
        return self.waiting

    def hear(self, event: AgentEvent) -> None:
        """An event of the chat."""
        match event:
            case RunStarted() if self._chat is not None and self._begun != self._stops:
                self._chat.abort()
            case Replied():
                self._text = event.text
            case RunFinished():
                self._finished = event
