"""Who waits in this process for a session's flag to go down (W13)."""

from __future__ import annotations

import anyio

A_MOMENT = 0.1
"""How long somebody waits before looking again, where another process may lower the flag without a word."""


class Waiting:
    """Told at once by this process; of what others do, nothing is heard here."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[anyio.Event]] = {}

    def tell(self, session_id: str) -> None:
        for waits in self._waiting.pop(session_id, ()):
            waits.set()

    async def told(self, session_id: str, seconds: float) -> None:
        """Wait until somebody here says so, or so long."""
        waits = anyio.Event()
        self._waiting.setdefault(session_id, []).append(waits)
        try:
            with anyio.move_on_after(seconds):
                await waits.wait()
        finally:
            others = self._waiting.get(session_id, [])
            if waits in others:
                others.remove(waits)
                if not others:
                    del self._waiting[session_id]
