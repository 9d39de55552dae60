"""Questions that wait for a person who sits behind the client."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import anyio

from ..agent.tools import Permission, Question
from ..errors import InvalidInput
from .records import ApprovalRequest


class _Open:
    """A question that nobody has answered yet."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.permission: Permission = "no"


class Approvals:
    """Asked before something is changed; the agent waits, and whoever stops it takes the question back."""

    def __init__(self, send: Callable[[ApprovalRequest], object]) -> None:
        self._send = send
        self._open: dict[str, _Open] = {}
        self._numbers = count(1)

    async def ask(self, question: Question) -> Permission:
        name = f"approval-{next(self._numbers)}"
        asked = self._open[name] = _Open()
        call = question.call
        try:
            self._send(ApprovalRequest(name, question.tool, question.line, call.id, call.object))
            await asked.answered.wait()
            return asked.permission
        finally:
            del self._open[name]

    def settle(self, name: str, permission: Permission) -> None:
        if name not in self._open:
            raise InvalidInput(f"No approval {name!r} is asked for: it was answered, or stopped.")
        self._open[name].permission = permission
        self._open[name].answered.set()
