"""JSON lines over pipes: reads lines of bounded length, writes without blocking on a slow reader."""

from __future__ import annotations

import io
import json
import os
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from typing import Any, BinaryIO, TextIO

import anyio
import anyio.to_thread
import msgspec
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from .text import escape_json

MAX_LINE_BYTES = 10_000_000
"""Longest accepted line; longer ones are skipped."""
STANDARD_INPUT = 0
_CHUNK = 65_536


class OversizedLine:
    """Yielded in place of a line that was too long."""


async def split_lines(
    chunks: AsyncIterable[bytes], longest: int = MAX_LINE_BYTES
) -> AsyncIterator[bytes | OversizedLine]:
    """Splits a byte stream into lines, also an unterminated last one; buffers at most `longest` bytes."""
    held, too_long = bytearray(), False
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            fits = not too_long and len(held) + len(piece) <= longest
            yield bytes(held + piece) if fits else OversizedLine()
            held, too_long = bytearray(), False
        too_long = too_long or len(held) + len(rest) > longest
        if too_long:
            held.clear()
        else:
            held += rest
    if held or too_long:
        yield OversizedLine() if too_long else bytes(held)


class InputStream:
    """Chunks of bytes from a file, pipe or terminal, until end of file or `close`."""

    def __init__(self, send: MemoryObjectSendStream[bytes], receive: MemoryObjectReceiveStream[bytes]) -> None:
        self._send, self._receive = send, receive

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._receive.__aiter__()

    def close(self) -> None:
        """Ends the stream for its reader."""
        self._send.close()


@asynccontextmanager
async def read_descriptor(descriptor: int) -> AsyncIterator[InputStream]:
    """Reads a file descriptor in a daemon thread, which is not joined: it may block in `read` for ever."""
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
            yield InputStream(send, receive)


class _PipeOutput(io.FileIO):
    """Output whose reader may go away, as `head` does: the rest goes nowhere, and the writer ends as it would."""

    _reader_left = False

    def write(self, data: Any) -> int:
        if not self._reader_left:
            try:
                return super().write(data) or 0
            except BrokenPipeError:
                self._reader_left = True
        return len(memoryview(data).cast("B"))


def outlive_reader(stream: TextIO) -> TextIO:
    """Returns a standard output that a closed pipe does not end; other streams as they are."""
    try:
        if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
            return stream
        output = _PipeOutput(stream.fileno(), "wb", closefd=False)
    except (OSError, ValueError):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(output), stream.encoding, stream.errors, line_buffering=stream.line_buffering
    )


class JsonLinesWriter:
    """Writes one JSON object per line, in order; `send` never blocks."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._queue: deque[bytes] = deque()
        self._wake = anyio.Event()
        self._ending = False
        self.broken = False
        """True once the reader has closed the stream."""

    def send(self, record: msgspec.Struct) -> None:
        self._queue.append(escape_json(_encode(record)) + b"\n")
        self._wake.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the writer task; flushes the queue on exit, and cancels the block if the reader closes the stream."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, group.cancel_scope)
            yield
            self._ending = True
            self._wake.set()

    async def _write(self, scope: anyio.CancelScope) -> None:
        try:
            while self._queue or not self._ending:
                await self._wake.wait()
                self._wake = anyio.Event()
                batch, self._queue = b"".join(self._queue), deque()
                await anyio.to_thread.run_sync(self._put, batch)
        except (OSError, ValueError):  # a closed pipe, a closed file
            self.broken = True
            scope.cancel()

    def _put(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


def _encode(record: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(msgspec.to_builtins(record)).encode()
