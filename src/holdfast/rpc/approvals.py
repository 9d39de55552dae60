"""Questions that wait for a person who sits behind the client."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ..agent.tools import Permission, Question
from ..chat.jobs import Promise
from ..errors import InvalidInput
from .records import ApprovalRequest


class Approvals:
    """Asked before something is changed; the agent waits, and whoever stops it takes the question back."""

    def __init__(self, send: Callable[[ApprovalRequest], object]) -> None:
        self._send = send
        self._open: dict[str, Promise[Permission]] = {}
        self._numbers = count(1)

    async def ask(self, question: Question) -> Permission:
        name, answer = f"approval-{next(self._numbers)}", Promise[Permission]()
        self._open[name] = answer
        call = question.call
        try:
            self._send(ApprovalRequest(name, question.tool, question.line, call.id, call.object))
            return await answer.wait()
        finally:
            del self._open[name]

    def settle(self, name: str, permission: Permission) -> None:
        if name not in self._open:
            raise InvalidInput(f"No approval {name!r} is asked for: it was answered, or stopped.")
        self._open[name].keep(permission)
