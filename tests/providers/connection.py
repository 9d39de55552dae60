"""One HTTP/1.1 connection, server side."""

from __future__ import annotations

import asyncio
import json
from typing import Any

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._watcher: asyncio.Task[bytes] | None = None
        self.closes = False
        """Whether the client asked to close after this answer."""

    async def receive(self) -> tuple[str, str, dict[str, str], bytes] | None:
        """Returns method, path, headers and body; None if the client disconnected."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
            headers = {name.strip().lower(): value.strip() for name, value in pairs}
            self.closes = headers.get("connection", "").lower() == "close"
            return method, path, headers, await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        kind = "text/plain" if isinstance(body, str) else "application/json"
        more = {"content-type": kind, "content-length": str(len(data))} | (headers or {})
        await self._write(self._head(status, more) + data)

    async def open_stream(self) -> None:
        await self._write(self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))

    async def send(self, data: bytes) -> None:
        await self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        await self._write(b"0\r\n\r\n")

    async def wait_for_disconnect(self, seconds: float | None) -> bool:
        """Waits so many seconds, or for ever; returns true once the client disconnects."""
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._reader.read(1))
        done, _ = await asyncio.wait({self._watcher}, timeout=seconds)
        if not done:
            return False
        return self._watcher.exception() is not None or self._watcher.result() == b""

    async def stop_watching(self) -> None:
        """Stops watching for a disconnect after a complete answer."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait({self._watcher})
            self._watcher = None

    def abort(self) -> None:
        self._writer.transport.abort()

    async def close(self) -> None:
        await self.stop_watching()
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        headers = headers | ({"connection": "close"} if self.closes else {})
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}", *(f"{k}: {v}" for k, v in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
