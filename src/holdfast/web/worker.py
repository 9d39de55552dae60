"""CPU-bound work in a process of its own: explaining and previewing a compaction does not slow other requests."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
from anyio import to_process

from ..compaction import PRESETS
from ..sessions import CompactionPreview, Explanation, SessionService
from ..stores import open_store


class PreviewOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction to try."""

    strategy: str | None = None
    preset: str | None = None
    budget: int | None = None
    target: int | None = None
    at: str | None = None
    """Event id; None is now."""


class StoreWorker:
    """Explains and previews in another process, which opens the store itself; in this one for a store in memory."""

    def __init__(self, sessions: SessionService, url: str | None) -> None:
        self._sessions, self._url = sessions, url
        preset = sessions.preset.name if sessions.preset is not None else None
        self._options = {"preset": preset if preset in PRESETS else None, "window": sessions.window}
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._explained: dict[tuple[str, str], Explanation] = {}

    async def start(self) -> None:
        """Starts the process before it is needed: imports take longer than the work."""
        if self._url is not None:
            await to_process.run_sync(_imported, cancellable=True, limiter=self._one_at_a_time)

    async def explain(self, session_id: str, compaction: str) -> Explanation:
        """Explains a compaction; the last few are kept, since an event never changes."""
        key = (session_id, compaction)
        if key not in self._explained:
            found = await self._run("explain", session_id, {"compaction": compaction})
            if len(self._explained) > 8:
                del self._explained[next(iter(self._explained))]
            self._explained[key] = msgspec.msgpack.decode(found, type=Explanation)
        return self._explained[key]

    async def preview(self, session_id: str, options: PreviewOptions) -> CompactionPreview:
        """Tries a compaction; a request that is given up stops the work."""
        found = await self._run("preview", session_id, msgspec.structs.asdict(options))
        return msgspec.msgpack.decode(found, type=CompactionPreview)

    async def _run(self, method: str, session_id: str, arguments: dict[str, Any]) -> bytes:
        if self._url is None:
            return await _answer(self._sessions, method, session_id, arguments)
        return await to_process.run_sync(
            _answer_in_process,
            self._url,
            self._options,
            method,
            session_id,
            arguments,
            cancellable=True,
            limiter=self._one_at_a_time,
        )


async def _answer(sessions: SessionService, method: str, session_id: str, arguments: dict[str, Any]) -> bytes:
    if method == "explain":
        return msgspec.msgpack.encode(await sessions.explain(session_id, **arguments))
    return msgspec.msgpack.encode(await sessions.preview(session_id, **arguments))


def _imported() -> bool:
    return PRESETS is not None


def _answer_in_process(
    url: str, options: dict[str, Any], method: str, session_id: str, arguments: dict[str, Any]
) -> bytes:
    async def answer() -> bytes:
        async with SessionService(open_store(url), **options) as sessions:
            return await _answer(sessions, method, session_id, arguments)

    return anyio.run(answer)
