"""Somebody else's list of messages, followed as a session in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import Message, decode_all
from ..service import SessionService
from ..stores import MemoryStore


class Followed:
    """A list that only grows is appended to one session; a list that was rewritten starts another.

    The caller may hand in the whole history each time, or what was returned last with what came since.
    """

    def __init__(self, sessions: SessionService | None, format: str | None, **beside: Any) -> None:
        self.sessions = sessions or SessionService(MemoryStore())
        self.session_id = ""
        self.usage: Any = None
        """What the provider counted for the reply that comes next."""
        self._format = format
        self._beside = beside
        self._taken: list[Any] = []
        self._shown: list[Any] = []

    async def follow(self, messages: Sequence[Any]) -> None:
        """Take in what is new."""
        given = list(messages)
        known = next((known for known in (self._taken, self._shown) if known and _begins(given, known)), None)
        if known is None:
            self.session_id = (await self.sessions.create(**self._beside)).id
            self._taken, self._shown = [], []
        new = given[len(known or ()) :]
        for part, usage in self._counted(new):
            await self.sessions.append(self.session_id, part, usage=usage)
        self._taken = self._taken + new
        self._shown = self._shown + new

    def showed(self, context: Sequence[Any]) -> None:
        """What the caller was given instead: it may go on from there."""
        self._shown = list(context)

    def _counted(self, new: list[Any]) -> list[tuple[list[Message], Any]]:
        """The new messages, parted behind the reply that the usage belongs to."""
        messages = decode_all(new, self._format)[0]
        spoken = [place for place, message in enumerate(messages) if message.role == "assistant"]
        end = spoken[0] + 1 if spoken and self.usage is not None else 0
        while end and end < len(messages) and messages[end].role == "assistant":
            end += 1
        usage, self.usage = (self.usage, None) if end else (None, self.usage)
        return [(part, count) for part, count in ((messages[:end], usage), (messages[end:], None)) if part]


def _begins(given: list[Any], known: list[Any]) -> bool:
    return len(given) >= len(known) and all(
        mine is theirs or mine == theirs for mine, theirs in zip(known, given, strict=False)
    )
