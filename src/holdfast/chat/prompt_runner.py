"""Runs prompts to completion one after the other, for programs that need the result of each."""

from __future__ import annotations

import anyio
import msgspec

from ..agent.events import AgentEvent, ReplyStored, Retrying, RunFinished, RunStarted, RunStatus, TextDelta
from .chat import Chat


class PromptResult(msgspec.Struct, frozen=True):
    """Result of a prompt once the agent is idle."""

    session: str
    status: RunStatus
    why: str = ""
    steps: int = 0
    text: str = ""
    """Text of the model's last reply; of one that was stopped, what was written so far."""


class PromptRunner:
    """Runs prompts in the order they were submitted, one at a time.

    After an abort, no prompt submitted before it starts: neither pending ones nor one already queued in the chat.
    """

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._accepted = self._aborts = self._started_at = 0
        self._text = self._partial = ""
        self._asks_again = False
        self._finished: RunFinished | None = None
        self._chat: Chat | None = None

    @property
    def pending(self) -> int:
        """Number of prompts not started yet."""
        return self._accepted - self._lock.locked()

    @property
    def idle(self) -> bool:
        return not self._accepted

    async def run_prompt(self, chat: Chat, text: str | None) -> PromptResult:
        """Runs a prompt, or with None continues unfinished work; returns when the agent is idle again."""
        self._accepted += 1
        aborts = self._aborts
        try:
            async with self._lock:
                if aborts != self._aborts:
                    return PromptResult(chat.record.id, "aborted", "stopped before it began")
                self._chat, self._started_at, self._text, self._finished = chat, aborts, "", None
                self._partial, self._asks_again = "", False
                if text is None:
                    chat.continue_run()
                else:
                    chat.send(text)
                await chat.wait_idle()
                last = self._finished or RunFinished(chat.record.id, "aborted", "stopped while it was compacted")
                return PromptResult(last.session, last.status, last.why, last.steps, self._partial or self._text)
        finally:
            self._accepted -= 1

    def abort(self, chat: Chat) -> int:
        """Aborts the running prompt and drops the pending ones; returns how many were dropped."""
        self._aborts += 1
        chat.abort()
        return self.pending

    def handle_event(self, event: AgentEvent) -> None:
        """Records replies and run ends; aborts a run that starts after it was aborted."""
        match event:
            case RunStarted() if self._chat is not None and self._started_at != self._aborts:
                self._chat.abort()
            case Retrying():
                self._asks_again = True
            case TextDelta(kind="text"):
                self._partial = event.text if self._asks_again else self._partial + event.text
                self._asks_again = False
            case ReplyStored():
                self._text, self._partial, self._asks_again = event.text, "", False
            case RunFinished():
                self._finished = event
