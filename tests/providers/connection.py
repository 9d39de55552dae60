"""One HTTP/1.1 connection, from the server's side."""

from __future__ import annotations

import asyncio
import json
from typing import Any

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._listening: asyncio.Task[bytes] | None = None

    async def receive(self) -> tuple[str, str, dict[str, str], bytes] | None:
        """Method, path, headers and body; None when the client is gone."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
            headers = {name.strip().lower(): value.strip() for name, value in pairs}
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

    async def hears_hang_up(self, seconds: float | None) -> bool:
        """Wait, for ever with None; true as soon as the client is gone."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._reader.read(1))
        done, _ = await asyncio.wait({self._listening}, timeout=seconds)
        if not done:
            return False
        return self._listening.exception() is not None or self._listening.result() == b""

    async def rest(self) -> None:
        """Stop listening for a hang-up: the answer is complete."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
            self._listening = None

    def hang_up(self) -> None:
        self._writer.transport.abort()

    async def close(self) -> None:
        await self.rest()
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}", *(f"{k}: {v}" for k, v in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
