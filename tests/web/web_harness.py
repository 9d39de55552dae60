"""Test harness: an inspector on a port of its own, and a client that has its cookie."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx

from holdfast import MemoryStore, SessionService
from holdfast.stores import Log
from holdfast.strategies import KeepLedger
from holdfast.triggers import always
from holdfast.web import Access, Inspector, listen, serve_inspector

WRITE = {"x-holdfast": "1"}


class RunningInspector:
    """An inspector that listens."""

    def __init__(self, inspector: Inspector, client: httpx.AsyncClient) -> None:
        self.inspector, self.sessions, self.access = inspector, inspector.sessions, inspector.access
        self.client = client
        self.url = self.access.address.rstrip("/")

    async def log_in(self, key: str | None = None) -> None:
        """Opens the printed address, or sends a key."""
        if key is None:
            reply = await self.client.get(self.access.opening_url)
        else:
            reply = await self.post("/login", {"key": key})
        assert reply.status_code in (200, 303), reply.text

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.client.get(self.url + path, **options)

    async def json(self, path: str, **options: Any) -> Any:
        reply = await self.get(path, **options)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        given = WRITE | {"origin": self.url} | {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(self.url + path, json=body, headers=given)

    async def act(self, action: str, body: Any, session: str = "s") -> httpx.Response:
        return await self.post(f"/api/s/{session}/do/{action}", body)


@asynccontextmanager
async def run_inspector(
    store: Log | None = None,
    *,
    keys: dict[str, str] | None = None,
    owner: str | None = None,
    names: tuple[str, ...] = (),
    logs_in: bool = True,
    preset: str | None = None,
    window: int | None = None,
    **options: Any,
) -> AsyncIterator[RunningInspector]:
    """Runs an inspector over a store."""
    stop = anyio.Event()
    with listen("127.0.0.1", 0) as listening:
        access = Access("127.0.0.1", listening.getsockname()[1], names=names, keys=keys, owner=owner)
        service = SessionService(store or MemoryStore(), preset=preset, window=window)
        inspector = Inspector(service, access, **options)
        async with httpx.AsyncClient(timeout=30) as client, anyio.create_task_group() as group:
            group.start_soon(serve_inspector, inspector, listening, stop)
            running = RunningInspector(inspector, client)
            try:
                if logs_in:
                    await running.log_in()
                yield running
            finally:
                stop.set()


async def talk(sessions: SessionService, session_id: str = "s", turns: int = 12, **options: Any) -> None:
    """Creates a session with turns of a conversation."""
    await sessions.create(id=session_id, format="openai-chat", **options)
    await sessions.append(session_id, {"role": "system", "content": "You keep the harbour's files."}, id="system")
    for number in range(turns):
        ship = f"Ship {number} of berth N{number} has arrived with {number * 10} tons of timber for Osterhaven."
        await sessions.append(session_id, {"role": "user", "content": ship}, id=f"u{number}")
        reply = {"role": "assistant", "content": f"Ship {number} is noted in berths/n{number}.csv."}
        usage = {"input": 40 * number + 20, "output": 10, "cache_read": 30 * number}
        await sessions.append(session_id, reply, id=f"a{number}", usage=usage, model="claude-sonnet-4-5")


async def compact(sessions: SessionService, session_id: str = "s") -> int:
    """Compacts with the ledger; returns the number of the compaction's event."""
    await sessions.compact(session_id, always, KeepLedger(500))
    return (await sessions.events(session_id, kind="compaction"))[-1].seq
