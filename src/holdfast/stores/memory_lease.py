"""The flags of sessions in memory: whoever lowers one is in this process, so that all who wait are told."""

from __future__ import annotations

import time
from typing import NamedTuple

from .waiting import Waiting


class _Flag(NamedTuple):
    owner: str
    until: float


class MemoryLease:
    """Who is at work on which session, and until when that is to be believed."""

    def __init__(self) -> None:
        self._flags: dict[str, _Flag] = {}
        self._waiting = Waiting()

    def take(self, session_id: str, owner: str, seconds: float) -> bool:
        standing = self._standing(session_id)
        if standing is not None and standing.owner != owner:
            return False
        self._flags[session_id] = _Flag(owner, time.monotonic() + seconds)
        return True

    def release(self, session_id: str, owner: str) -> None:
        flag = self._flags.get(session_id)
        if flag is not None and flag.owner == owner:
            self.forget(session_id)

    def held(self, session_id: str) -> float | None:
        standing = self._standing(session_id)
        return None if standing is None else max(0.0, standing.until - time.monotonic())

    async def changed(self, session_id: str, seconds: float) -> None:
        left = self.held(session_id)
        if left is not None:
            await self._waiting.told(session_id, min(seconds, left))

    def forget(self, session_id: str) -> None:
        self._flags.pop(session_id, None)
        self._waiting.tell(session_id)

    def _standing(self, session_id: str) -> _Flag | None:
        flag = self._flags.get(session_id)
        return flag if flag is not None and flag.until > time.monotonic() else None
