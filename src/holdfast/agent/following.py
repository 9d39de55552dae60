"""Somebody else's list of messages, followed as a session in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ..messages import Json, Message, copy_json, decode_all, encode_all
from ..messages.jsontext import to_json
from ..service import Context, SessionService
from ..stores import MemoryStore


class Followed:
    """A list that only grows is appended to one session; a list that was rewritten starts another.

    The caller may hand in the whole history each time, or what was returned last with what came since. System
    messages at the beginning may change: they are passed through, and are no part of the session.
    """

    def __init__(self, sessions: SessionService | None, format: str | None, **beside: Any) -> None:
        self._own = sessions is None
        self.sessions = sessions or SessionService(MemoryStore())
        self.session_id = ""
        self.usage: Any = None
        """What the provider counted for the reply that comes next."""
        self._format = format
        self._beside = beside
        self._leading: list[Json] = []
        self._taken: list[bytes] = []
        self._given: list[bytes] = []
        """Digests of the whole history, and of what the caller was given last with what came since."""

    async def follow(self, messages: Sequence[Any]) -> None:
        """Take in what is new."""
        plain = [copy_json(message) for message in messages]
        read, format = decode_all(plain, self._format)
        first = next((place for place, message in enumerate(read) if message.role != "system"), len(read))
        self._leading = encode_all(read[:first], format) if first else []
        known = await self._known(digests := [_digest(message) for message in plain[first:]])
        for part, usage in self._counted(read[first + known :]):
            await self.sessions.append(self.session_id, part, usage=usage)
        self._taken += digests[known:]
        self._given += digests[known:]

    def shown(self, context: Context, compacted: bool) -> Context:
        """What the caller is given; where that is another list than the caller's, it may go on from there."""
        if compacted:
            self._given = [_digest(message) for message in context.messages]
        context.messages = self._leading + context.messages
        return context

    async def _known(self, digests: list[bytes]) -> int:
        """How many of these are in the session already; of another conversation, none is."""
        for known in (self._taken, self._given):
            if known and digests[: len(known)] == known:
                return len(known)
        if self.session_id and self._own:
            await self.sessions.delete(self.session_id)
        beside = dict(self._beside)
        if self._leading and beside.get("system") is None:
            beside["system"] = self._leading
        self.session_id = (await self.sessions.create(**beside)).id
        self._taken, self._given = [], []
        return 0

    def _counted(self, new: list[Message]) -> list[tuple[list[Message], Any]]:
        """The new messages, parted behind the reply that the usage belongs to."""
        spoken = [place for place, message in enumerate(new) if message.role == "assistant"]
        end = spoken[0] + 1 if spoken and self.usage is not None else 0
        while end and end < len(new) and new[end].role == "assistant":
            end += 1
        usage, self.usage = (self.usage, None) if end else (None, self.usage)
        return [(part, count) for part, count in ((new[:end], usage), (new[end:], None)) if part]


def _digest(message: Any) -> bytes:
    return hashlib.sha256(to_json(message).encode(errors="surrogatepass")).digest()
