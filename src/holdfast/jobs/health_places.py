"""Where a worker's health is told: in a file, or on a port with `/healthz` and `/metrics`."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import SocketStream

from ..errors import InvalidInput
from ..files import replace_file
from .health import PATIENCE, Health

log = logging.getLogger("holdfast.jobs")
_LONGEST_QUESTION = 8_192


def health_place(where: str, health: Health) -> HealthFile | HealthPort:
    """A file by its path; a port as 8080, for this machine alone, or as 0.0.0.0:8080."""
    host, colon, last = where.rpartition(":")
    port = int(last) if last.isascii() and last.isdigit() else None
    if not where or (port is not None and not 0 < port < 65_536):
        raise InvalidInput(f"Health is told in a file or on a port, as 8080 or 0.0.0.0:8080, not {where!r}.")
    if port is None:
        return HealthFile(where, health)
    return HealthPort(host.strip("[]") if colon else "127.0.0.1", port, health)


class HealthFile:
    """Written anew at every look, and gone when the worker ends: one that is there and old is of one that died."""

    def __init__(self, path: str, health: Health) -> None:
        self._path = path
        self._health = health

    async def open(self) -> None:
        await self._health.look()
        try:
            self._write()
        except OSError as problem:
            raise InvalidInput(f"{self._path} cannot be written ({problem.strerror}): name another file.") from None

    async def keep_on(self) -> None:
        await self._health.keep_looking(self._write_if_possible)

    async def close(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)

    def _write_if_possible(self) -> None:
        try:
            self._write()
        except OSError as problem:
            log.warning("%s cannot be written: %s", self._path, problem.strerror)

    def _write(self) -> None:
        replace_file(self._path, msgspec.json.encode(self._health.facts()) + b"\n")


class HealthPort:
    """A few lines of HTTP: enough for whoever probes, and for `curl`."""

    def __init__(self, host: str, port: int, health: Health) -> None:
        self._host, self._port = host, port
        self._health = health

    async def open(self) -> None:
        await self._health.look()
        try:
            self._listener = await anyio.create_tcp_listener(local_host=self._host, local_port=self._port)
        except OSError as problem:
            why = f"Port {self._port} of {self._host} cannot be listened on ({problem.strerror or problem})"
            raise InvalidInput(f"{why}: name another.") from None

    async def keep_on(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._listener.serve, self._answer)
            await self._health.keep_looking(lambda: None)

    async def close(self) -> None:
        await self._listener.aclose()

    async def _answer(self, stream: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            async with stream:
                with anyio.move_on_after(PATIENCE):
                    await stream.send(_reply(await _question(stream), self._health))


async def _question(stream: SocketStream) -> str:
    """The path that is asked for."""
    asked = b""
    while b"\r\n\r\n" not in asked and len(asked) < _LONGEST_QUESTION:
        asked += await stream.receive()
    words = asked.split(b"\r\n", 1)[0].split()
    return words[1].decode(errors="replace").partition("?")[0] if len(words) == 3 and words[0] == b"GET" else ""


def _reply(path: str, health: Health) -> bytes:
    status, body = "404 Not Found", dict[str, Any](error="Ask for /healthz or /metrics.")
    if path == "/healthz":
        status, body = "200 OK" if health.well else "503 Service Unavailable", {"status": health.status}
    elif path == "/metrics":
        status, body = "200 OK", health.facts()
    content = msgspec.json.encode(body) + b"\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + content
