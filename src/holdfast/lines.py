"""Lines in and out: bounded ones from a descriptor, and JSON to a stream, however slow or gone the other side is."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from typing import BinaryIO

import anyio
import anyio.to_thread
import msgspec
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LONGEST = 10_000_000
"""Bytes of a line; what is longer is passed over."""
STANDARD_INPUT = 0
_CHUNK = 65_536


class TooLong:
    """In place of a line that was passed over."""


async def lines_of(chunks: AsyncIterable[bytes], longest: int = LONGEST) -> AsyncIterator[bytes | TooLong]:
    """The lines of a stream, the last one also where nothing ends it; never holds more of one than may be read."""
    held, too_long = bytearray(), False
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            fits = not too_long and len(held) + len(piece) <= longest
            yield bytes(held + piece) if fits else TooLong()
            held, too_long = bytearray(), False
        too_long = too_long or len(held) + len(rest) > longest
        if too_long:
            held.clear()
        else:
            held += rest
    if held or too_long:
        yield TooLong() if too_long else bytes(held)


class Incoming:
    """What comes from a file, a pipe or a terminal, as it comes, until it ends or somebody ends it."""

    def __init__(self, send: MemoryObjectSendStream[bytes], receive: MemoryObjectReceiveStream[bytes]) -> None:
        self._send, self._receive = send, receive

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._receive.__aiter__()

    def end(self) -> None:
        """As if there were no more."""
        self._send.close()


@asynccontextmanager
async def incoming_from(descriptor: int) -> AsyncIterator[Incoming]:
    """A thread of its own reads, and nobody waits for it at the end: there may never be another byte."""
    send, receive = anyio.create_memory_object_stream[bytes](1)
    async with BlockingPortal() as portal:

        def read() -> None:
            with suppress(RuntimeError, CancelledError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                with suppress(OSError):
                    while chunk := os.read(descriptor, _CHUNK):
                        portal.call(send.send, chunk)
                portal.call(send.close)

        threading.Thread(target=read, name="holdfast input", daemon=True).start()
        with receive, send:
            yield Incoming(send, receive)


class Outgoing:
    """One JSON object a line, in order. Who speaks never waits for a slow reader."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting: deque[bytes] = deque()
        self._wake = anyio.Event()
        self._ending = False
        self.broken = False
        """Has the reader left?"""

    def send(self, record: msgspec.Struct) -> None:
        self._waiting.append(_encoded(record) + b"\n")
        self._wake.set()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Writes while inside, and all that was sent before it ends. A reader who leaves ends what is inside."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, group.cancel_scope)
            yield
            self._ending = True
            self._wake.set()

    async def _write(self, scope: anyio.CancelScope) -> None:
        try:
            while self._waiting or not self._ending:
                await self._wake.wait()
                self._wake = anyio.Event()
                batch, self._waiting = b"".join(self._waiting), deque()
                await anyio.to_thread.run_sync(self._put, batch)
        except (OSError, ValueError):  # a closed pipe, a closed file
            self.broken = True
            scope.cancel()

    def _put(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


def _encoded(record: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # half a character, as models and files may hold
        return json.dumps(msgspec.to_builtins(record)).encode()
