"""A question that waits for the person's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..agent.tools import Permission, Question


class Questions:
    """One at a time: an agent runs its tools one after the other."""

    def __init__(self, on_change: Callable[[], object]) -> None:
        self.open: Question | None = None
        self._answer: asyncio.Future[Permission] | None = None
        self._on_change = on_change

    async def ask(self, question: Question) -> Permission:
        """Wait for an answer, or until the agent is stopped."""
        self.open, self._answer = question, asyncio.get_running_loop().create_future()
        self._on_change()
        try:
            return await self._answer
        finally:
            self.open = self._answer = None
            self._on_change()

    def answer(self, permission: Permission) -> None:
        """An answer that comes too late is nobody's."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(permission)
